"""The limit on INVALID: how much of a run the machine may spoil before nothing of it is published."""

from collections.abc import Iterable

from schemas.evaluation import Evaluation, Status
from tasks.settings import Settings


def spoiled(settings: Settings, evaluations: Iterable[Evaluation]) -> str | None:
    """A sentence if more than the allowed share of verdicts is INVALID, else None."""
    statuses = [item.status for item in evaluations]
    count = statuses.count(Status.INVALID)
    if not statuses or count / len(statuses) <= settings.invalid_share_max:
        return None
    return (
        f"{count} of {len(statuses)} evaluations ({count / len(statuses):.1%}) were spoiled by the machine, more than "
        f"{settings.invalid_share_max:.0%}; nothing was published. Look at the causes in the report, then run again: "
        "finished evaluations are kept"
    )
