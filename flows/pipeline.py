"""The main road: recorded calls in, a published dispatch index out.

Reads like a story; what each step means is in fib_core, how a step may be treated is in tasks.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from prefect import flow
from prefect.runtime import flow_run

from schemas.decision import Profile
from tasks.benchmark import chosen_definitions, has_workloads, incumbents_of, solutions_for, weights_of
from tasks.budget import Budget, OutOfTime
from tasks.build import build
from tasks.collect import collect
from tasks.confirm import confirm
from tasks.dedup import dedup
from tasks.dispatch import dispatch
from tasks.publish import foresee, publish
from tasks.repeat import repeat
from tasks.report import report
from tasks.screen import screen
from tasks.settings import settings_from
from tasks.split import split
from tasks.stopped import stopped
from tasks.wiring import open_house


def _run_name() -> str:
    given = flow_run.parameters
    return f"{given.get('profile') or 'quick'} run of {Path(str(given.get('dataset') or 'starter')).name}"


@flow(name="pipeline", flow_run_name=_run_name, validate_parameters=False)
def pipeline(  # noqa: PLR0913, PLR0917 - one parameter per knob of a deployment
    dataset: Path | str | None = None,
    profile: Profile | None = None,
    channel: str | None = None,
    store: str | None = None,
    definitions: list[str] | None = None,
    campaigns: Sequence[int] | None = None,
    budget_s: float | None = None,
    new_signer: bool | None = None,
) -> dict[str, Any]:
    """Collect, deduplicate, split, screen, confirm, dispatch, publish, report. Omitted parameters come from FIB_*.

    The index comes from the first of ``campaigns``; the others repeat its rounds. After ``budget_s`` the run stops
    between two visits: started again, it goes on from the store.
    """
    settings = settings_from(
        dataset=dataset, profile=profile, channel=channel, store=store, campaigns=campaigns, budget_s=budget_s,
        new_signer=new_signer,
    )  # fmt: skip
    budget = Budget(settings.budget_s)

    gathered = collect(settings.dataset, settings.scale)
    chosen = chosen_definitions(gathered, definitions)
    solutions = solutions_for(gathered, chosen)
    blob_root = str(settings.dataset.resolve())

    with open_house(settings, budget) as house:
        foresee(house)
        # Compilers work while workloads are chosen; nothing is timed before they are done.
        building = build.submit(house, [solution for name in chosen for solution in solutions[name]])
        few = [
            dedup(item, gathered.records.get(name, []), gathered.dataset.workloads_of(name), settings)
            for name, item in chosen.items()
        ]
        workloads = [workload for each in few for workload in each.workloads]
        incumbents = incumbents_of(gathered, chosen, solutions)
        snapshot = split(house, chosen, workloads, incumbents, weights_of(few))

        measured = {name: item for name, item in chosen.items() if has_workloads(snapshot, item)}
        building.result()
        try:
            screened = [
                screen(house, snapshot, definition, solutions[name], blob_root) for name, definition in measured.items()
            ]
            decisions = [decision for each in screened for decision in confirm(house, each, blob_root)]
        except OutOfTime as stop:
            return stopped(house, snapshot, len(measured), stop)

        by_digest = {e.solution_digest: e.solution for each in screened for e in each.entrants}
        index = dispatch(house, snapshot, decisions, by_digest)
        unpublished = publish(house, index, by_digest, [e for each in screened for e in each.evaluations])
        summary = report(house, gathered, snapshot, screened, decisions, index, unpublished)
        return summary | repeat(house, screened, blob_root)


if __name__ == "__main__":
    pipeline()
