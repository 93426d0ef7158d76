"""Names that a command was given are there, or one sentence names what is; nothing is written by asking."""

from pathlib import Path

import pytest

from fib_core.adapters.directory_store import DirectoryStore
from fib_core.errors import ContractError, ObjectMissing
from tasks.asked import require_known, require_remeasure, require_run
from tasks.settings import Settings
from tests.flows import tiny_dataset
from tests.publish.material import made, put, terms
from tests.runtime.published import SCALE


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(home=tmp_path / "home", dataset=tiny_dataset.write(tmp_path / "dataset"), channel="dev")


def test_a_run_of_what_is_there_is_not_refused_and_asking_writes_nothing(settings: Settings) -> None:
    require_run(settings, None)
    require_run(settings, [tiny_dataset.NAME])
    assert not settings.home.exists()


@pytest.mark.parametrize(
    ("change", "names", "said"),
    [
        ({"dataset": Path("/nope")}, None, "/nope: not a dataset folder"),
        ({}, [tiny_dataset.NAME, tiny_dataset.NAME[:-1]], f"the nearest are: {tiny_dataset.NAME}$"),
        ({}, ["%%"], f"it holds 1, the first are: {tiny_dataset.NAME}$"),
        ({"channel": "stable"}, None, "stable takes no index of the profile quick"),
    ],
)
def test_a_run_of_what_is_not_there_is_refused(settings: Settings, change, names, said: str) -> None:
    with pytest.raises(ContractError, match=said):
        require_run(settings.model_copy(update=change), names)


def test_remeasuring_needs_a_channel_its_definitions_and_a_dataset(settings: Settings) -> None:
    with pytest.raises(ObjectMissing, match="no channel 'dev'"):
        require_remeasure(settings, None)
    put(DirectoryStore(settings.home / "store"), made(), under=terms(signer=None))
    require_remeasure(settings, [SCALE.name])
    with pytest.raises(ContractError, match=f"no definition named 'scale'; the nearest are: {SCALE.name}$"):
        require_remeasure(settings, ["scale"])
    with pytest.raises(ContractError, match="/nope: not a dataset folder"):
        require_remeasure(settings.model_copy(update={"dataset": Path("/nope")}), None)


def test_an_empty_place_holds_none() -> None:
    with pytest.raises(ContractError, match="it holds 0, the first are: none"):
        require_known(["a"], [], "there")
    require_known([], [], "there")
