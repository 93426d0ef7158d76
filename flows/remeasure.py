"""The way back: a published index in, its promoted keys measured again, agreement out. It never changes an index."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from prefect import flow
from prefect.runtime import flow_run

from tasks.collect import collect
from tasks.published import current_index, promised, promoted_decisions
from tasks.remeasure import keep, measure, next_campaign
from tasks.settings import settings_from
from tasks.wiring import open_house


def _run_name() -> str:
    return f"remeasure {flow_run.parameters.get('channel') or 'the channel'}"


@flow(name="remeasure", flow_run_name=_run_name, validate_parameters=False)
def remeasure(
    channel: str | None = None,
    definitions: Sequence[str] | None = None,
    dataset: Path | str | None = None,
    store: str | None = None,
) -> dict[str, Any]:
    """Fresh rounds of every promoted key of the channel's current index, compared with what was published.

    ``dataset`` must hold the incumbents that the index was measured against. Omitted parameters come from FIB_*.
    """
    settings = settings_from(channel=channel, dataset=dataset, store=store)
    gathered = collect(settings.dataset, "")
    blob_root = str(settings.dataset.resolve())
    with open_house(settings) as opened:
        index = current_index(opened)
        # Rounds of another profile would be another experiment.
        house = replace(opened, settings=settings.model_copy(update={"profile": index.profile}))
        campaign = next_campaign(house)
        decisions = promoted_decisions(house, index, definitions)
        named = {item.definition: item.definition_digest for item in decisions}
        known = [item for item in gathered.dataset.solutions.values() if item.definition in named]
        solutions = {item.digest_for(named[item.definition]): item for item in known}
        contests = promised(house, decisions, solutions, campaign)
        again = [key for each in contests for key in measure(house, each, solutions, blob_root)]
        return keep(house, index, again, campaign)


if __name__ == "__main__":
    remeasure()
