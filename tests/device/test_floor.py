"""The roofline floor in visits: impossible times are caught, honest kernels far above, broken timers a fault."""

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from incumbents import INCUMBENTS, starter
from kernels import GEMM, request, solution, workload

from fib_core.adapters import device_worker
from fib_core.adapters.device_worker import DeviceWorker
from fib_core.device.contest import Contest
from fib_core.device.environment import describe_cpu
from fib_core.device.floor import below_floor, floors_of, known_for, wrong_with
from fib_core.device.outcome import Outcome
from fib_core.device.peaks import Caches, Ceiling, PeaksRefused, Round, measure_cuda, read_caches, trusted
from fib_core.device.referee_client import Referee
from fib_core.roofline import Peaks
from schemas.evaluation import Limits, Status

HONEST = solution(GEMM, "def run(A, B):\n    return A @ B.T\n")
UNDER_REPORTED = solution(GEMM, "def run(A, B):\n    return (A + 0) @ B.T\n")
PEAKS = Peaks(near_bytes_per_s=4e11, far_bytes_per_s=1e11, near_capacity_bytes=5e5, flops_per_s=6e12)
# A timer is not cleared while five sleeps in a row end late: a busy host spoils such a visit, rightly, and its caller
# asks again, as these tests do.
TRIES, BUSY = 5, "is the host busy?"
WIDE = 3.0  # how far the fastest sample of an incumbent is above its floor at least
LIMIT_LEAST, LIMIT_MOST = Round(1, 1, 1), Round(1000, 1000, 1000)


class UnderReporting(Contest):
    """A visit in which the times of one contestant are divided by a million on their way."""

    def run(self, contestant: Any, *more: Any) -> list[Outcome]:
        self.lies = contestant.solution == UNDER_REPORTED
        return super().run(contestant, *more)

    def _duel(self, order: Any) -> Outcome:
        outcome = super()._duel(order)
        return replace(outcome, times_us=tuple(t / 1e6 for t in outcome.times_us)) if self.lies else outcome


@pytest.fixture
def trusting(worker: DeviceWorker, monkeypatch: pytest.MonkeyPatch) -> DeviceWorker:
    """A worker whose peaks are given, so that no busy host withholds the floor."""
    monkeypatch.setattr(worker, "_ceiling", Ceiling(worker._cache_dir, worker.describe(), lambda _: PEAKS))
    monkeypatch.setattr(worker._ceiling, "_read", lambda: None)
    monkeypatch.setattr(worker._ceiling, "_write", lambda peaks: None)
    return worker


def pair() -> Any:
    return request(GEMM, [UNDER_REPORTED, HONEST], [workload(GEMM, M=512)])


