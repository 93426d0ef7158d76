"""Gates of the machine: a device that changed under a contest is named, honest noise is not, and nobody is judged."""

import random
from collections.abc import Callable, Iterable
from itertools import count

import pytest

from fib_core import confirm
from fib_core.decision.gates import causes, half_shift, round_levels
from fib_core.decision.profiles import FULL, QUICK
from schemas.environment import Conditions
from schemas.evaluation import Evaluation
from tests.core.road import round_request, walk
from tests.core.world import DEVICE, World, gemm, solution
from tests.core.world import QUICK as WIDE_QUICK

DEFINITION = gemm()
WALKED = walk(World({"old": 1.0, "fast": 0.7}, noise=0.01), [solution("fast", DEFINITION)], rounds=8)
Change = Callable[[Evaluation], Evaluation]


def changed(change: Change) -> dict[str, Evaluation]:
    return {digest: change(item) for digest, item in WALKED.rounds.items()}


def slowed(factor: Callable[[int], float]) -> Change:
    def change(item: Evaluation) -> Evaluation:
        times = tuple(time * factor(item.job.round) for time in item.samples_us)
        return item.model_copy(update={"samples_us": times})

    return change


def found(change: Change) -> list[tuple[str, ...]]:
    """Causes of all decisions that came to a look; each of them must be INVALID and promote nobody."""
    decisions = confirm.decide(WALKED.contest, changed(change), WIDE_QUICK, DEVICE)
    judged = [item for item in decisions if item.estimates]
    assert judged
    for item in judged:
        assert (item.verdict == "invalid") == bool(item.causes)
        assert (item.solution_digest is None) == bool(item.causes)
        assert all(cause in item.reason for cause in item.causes)
    assert not confirm.needs_more_rounds(judged)
    return [item.causes for item in judged]


def test_on_a_sound_machine_the_same_contest_promotes() -> None:
    assert set(found(lambda item: item)) == {()}


@pytest.mark.parametrize("after", [3, 4, 5])
def test_a_step_of_fifteen_percent_in_the_middle_is_drift(after: int) -> None:
    for cause in found(slowed(lambda number: 1.15 if number > after else 1.0)):
        assert cause[0].startswith("drift: the incumbent ran 1")
        assert cause[0].endswith("slower in the second half (limit 7%)")


def test_a_throttling_ramp_is_drift_and_so_is_a_device_that_gets_faster() -> None:
    assert all(cause[0].startswith("drift") for cause in found(slowed(lambda number: 1 + 0.2 * number / 8)))
    assert all("faster" in cause[0] for cause in found(slowed(lambda number: 1 - 0.2 * number / 8)))


def test_a_step_that_is_smaller_than_the_limit_is_none() -> None:
    assert set(found(slowed(lambda number: 1.03 if number > 4 else 1.0))) == {()}


def test_a_candidate_that_changes_its_pace_is_no_fault_of_the_machine() -> None:
    def change(item: Evaluation) -> Evaluation:
        late = item.job.role == "candidate" and item.job.round > 4
        return slowed(lambda _: 1.2)(item) if late else item

    assert set(found(change)) == {()}


def levels(rng: random.Random, rounds: int, noise: float, drift: float = 0.0, kept: float = 0.9) -> list[float]:
    level, out = rng.gauss(0, drift), []
    for _ in range(rounds):
        level = kept * level + rng.gauss(0, drift * (1 - kept**2) ** 0.5)
        out.append(level + rng.gauss(0, noise))
    return out


@pytest.mark.parametrize(("rounds", "limit"), [(8, QUICK.drift_max), (10, FULL.drift_max), (20, FULL.drift_max)])
@pytest.mark.parametrize(
    ("noise", "drift", "kept"), [(0.006, 0.01, 0.8), (0.006, 0.01, 0.97), (0.15, 0.0, 0.0), (0.03, 0.0, 0.0)]
)
def test_honest_noise_of_any_size_trips_the_drift_gate_in_less_than_one_percent(
    rounds: int, limit: float, noise: float, drift: float, kept: float
) -> None:
    rng, trials = random.Random(f"{rounds}/{noise}/{kept}"), 1000
    shifts = (half_shift(levels(rng, rounds, noise, drift, kept)) for _ in range(trials))
    tripped = sum(abs(shift) > max(limit, 3.5 * error) for shift, error in shifts)
    assert tripped / trials < 0.01


