"""``fib explain``: which entry would serve a call, on what evidence, or why none."""

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

if TYPE_CHECKING:
    from fib_core.runtime.pulled import PulledIndex
    from schemas.decision import Decision


def register(app: typer.Typer) -> None:
    """Add ``fib explain``."""
    app.command("explain")(explain)


def explain(
    definition: Annotated[str, typer.Argument(help="name or digest")],
    axes: Annotated[list[str] | None, typer.Argument(help="axis=value for every var axis")] = None,
    source: Annotated[str, typer.Option("--from", help="read this store instead of the local cache")] = "",
    channel: Annotated[str, typer.Option(help="channel; default the one pulled last")] = "",
    device_class: Annotated[str, typer.Option(help="another class than the index's own, or a device's name")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="print only JSON")] = False,
) -> None:
    """Say which entry would serve a call with these sizes, and on what evidence; or why your own function would run."""
    from fib_core.runtime.explanation import explain as ask

    pulled, store_url = _index(source, channel)
    answer = ask(pulled, definition, _sizes(axes or []), device_class or None, lambda d: _decision(store_url, d))
    if as_json:
        typer.echo(json.dumps(answer))
    else:
        _show(Console(highlight=False, markup=False, soft_wrap=True), answer)


def _index(source: str, channel: str) -> "tuple[PulledIndex, str]":
    """The pulled index if there is one and no store was named, else the store's; with the address of its decisions."""
    from fib_core.errors import ObjectMissing
    from fib_core.runtime import index_client, places

    if not source:
        try:
            pulled = index_client.load(channel=channel or None)
        except ObjectMissing:
            source = places.store_url()
        else:
            # A remote store is not asked unless it was named: explaining works without a network.
            local = pulled.source if pulled.source and pulled.source.startswith("file:") else ""
            return pulled, local
    return index_client.read_channel(index_client.open_store(source), channel or places.channel()), source


def _decision(store_url: str, digest: str) -> "Decision | None":
    """The decision behind an entry, if the store is at hand and holds exactly that."""
    from fib_core.errors import ObjectMissing, StoreRefused
    from fib_core.runtime.index_client import open_store
    from fib_core.runtime.pulled import object_key, parsed
    from schemas.decision import Decision

    if not store_url:
        return None
    try:
        body = open_store(store_url).get(object_key("decisions", digest)).body
        decision = parsed(Decision.model_validate_json, body, "decision")
    except (ObjectMissing, StoreRefused):
        return None
    return decision if decision.digest == digest else None


def _sizes(axes: list[str]) -> dict[str, int]:
    from fib_core.errors import ContractError

    sizes: dict[str, int] = {}
    for text in axes:
        name, mark, value = text.partition("=")
        if not mark or not name or not value.isdecimal():
            raise ContractError(f"{text!r} is not axis=value with a whole number, as in batch_size=7")
        sizes[name] = int(value)
    return sizes


def _show(console: Console, answer: dict[str, Any]) -> None:
    point = " ".join(f"{name}={size}" for name, size in answer["axes"].items())
    console.print(f"{answer['definition']} {point} on {answer['device_class']}")
    console.print(f"  index    {answer['index_digest']} ({answer['channel'] or 'pinned'}, {answer['profile']})")
    solution = answer["solution"]
    if solution:
        console.print(f"  served by {solution['name']} ({solution['language']}, by {solution['author']})")
        console.print(f"           {solution['digest']}")
    else:
        kept = "the incumbent was kept: " if answer["served_by"] == "incumbent" else ""
        console.print(f"  served by your own function; {kept}{answer['detail'] or answer['reason']}")
    if answer["evidence"]:
        _show_evidence(console, answer["entry"], answer["evidence"])
    for stale in answer["stale_entries"]:
        console.print(f"  stale    {stale['key']}, {_intervals(stale['box'])}: {'; '.join(stale['reasons'])}")
    for near in answer["nearest"]:
        which = "a solution" if near["solution_digest"] else "the incumbent"
        console.print(f"  near     {_intervals(near['box'])} on {near['device_class']}: {which}")


def _show_evidence(console: Console, entry: dict[str, Any], evidence: dict[str, Any]) -> None:
    console.print(f"  entry    {entry['key']}, guarded by {_intervals(entry['box'])}")
    against = evidence["against"]
    console.print(f"  against  {against['incumbent'] or 'an unnamed incumbent'} {against['digest'] or ''}")
    if evidence["ratio"] is not None:
        interval = evidence["interval"]
        spread = f" [{interval[0]:.3f}, {interval[1]:.3f}]" if interval else ""
        console.print(f"  ratio    {evidence['ratio']:.3f}{spread} (incumbent time / candidate time, 95 %)")
    console.print(f"  rounds   {evidence['rounds']}, finalists {evidence['finalist_count']}")
    control = evidence["control"]
    if control:
        low, high = control["interval"]
        console.print(f"  control  {control['ratio']:.3f} [{low:.3f}, {high:.3f}] (the incumbent under a false name)")
    elif not evidence["decision_read"]:
        console.print("  control  in the decision, which is not at hand here; name its store with --from")
    if evidence["failed"]:
        console.print(f"  failed   {', '.join(evidence['failed'])}")
    for item in evidence["keys"]:
        _show_key(console, item)
    console.print(f"  decision {evidence['decision_digest']}")


def _show_key(console: Console, item: dict[str, Any]) -> None:
    """Where and how one of the entry's keys was measured."""
    policy, ratio = item["policy"], item.get("ratio")
    figure = f" {ratio:.3f}" if ratio is not None else ""
    how = f"{policy['timer']}, {policy['launch']}, cache {policy['cache']}, {policy['mode']}, {policy['profile']}"
    console.print(f"  key      {item['key']}{figure}, campaign {item['campaign']}: {how}")
    versions = ", ".join(f"{name} {version}" for name, version in item["library_versions"].items())
    drivers = ", ".join(f"driver {name}" for name in item["drivers"])
    console.print(f"           on {', '.join(item['device_ids'])} with {', '.join(filter(None, (versions, drivers)))}")
    seen = [*item["structures"], *item["distributions"]]
    if seen:
        console.print(f"           measured on {', '.join(seen)}")


def _intervals(box: dict[str, list[int]]) -> str:
    return ", ".join(f"{name} {low}..{high}" for name, (low, high) in box.items()) or "no axis"