def test_an_impossible_time_is_cheating_and_the_honest_kernel_beside_it_passes(
    trusting: DeviceWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(device_worker, "Contest", UnderReporting)
    results = (trusting.visit(pair()) for _ in range(TRIES))
    result = next(one for one in results if one.fault is None or BUSY not in one.fault.detail)
    assert result.fault is None, result.fault
    forged, honest = result.evaluations
    assert (forged.status, forged.rule) == (Status.CHEATED, "below_floor"), forged.reason
    assert (honest.status, honest.rule) == (Status.PASSED, None), honest.reason
    assert "roofline_floor" in honest.limits.enforced


def test_a_timer_that_fails_its_test_is_the_machines_fault_and_nobodys_verdict(
    trusting: DeviceWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[dict[str, Any]] = []

    def broken(referee: Referee, child: Any) -> dict[str, Any]:
        reply = sound(referee, child)
        asked.append(reply)
        return reply | {"times_ns": [taken // 1_000_000 for taken in reply["times_ns"]]}

    sound = Referee.test_timer
    monkeypatch.setattr(device_worker, "Contest", UnderReporting)
    monkeypatch.setattr(Referee, "test_timer", broken)
    for _ in range(TRIES):
        result = trusting.visit(pair())
        assert result.fault is not None
        assert result.fault.cause == "timer_self_test", result.fault
        assert result.evaluations == ()
        (reply,) = asked
        asked.clear()
        fault = wrong_with(reply["times_ns"], reply["walls_ns"], known_for("cpu", None))
        if fault is None or BUSY not in fault:
            break
    assert fault is None, f"the control: what broke the timer is the test alone; {reply}"


def test_without_trustworthy_peaks_there_is_no_floor_and_the_record_does_not_claim_one(
    worker: DeviceWorker, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(_: object) -> Peaks:
        raise PeaksRefused("unstable")

    monkeypatch.setattr(worker, "_ceiling", Ceiling(worker._cache_dir / "none", worker.describe(), refuse))
    monkeypatch.setattr(device_worker, "Contest", UnderReporting)
    forged, honest = worker.visit(pair()).evaluations
    assert forged.status is honest.status is Status.PASSED, "nothing is held against anybody"
    assert "roofline_floor" not in honest.limits.enforced
    assert "no roofline floor" in caplog.text


@pytest.mark.gpu
@pytest.mark.skipif(shutil.which("nvidia-smi") is None, reason="no CUDA device")
def test_on_a_cuda_device_peaks_are_measured_and_its_timer_passes_its_test(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(device_worker, "Contest", UnderReporting)
    limits = Limits(visit_s=60, build_s=60, memory_bytes=16 * 2**30)
    with DeviceWorker(cache_dir=tmp_path, device="cuda:0") as running:
        result = running.visit(pair().model_copy(update={"limits": limits}))
    assert result.fault is None, result.fault
    forged, honest = result.evaluations
    assert "roofline_floor" in honest.limits.enforced
    assert (forged.status, forged.rule) == (Status.CHEATED, "below_floor"), forged.reason
    assert honest.status is Status.PASSED, honest.reason


def test_a_device_that_cannot_be_measured_has_no_peaks(worker: DeviceWorker) -> None:
    with pytest.raises(PeaksRefused, match="is gone"):
        measure_cuda(worker._ready_zygote(), "cuda:99")


@pytest.mark.parametrize("name", INCUMBENTS)
def test_an_incumbent_is_far_above_its_floor(trusting: DeviceWorker, name: str) -> None:
    target, incumbent, workloads = starter(name)
    asked = request(target, [incumbent], workloads, seed=name)
    result = trusting.visit(asked)
    assert result.fault is None, result.fault
    for found, floor in zip(result.evaluations, floors_of(asked, PEAKS), strict=True):
        assert found.status is Status.PASSED, found.reason
        assert 0 < WIDE * floor < min(found.samples_us), (floor, found.samples_us)


def test_this_hosts_peaks_are_plausible_or_refused_and_kept_for_the_next_worker(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    ceiling = Ceiling(tmp_path, describe_cpu())
    peaks = next((found for found in (ceiling.peaks(None) for _ in range(3)) if found is not None), None)
    if peaks is None:  # and whoever refused said why, each time: to measure a fourth time may well succeed
        assert len([text for text in caplog.messages if "no roofline floor" in text and text.partition("): ")[2]]) == 3
        return
    assert peaks.near_bytes_per_s >= peaks.far_bytes_per_s > 1e9

    def never(_: object) -> Peaks:
        raise AssertionError("measured again")

    assert Ceiling(tmp_path, describe_cpu(), never).peaks(None) == peaks
    elsewhere = describe_cpu().model_copy(update={"device_id": "another"})
    with pytest.raises(AssertionError, match="measured again"):
        Ceiling(tmp_path, elsewhere, never).peaks(None)


@given(values=st.lists(st.floats(1, 1000), min_size=5, max_size=8))
def test_rounds_that_agree_give_their_best_and_others_are_refused(values: list[float]) -> None:
    rounds = [Round(value, 10.0, 10.0) for value in values]
    steady = max(values) <= 1.5 * sorted(values)[len(values) // 2]
    if steady:
        assert trusted(rounds, LIMIT_LEAST, LIMIT_MOST) == Round(max(values), 10.0, 10.0)
    else:
        with pytest.raises(PeaksRefused, match="unstable"):
            trusted(rounds, LIMIT_LEAST, LIMIT_MOST)


@pytest.mark.parametrize("value", [0.5, 2000.0, float("nan")])
def test_values_that_no_device_has_are_refused(value: float) -> None:
    good = [Round(10.0, 10.0, 10.0)] * 5
    assert trusted(good, LIMIT_LEAST, LIMIT_MOST) == good[0]
    with pytest.raises(PeaksRefused):
        trusted([*good, Round(10.0, value, 10.0)], LIMIT_LEAST, LIMIT_MOST)
    with pytest.raises(PeaksRefused, match="rounds"):
        trusted(good[:4], LIMIT_LEAST, LIMIT_MOST)


def test_cache_sizes_are_read_as_the_kernel_writes_them(tmp_path: Path) -> None:
    rows = [("1", "Data", "48K"), ("1", "Instruction", "32K"), ("2", "Unified", "2048K"), ("3", "Unified", "36864K")]
    for number, row in enumerate(rows):
        place = tmp_path / f"index{number}"
        place.mkdir()
        for name, text in zip(("level", "type", "size"), row, strict=True):
            (place / name).write_text(text + "\n")
    assert read_caches(tmp_path) == Caches(48 << 10, 2 << 20, 36 << 20)
    assert read_caches(tmp_path / "nothing") == Caches(0, 0, 0)


@given(times=st.lists(st.floats(0, 1e6), max_size=9), bound=st.floats(0, 1e6))
def test_only_a_median_below_the_floor_is_suspected(times: list[float], bound: float) -> None:
    verdict = below_floor(times, bound)
    below = sum(1 for taken in times if taken < bound)
    if verdict is not None:
        assert (verdict.status, verdict.rule) == (Status.CHEATED, "below_floor")
        assert 2 * below >= len(times) > 0
    else:
        assert not times or 2 * below <= len(times)


KNOWN = known_for("cpu", None)
RIGHT = [2_060_000, 2_100_000, 9_000_000]


@pytest.mark.parametrize(
    ("times", "words"),
    [
        ([], "nothing"),
        ([2_060_000, 2_000], "at least was reported"),
        ([9_000_000, 8_000_000], "busy"),
        ([2_060_000, 20_000_000], "longer than the referee saw"),
    ],
)  # fmt: skip
def test_the_timers_test_finds_what_is_too_short_too_long_or_longer_than_seen(times: list[int], words: str) -> None:
    assert wrong_with(RIGHT, [10_000_000] * len(RIGHT), KNOWN) is None
    assert words in (wrong_with(times, [10_000_000] * len(times), KNOWN) or "")


def test_a_devices_known_call_is_as_long_as_its_highest_clock_makes_it() -> None:
    known = known_for("cuda:0", 2000.0)
    assert 1.9e6 < known.least_ns < 2e6 < known.most_ns
    assert known_for("cuda:0", None).least_ns == 0
