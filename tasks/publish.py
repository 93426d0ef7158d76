"""Stage 7 as the orchestrator treats it: immutable objects, the real reader's proof, then the pointer's swap."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress

from prefect import get_run_logger, task
from prefect.cache_policies import NO_CACHE

from fib_core import publish as room
from fib_core.errors import ObjectMissing, RolledBack, StoreRefused
from fib_core.index.index_diff import back_again, left_out
from fib_core.publication import history
from schemas.evaluation import Evaluation
from schemas.index import DispatchIndex
from schemas.publication import ChannelPointer
from schemas.solution import Solution
from tasks import release
from tasks.artifacts import show_markdown
from tasks.validity import spoiled
from tasks.wiring import House


def foresee(house: House) -> None:
    """Refuse at the start of a run what its publication would be refused for; raises as the room does."""
    room.foresee(house.store, house.settings.profile, house.settings.channel, _terms(house))


@task(task_run_name="publish to {house.settings.channel}", cache_policy=NO_CACHE)
def publish(
    house: House, index: DispatchIndex, solutions: Mapping[str, Solution], evaluations: Iterable[Evaluation]
) -> str | None:
    """Publish; or say why not: the machine spoiled too much of the run (the report fails it then), or the channel was
    rolled back from this very index (the run ends well: it kept what it measured, and an operator's word stands).

    Raises PublishConflict if somebody else moved the channel, ContractError if the channel refuses this profile or the
    index cannot be proved or signed as this installation wants.
    """
    reason = spoiled(house.settings, evaluations)
    if reason is not None:
        get_run_logger().error("not published: %s", reason)
        return reason
    terms, before = _terms(house), history.look(house.store, house.settings.channel).pointer
    try:
        pointer = room.publish(house.store, index, solutions, house.settings.channel, terms)
    except RolledBack as error:
        get_run_logger().warning("not published: %s", error)
        show_markdown("not-published", f"not published: {error}", "Why the channel was not moved.")
        return str(error)
    _warn(house, before, index)
    signed = f"signed by {terms.signer.public.key_id}" if terms.signer else "not signed"
    where = house.settings.channel, pointer.index_digest, house.store.url
    get_run_logger().info("channel %s -> %s in %s, %s", *where, signed)
    return None


def _terms(house: House) -> room.Terms:
    return release.terms(house.settings.new_signer)


def _warn(house: House, before: ChannelPointer | None, index: DispatchIndex) -> None:
    """Say what the move took from the channel, and what it brought back."""
    if before is None:
        return
    with suppress(ObjectMissing, StoreRefused):
        now = room.read_index(house.store, before.index_digest)
        _warn_of_what_goes(house.settings.channel, now, index)
        if before.action == "rollback" and before.previous is not None:
            gone = room.read_index(house.store, before.previous)
            _warn_of_what_returns(before, back_again(gone, now, index))


def _warn_of_what_goes(name: str, now: DispatchIndex, index: DispatchIndex) -> None:
    """A run of a few definitions replaces the whole index of its channel: say whose entries go, and how they return."""
    lost = left_out(now, index)
    if lost:
        get_run_logger().warning(
            "channel %s no longer serves %s: this run was not asked about them, and an index is one run's. Run without "
            "--definition, publish to a channel of its own, or go back with `fib rollback --channel %s`",
            name, ", ".join(f"{one} ({count} entries)" for one, count in lost.items()), name,
        )  # fmt: skip


def _warn_of_what_returns(move: ChannelPointer, names: Sequence[str]) -> None:
    """A rollback bars an index, not its solutions: a run that decided something else may well decide for them again."""
    if names:
        get_run_logger().warning(
            "channel %s serves again what left it with the rollback at %s: %s. This index is another one, decided by "
            "this run; a solution that must not come back has to leave the dataset",
            move.channel, move.published_at, ", ".join(names),
        )  # fmt: skip
