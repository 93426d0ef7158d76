"""Call logs of the starter data: a small continuous-batching engine is simulated and what its kernels would be asked is logged.

In: definitions (public dicts). Out: compact JSON lines per ``scale:cpu`` definition, one observed call each (the TraceRecord
form, defaults left out). Synthetic and seeded: same definitions, same bytes. Knows nothing of files, torch or candidates.

The engine: N users in a closed loop (phases of 1 to 32), a cached common prefix, prompts prefilled in chunks of a token budget
(up to four sequences a step), then decode steps over all running sequences, padded with empty rows to the sizes for which a
graph was captured. A step is one call per layer and definition; the recorder samples steps (attention: every prefill step and
every n-th decode step; kernels that see only token counts: every sixth prefill step too); the same benchmark is replayed a few
times, as nightly runs are. That is where repetition and skew come from.
"""

import importlib.util
import json
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

REPLAYS = 3
DENSE_PREFILL_EVERY = 6
BAD_LINES_IN = "gqa_paged_decode_h32_kv8_d64_ps16"


def beside(name: str) -> Any:
    """A module of this folder, which is no package, by path."""
    spec = importlib.util.spec_from_file_location(f"starter_{name}", Path(__file__).with_name(f"{name}.py"))
    if spec is None or spec.loader is None:
        raise ImportError(f"{name}.py is not beside {__file__}")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


engine_room = beside("engine")
CAPTURED_SIZES, ENGINES, simulate, recorded = (
    engine_room.CAPTURED_SIZES, engine_room.ENGINES, engine_room.simulate, engine_room.recorded,
)


def attention_call(definition: dict[str, Any], engine: Any, step: Any) -> dict[str, Any] | None:
    """Decode kernels see decode steps, prefill kernels the others."""
    if step.kind not in definition["name"]:
        return None
    page = definition["axes"].get("page_size", {"value": 1})["value"]
    values = {
        "batch_size": len(step.kv_lens),
        "total_q": sum(step.qo_lens),
        "total_kv": sum(step.kv_lens),
        "num_pages": engine.pool_tokens // page,
        "len_indptr": len(step.kv_lens) + 1,
        "num_kv_indices": sum(-(-length // page) for length in step.kv_lens),
    }
    lengths = {"kv_lens": list(step.kv_lens)}
    if step.kind == "prefill":
        lengths = {"qo_lens": list(step.qo_lens)} | lengths
    head = definition["axes"].get("head_dim", {"value": 192})["value"]
    return {"axes": bound(definition, values), "structure": lengths, "scalars": {"sm_scale": round(head**-0.5, 9)}}


def token_call(definition: dict[str, Any], engine: Any, step: Any) -> dict[str, Any]:
    """Kernels that see a row per token: gemm, norms, experts."""
    tokens = sum(step.qo_lens)
    call: dict[str, Any] = {"axes": bound(definition, dict.fromkeys(("M", "batch_size", "seq_len"), tokens))}
    if definition["op_type"] == "moe":
        call["scalars"] = {"local_expert_offset": 0, "routed_scaling_factor": 2.5}
    return call


def rope_call(definition: dict[str, Any], engine: Any, step: Any) -> dict[str, Any]:
    """Positions are the places of the query tokens; a padding row stands at 0."""
    places = [
        position
        for queries, length in zip(step.qo_lens, step.kv_lens, strict=True)
        for position in range(max(length - queries, 0), max(length, 1))
    ]
    values = {"num_tokens": len(places), "num_qo_heads": 32, "num_kv_heads": 8, "max_seq_len": 1024}
    return {"axes": bound(definition, values), "structure": {"positions": places}}


def sampling_call(definition: dict[str, Any], engine: Any, step: Any) -> dict[str, Any] | None:
    """One row per sequence that gets a token; presets of the clients by batch: greedy-ish alone, mixed when many share."""
    if step.ending == 0:
        return None
    wide = sum(step.kv_lens) % 4 == 0
    presets = {"top_k": 20 if wide else 50, "top_p": 0.95 if wide else 0.9}
    scalars = {name: value for name, value in presets.items() if name in definition["inputs"]}
    return {"axes": bound(definition, {"batch_size": step.ending}), "scalars": scalars}


def bound(definition: dict[str, Any], values: dict[str, int]) -> dict[str, int]:
    """The var axes of a definition, in its order."""
    return {name: values[name] for name, axis in definition["axes"].items() if axis["type"] == "var"}


CALLS = {"gqa_paged": attention_call, "gqa_ragged": attention_call, "mla_paged": attention_call, "rope": rope_call, "sampling": sampling_call}


def engine_of(definition: dict[str, Any]) -> tuple[str, Any]:
    """The served model that a definition's tags name."""
    names = [tag.removeprefix("model:") for tag in definition.get("tags", ()) if tag.startswith("model:")]
    name = next((name for name in names if name in ENGINES), None)
    if name is None:
        raise ValueError(f"{definition['name']}: no engine is known for the models {names}; known: {sorted(ENGINES)}")
    return name, ENGINES[name]


def calls_of(definition: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Every logged call of one definition, in the order of the log."""
    model, engine = engine_of(definition)
    maker = CALLS.get(definition["op_type"], token_call)
    prefill_every = 1 if maker is attention_call else DENSE_PREFILL_EVERY
    steps = [call for step in recorded(engine, prefill_every, seed=7) if (call := maker(definition, engine, step)) is not None]
    for replay in range(REPLAYS):
        source = {"engine": "batching-simulator", "model": model, "run": f"replay-{replay + 1}"}
        for call in steps:
            row = {"definition": definition["name"]} | call | {"source": source}
            yield from [row] * engine.layers


def line(call: dict[str, Any]) -> str:
    """Compact JSON."""
    return json.dumps(call, separators=(",", ":"))


def broken(lines: list[str]) -> list[str]:
    """The same log after a crash and a few bugs: unusable lines in between, good ones untouched."""
    good = json.loads(lines[len(lines) // 2])
    axes = good["axes"]
    bad = [
        lines[0][: len(lines[0]) // 2],
        line(good | {"axes": axes | {"batch_size": -1}}),
        line(good | {"definition": good["definition"] + "_v0"}),
        line(good | {"axes": {name: size for name, size in axes.items() if name != "num_pages"}}),
        line(good | {"structure": {"kv_lens": [*good["structure"]["kv_lens"], 5]}}),
    ]
    places = [len(lines) * (index + 1) // (len(bad) + 1) for index in range(len(bad))]
    for place, text in sorted(zip(places, bad, strict=True), reverse=True):
        lines = [*lines[:place], text, *lines[place:]]
    return lines


def logs(definitions: dict[str, dict[str, Any]]) -> dict[str, Iterable[str]]:
    """Call logs of every ``scale:cpu`` definition, by name."""
    found: dict[str, Iterable[str]] = {}
    for name, definition in sorted(definitions.items()):
        if "scale:cpu" in definition.get("tags", ()):
            lines = [line(call) for call in calls_of(definition)]
            found[name] = broken(lines) if name == BAD_LINES_IN else lines
    return found


def distinct_points(definition: dict[str, Any]) -> list[tuple[dict[str, int], dict[str, Any], dict[str, Any]]]:
    """(axes, structure, scalars) of the distinct calls, most frequent first: what a kernel has to be right on."""
    counts = Counter(line({key: call.get(key, {}) for key in ("axes", "structure", "scalars")}) for call in calls_of(definition))
    bodies = [json.loads(text) for text, _ in counts.most_common()]
    return [(body["axes"], body["structure"], body["scalars"]) for body in bodies]
