"""On a CUDA device: every cheat made for it, and every one of the CPU corpus that runs there, ends as it must.

All visits are made once, several subjects to a visit; the tests read the outcomes.
"""

import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from fib_core.adapters.device_worker import DeviceWorker
from schemas.evaluation import Status
from tests.adversaries.cuda.judging import Judged, judge, outcome_of_pass
from tests.adversaries.cuda.subjects import NOT_PORTED, Subject, subjects
from tests.adversaries.expectations import NOTHING, Row
from tests.adversaries.honest_files import HONEST

ALL = subjects()
OWN = [one for one in ALL if one.origin == "cuda" and not one.honest]
on_device = [pytest.mark.gpu, pytest.mark.skipif(shutil.which("nvidia-smi") is None, reason="no CUDA device")]


@pytest.fixture(scope="module")
def judged() -> Iterator[dict[str, Judged]]:
    with tempfile.TemporaryDirectory() as cache, DeviceWorker(cache_dir=Path(cache), device="cuda:0") as worker:
        worker.warm()
        yield {one.subject.file: one for one in judge(worker, ALL, "cuda corpus")}


def _marked(test):  # type: ignore[no-untyped-def]
    for mark in on_device:
        test = mark(test)
    return pytest.mark.timeout(600)(test)


@_marked
@pytest.mark.parametrize("subject", ALL, ids=lambda one: one.file.removesuffix(".py"))
def test_a_cheat_is_caught_or_tells_its_true_time_and_an_honest_kernel_passes(
    judged: dict[str, Judged], subject: Subject
) -> None:
    assert judged[subject.file].problems == []


@_marked
@pytest.mark.parametrize("subject", OWN, ids=lambda one: one.file.removesuffix(".py"))
def test_a_cheat_of_the_device_gets_a_verdict_that_names_it(judged: dict[str, Judged], subject: Subject) -> None:
    assert subject.row is not None
    seen = {(one.status, one.rule) for one in judged[subject.file].evaluations if one.status is not Status.PASSED}
    assert seen <= subject.row.verdicts, judged[subject.file].evaluations[0].reason


@_marked
def test_an_honest_kernel_is_not_what_the_corpus_calls_caught(judged: dict[str, Judged]) -> None:
    cheat = next(one for one in ALL if one.file == "c14_event_elapsed_time.py")
    honest = judged["g03_library_call.py"]
    assert Judged(cheat, honest.evaluations).outcome == "missed"


def test_every_python_file_of_the_corpus_is_ported_or_has_a_reason() -> None:
    listed = {one.file for one in ALL} | NOT_PORTED.keys()
    assert {file for file in HONEST if file.endswith(".py")} <= listed
    assert all(len(reason) > 20 for reason in NOT_PORTED.values())
    assert not {one.file for one in ALL} & {file for file, why in NOT_PORTED.items() if "twin" not in why}


def test_a_ported_file_allocates_on_the_device_and_burns_device_time() -> None:
    texts = {one.file: one.entry.source for one in ALL}
    assert "torch.zeros(x.shape[0], weight.shape[0], device='cuda')" in texts["v07_hard_coded_shape.py"]
    assert "_sleep" in texts["c01_pointer_keyed_cache.py"]
    assert "while" not in texts["c01_pointer_keyed_cache.py"]
    assert ".cpu().numpy()" in texts["c03_content_memo.py"]


def test_a_cheat_that_passes_is_neutralised_by_its_true_time_only() -> None:
    row = Row("C0", "none", "slow", NOTHING, "fast", true_us=2000.0)
    assert outcome_of_pass(row, [[2001.0, 2100.0], [2050.0]]) == "neutralised"
    assert outcome_of_pass(row, [[2001.0, 12.0], [2050.0]]) == "missed"
    assert outcome_of_pass(replace(row, true_us=None), [[2001.0]]) == "missed"
    assert outcome_of_pass(replace(row, slowest_only=True), [[2001.0, 12.0]]) == "neutralised"