@pytest.mark.parametrize(("rounds", "least"), [(8, 0.85), (10, 0.97), (20, 0.97)])
def test_a_step_of_ten_percent_is_caught_under_that_noise(rounds: int, least: float) -> None:
    rng, trials = random.Random(rounds), 500
    limit = QUICK.drift_max if rounds == 8 else FULL.drift_max
    caught = 0
    for _ in range(trials):
        steps = [0.0] * (rounds // 2) + [0.1] * (rounds - rounds // 2)
        shift, error = half_shift([a + b for a, b in zip(levels(rng, rounds, 0.006, 0.01), steps, strict=True)])
        caught += shift > max(limit, 3.5 * error)
    assert caught / trials > least


def test_one_slow_round_is_no_drift() -> None:
    assert set(found(slowed(lambda number: 3.0 if number == 6 else 1.0))) == {()}


def test_levels_do_not_depend_on_how_long_a_workload_takes() -> None:
    watched = [item for item in WALKED.rounds.values() if item.job.role != "candidate"]
    longer = [
        item.model_copy(update={"samples_us": tuple(1000 * time for time in item.samples_us)})
        if item.job.workload_digest == watched[0].job.workload_digest
        else item
        for item in watched
    ]
    assert round_levels(longer) == pytest.approx(round_levels(watched))


def with_clock(clock_mhz: Callable[[int], float | None]) -> Change:
    def change(item: Evaluation) -> Evaluation:
        environment = item.environment.model_copy(
            update={"clock_mhz": clock_mhz(item.job.round), "device_class": "sm_90a/132/hbm3e"}
        )
        return item.model_copy(update={"environment": environment})

    return change


def test_a_clock_that_moves_by_more_than_fifty_megahertz_is_named_and_by_less_is_not() -> None:
    text = "clocks: the highest clock was 1900 to 1980 MHz, by round"
    assert set(found(with_clock(lambda number: 1980.0 if number < 5 else 1900.0))) == {(text,)}
    assert set(found(with_clock(lambda number: 1980.0 if number < 5 else 1935.0))) == {()}
    assert set(found(with_clock(lambda number: None))) == {()}


def around(conditions: Callable[[int], Conditions]) -> Change:
    def change(item: Evaluation) -> Evaluation:
        return with_clock(lambda _: 1980.0)(item).model_copy(update={"conditions": conditions(item.job.round)})

    return change


def test_throttling_shows_in_the_current_clock_and_an_idle_reading_does_not_count() -> None:
    throttled = around(lambda number: Conditions(clock_mhz=1980 if number < 5 else 1500))
    assert set(found(throttled)) == {("clocks: the current clock was 1500 to 1980 MHz, by round",)}
    assert set(found(around(lambda number: Conditions(clock_mhz=1980 if number < 5 else 345)))) == {()}


def test_another_process_on_the_device_is_named_with_its_round() -> None:
    shared = around(lambda number: Conditions(other_processes=2 if number == 3 else 0))
    assert set(found(shared)) == {("another process: 2 on the device in round 3",)}
    assert set(found(around(lambda number: Conditions(other_processes=0)))) == {()}
    assert set(found(around(lambda number: Conditions()))) == {()}


def second_clock(factor: float, extra_us: float, rounds: Iterable[int] = range(1, 9)) -> Change:
    chosen = set(rounds)

    def change(item: Evaluation) -> Evaluation:
        bad = item.job.round in chosen
        times = tuple(time * (factor if bad else 1.0) + (extra_us if bad else 0.0) for time in item.samples_us)
        return item.model_copy(update={"second_clock_us": times})

    return change


@pytest.mark.parametrize(("factor", "extra_us"), [(1.5, 60.0), (0.5, 0.0)])
def test_two_clocks_that_do_not_fit_together_are_named(factor: float, extra_us: float) -> None:
    long = slowed(lambda _: 10.0)
    bad = second_clock(factor, extra_us)
    assert all(cause[0].startswith("timers disagree: ") for cause in found(lambda item: bad(long(item))))


@pytest.mark.parametrize(("factor", "extra_us"), [(1.0, 2.3), (1.1, 40.0), (0.9, 0.0)])
def test_a_launch_that_only_one_clock_sees_is_no_disagreement(factor: float, extra_us: float) -> None:
    assert set(found(second_clock(factor, extra_us))) == {()}


def test_one_visit_in_which_the_clocks_disagree_spoils_nothing() -> None:
    assert set(found(second_clock(5.0, 500.0, rounds=[4]))) == {()}


def test_a_round_that_two_devices_shared_is_no_round() -> None:
    def change(item: Evaluation) -> Evaluation:
        elsewhere = item.job.round == 2 and item.job.role == "control"
        environment = item.environment.model_copy(update={"device_id": "cpu:1" if elsewhere else "cpu:0"})
        return item.model_copy(update={"environment": environment})

    def moved(item: Evaluation) -> Evaluation:
        place = "cpu:1" if item.job.round > 4 else "cpu:0"
        return item.model_copy(update={"environment": item.environment.model_copy(update={"device_id": place})})

    assert set(found(change)) == {("devices: round 2 was measured on 2 devices",)}
    assert set(found(moved)) == {()}


def test_the_order_in_which_evaluations_come_changes_no_cause() -> None:
    watched = [slowed(lambda number: 1 + 0.3 * number)(item) for item in WALKED.rounds.values()]
    watched = [item for item in watched if item.job.role != "candidate"]
    assert causes(watched, 8, 0.07) == causes(watched[::-1], 8, 0.07) != ()


def test_what_a_sound_look_has_promoted_stays_when_the_machine_breaks_later() -> None:
    world = World({"old": 1.0, "fast": 0.7}, noise=0.004)
    walked = walk(world, [solution("fast", DEFINITION)], rules=FULL, rounds=20)
    broken = {
        digest: slowed(lambda number: 1.0 if number <= 10 else 1.5)(item) for digest, item in walked.rounds.items()
    }
    assert {item.verdict for item in confirm.decide(walked.contest, broken, FULL, DEVICE)} == {"promoted"}
    numbers = count(1)
    same = walk(World({"old": 1.0, "same": 1.0}, noise=0.004), [solution("same", DEFINITION)], rules=FULL, rounds=0)
    late: dict[str, Evaluation] = {}
    for number in range(1, 21):
        request = round_request(same.contest, number, f"s{next(numbers)}")
        change = slowed(lambda number: 1.0 if number <= 10 else 1.5)
        late |= {item.digest: change(item) for item in World({"old": 1.0, "same": 1.0}, noise=0.004).visit(request)}
    decisions = confirm.decide(same.contest, late, FULL, DEVICE)
    assert {item.verdict for item in decisions} == {"invalid"}
    assert {item.rounds for item in decisions} == {20}
