"""Every cheat of the catalogue ends in a verdict that is right for it, and leaves nothing behind."""

import pytest

from fib_core.adapters.device_worker import DeviceWorker
from tests.adversaries.arena import HERE, judge_row
from tests.adversaries.catalogue import CUDA_ONLY, LEFT_OUT, ROWS
from tests.adversaries.catalogue_cuda import CUDA_HONEST, CUDA_ROWS
from tests.adversaries.expectations import Row

pytestmark = pytest.mark.timeout(900)  # a visit waits for the host-wide device lock


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.file.rsplit(".", 1)[0])
def test_a_cheat_is_caught_or_has_no_effect(worker: DeviceWorker, row: Row) -> None:
    assert judge_row(worker, row, "corpus") == []


def test_every_row_of_the_catalogue_is_present_or_left_out_with_a_reason() -> None:
    wanted = {f"C{number}" for number in range(1, 44)} | {f"V{number}" for number in range(1, 17)}
    present = {row.id for row in ROWS}
    assert present | LEFT_OUT.keys() | CUDA_ONLY.keys() == wanted
    assert not present & (LEFT_OUT.keys() | CUDA_ONLY.keys())
    assert all(len(reason) > 20 for reason in (LEFT_OUT | CUDA_ONLY).values())


def test_every_file_is_used_once_and_no_row_may_pass_without_a_true_time() -> None:
    files = [row.file for row in ROWS]
    on_disk = sorted(path.name for path in (HERE / "cheats").iterdir() if path.suffix in (".py", ".cc"))
    assert sorted(files) == on_disk
    for row in ROWS:
        assert all(status.value != "PASSED" for status, _ in row.verdicts)
        assert row.verdicts or row.true_us, row.file


def test_every_file_for_the_gpu_is_listed() -> None:
    on_disk = {side: {path.name for path in (HERE / "cuda" / side).glob("*.[pc][yu]")} for side in ("cheats", "honest")}
    assert on_disk == {"cheats": {row.file for row in CUDA_ROWS}, "honest": set(CUDA_HONEST)}
    assert {row.id for row in CUDA_ROWS} >= CUDA_ONLY.keys()
