"""Stage 7 as the orchestrator treats it: immutable objects, the real reader's proof, then the pointer's swap."""

from collections.abc import Iterable, Mapping

from prefect import get_run_logger, task
from prefect.cache_policies import NO_CACHE

from fib_core import publish as room
from fib_core.errors import ObjectMissing
from fib_core.index.index_diff import left_out
from fib_core.publication import history
from schemas.evaluation import Evaluation
from schemas.index import DispatchIndex
from schemas.publication import ChannelPointer
from schemas.solution import Solution
from tasks import release
from tasks.validity import spoiled
from tasks.wiring import House


def foresee(house: House) -> None:
    """Refuse at the start of a run what its publication would be refused for; raises as the room does."""
    room.foresee(house.store, house.settings.profile, house.settings.channel, release.terms())


@task(task_run_name="publish to {house.settings.channel}", cache_policy=NO_CACHE)
def publish(
    house: House, index: DispatchIndex, solutions: Mapping[str, Solution], evaluations: Iterable[Evaluation]
) -> ChannelPointer | None:
    """Publish, unless the machine spoiled too much of the run; the report says so and fails the run then.

    Raises PublishConflict if somebody else moved the channel, ContractError if the channel refuses this profile or the
    index cannot be proved or signed as this installation wants.
    """
    reason = spoiled(house.settings, evaluations)
    if reason is not None:
        get_run_logger().error("not published: %s", reason)
        return None
    terms = release.terms()
    _warn_of_what_goes(house, index)
    pointer = room.publish(house.store, index, solutions, house.settings.channel, terms)
    signed = f"signed by {terms.signer.public.key_id}" if terms.signer else "not signed"
    where = house.settings.channel, pointer.index_digest, house.store.url
    get_run_logger().info("channel %s -> %s in %s, %s", *where, signed)
    return pointer


def _warn_of_what_goes(house: House, index: DispatchIndex) -> None:
    """A run of a few definitions replaces the whole index of its channel: say whose entries go, and how they return."""
    name = house.settings.channel
    pointer = history.look(house.store, name).pointer
    try:
        lost = left_out(room.read_index(house.store, pointer.index_digest), index) if pointer else {}
    except ObjectMissing:
        return
    if lost:
        get_run_logger().warning(
            "channel %s no longer serves %s: this run was not asked about them, and an index is one run's. Run without "
            "--definition, publish to a channel of its own, or go back with `fib rollback --channel %s`",
            name, ", ".join(f"{one} ({count} entries)" for one, count in lost.items()), name,
        )  # fmt: skip
