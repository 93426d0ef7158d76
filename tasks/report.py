"""Stage 8 as the orchestrator treats it: the run as a page, as artifacts and as an MLflow run; then the summary.

More than the allowed share of INVALID fails the run here, after everything was recorded.
"""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from prefect import get_run_logger, task
from prefect.cache_policies import NO_CACHE
from prefect.runtime import flow_run

from fib_core import report as room
from fib_core.account.controls import control_rows
from fib_core.account.coverage import measure
from fib_core.account.past import save_screen
from fib_core.errors import TooManyInvalid
from schemas.canonical import short
from schemas.decision import Decision
from schemas.environment import Environment
from schemas.index import DispatchIndex
from schemas.snapshot import Snapshot
from tasks.artifacts import show_markdown, show_table
from tasks.code_version import code_version
from tasks.collect import Gathered
from tasks.screen import Screened
from tasks.tables import evaluation_rows
from tasks.validity import spoiled
from tasks.wiring import House


@task(task_run_name="report", cache_policy=NO_CACHE)
def report(
    house: House,
    gathered: Gathered,
    snapshot: Snapshot,
    screened: Sequence[Screened],
    decisions: Sequence[Decision],
    index: DispatchIndex,
    unpublished: str | None,
) -> dict[str, Any]:
    """Say what was decided, on which evidence, and where to look; ``unpublished`` is why the channel was not moved."""
    facts = _facts(house, gathered, snapshot, screened, decisions, index, unpublished)
    save_screen(house.store, index.digest, facts.screen, facts.not_applicable)
    run_id = _track(house, facts, index)
    facts = replace(facts, mlflow_run_id=run_id)
    failures = room.failure_rows(facts.screen, snapshot, facts.solutions)
    show_table("failures", failures, "Every failing candidate with its rule, reason and the end of its log.")
    show_table("decisions", room.decision_rows(decisions, facts.solutions), "What serves each key, and why.")
    show_table("scores", facts.card.rows, "Every score with its side, baseline, weights and source of times.")
    show_table("cold-path", facts.cold, "Build, first call and first call per new shape; outside every ratio.")
    link = f"[MLflow run {run_id}]({house.tracker.run_url(run_id)})\n\n"
    show_markdown("report", link + room.page(facts), "The run on one page.")
    summary = room.summary(facts) | room.extras(facts) | {"closing": room.closing_lines(facts)}
    summary |= {"failures": failures, "decisions": room.decision_rows(decisions, facts.solutions)}
    get_run_logger().info("%s", json.dumps(summary["evaluations"]))
    reason = spoiled(house.settings, facts.screen)
    if reason is not None:
        raise TooManyInvalid(reason)
    return summary


def _facts(
    house: House,
    gathered: Gathered,
    snapshot: Snapshot,
    screened: Sequence[Screened],
    decisions: Sequence[Decision],
    index: DispatchIndex,
    unpublished: str | None,
) -> room.RunFacts:
    solutions = {item.solution_digest: item.solution for each in screened for item in each.entrants}
    return room.RunFacts(
        snapshot=snapshot,
        solutions=solutions,
        screen=[evaluation for each in screened for evaluation in each.evaluations],
        decisions=decisions,
        profile=house.settings.profile,
        channel=house.settings.channel,
        index_digest=index.digest,
        not_applicable=[pair for each in screened for pair in each.not_applicable],
        quarantined_count=len(gathered.quarantined),
        read_count=sum(gathered.dataset.read.values()) + gathered.calls_read,
        coverage=measure(index, snapshot, [item for calls in gathered.records.values() for item in calls], solutions),
        index=index,
        flow_run_id=str(flow_run.id) if flow_run.id else None,
        wall_s=house.budget.spent_s,
        not_published=unpublished,
        notes={digest: note for each in screened for digest, note in each.contest.notes.items()},
    )


def _track(house: House, facts: room.RunFacts, index: DispatchIndex) -> str:
    names = {digest: solution.name for digest, solution in facts.solutions.items()}
    return house.tracker.log_run(
        name=f"{facts.profile} {short(facts.snapshot.digest)}",
        params=_params(facts, house.environment),
        metrics=room.metrics(facts),
        tags={
            "flow_run_id": facts.flow_run_id or "",
            "channel": facts.channel,
            "index_digest": facts.index_digest,
            "published": str(facts.not_published is None).lower(),
        },
        documents={
            "report.md": room.page(facts),
            "dispatch-index.json": index.model_dump_json(indent=2),
            "environment.json": house.environment.model_dump_json(indent=2),
        },
        tables={
            "evaluations": evaluation_rows(facts.screen, names),
            "decisions": room.decision_rows(facts.decisions, facts.solutions),
            "scores": facts.card.rows,
            "cold": facts.cold,
            "roofline": list(facts.card.roofline),
            "controls": control_rows(facts.decisions),
        },
        inputs=[
            {
                "name": f"snapshot-{short(facts.snapshot.digest)}",
                "digest": facts.snapshot.digest,
                "source": f"{house.store.url}/snapshots/{facts.snapshot.digest.removeprefix('sha256:')}.json",
                "context": "evaluation",
            }
        ],
    )


def _params(facts: room.RunFacts, environment: Environment) -> dict[str, str]:
    flat = {f"environment.{name}": str(value) for name, value in environment.model_dump(mode="json").items()}
    return flat | {
        "snapshot_digest": facts.snapshot.digest,
        "profile": facts.profile,
        "code_version": code_version(),
    }
