"""The two clocks of the host: what each rule notices, and that a busy host alone raises no suspicion."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fib_core.device import clocks, wire
from fib_core.device.arena import Exchange, Rest
from fib_core.device.clocks import Turn

WARMUPS = 1


def _answer(elapsed_us: float, result: int = wire.OK, head_us: float = 20, tail_us: float = 2) -> wire.Answer:
    clocks_ns = {"head_ns": int(head_us * 1e3), "tail_ns": int(tail_us * 1e3)}
    return wire.Answer(result, 0, 1, int(elapsed_us * 1e3), False, 0, 0, "", b"", **clocks_ns)


def _turns(
    elapsed_us: float = 20, primes_us: float = 60, cpu_us: float = 150, paused_cpu_us: float = 5, late_us: float = 0,
    answer: wire.Answer | None = None, count: int = 6,
) -> list[Turn]:
    """A regular contest; ``late_us``: how much later than the call's end the answers are seen (a busy host)."""
    turns, at, cpu = [], 0.0, 0.0
    called = answer or _answer(elapsed_us)
    for _ in range(count):
        before, at = Rest(int(cpu * 1e3), int(at * 1e3)), at + 100 + primes_us + late_us
        primed = Exchange(_answer(primes_us, wire.SKIPPED), 0, int((primes_us + 40 + late_us) * 1e3))
        exchange = Exchange(called, 0, int((elapsed_us + 60 + late_us) * 1e3))
        at, cpu = at + elapsed_us + 60 + late_us, cpu + cpu_us
        turns.append(Turn(before, primed, exchange, Rest(int(cpu * 1e3), int(at * 1e3))))
        at, cpu = at + 3_000, cpu + paused_cpu_us
    return turns


def _suspicion(turns: list[Turn], copied_bytes: int = 4096) -> tuple[str, str] | None:
    return clocks.suspicion(turns, copied_bytes, WARMUPS)


def test_an_honest_contest_raises_no_suspicion() -> None:
    assert _suspicion(_turns()) is None
    assert _suspicion([]) is None


@given(st.floats(0, 1e6), st.floats(0, 5_000))
def test_waiting_for_a_busy_host_is_no_suspicion(late_us: float, cold_us: float) -> None:
    assert _suspicion(_turns(late_us=late_us, primes_us=60 + cold_us, cpu_us=150 + cold_us)) is None


def test_cpu_time_that_no_call_reported_is_hidden_time() -> None:
    assert _suspicion(_turns(cpu_us=2_150))[0] == "hidden_time"


def test_the_drivers_own_waiting_is_nobodys_hidden_time_up_to_what_it_may_wait() -> None:
    """Reported 80 us, so 100 us are explained and 500 us allowed: 750 us are too much, unless the driver waited."""
    waiting = replace(_answer(20), own_ns=180_000)
    assert _suspicion(_turns(cpu_us=750))[0] == "hidden_time"
    assert _suspicion(_turns(cpu_us=750, answer=waiting)) is None
    assert _suspicion(_turns(cpu_us=860, answer=replace(waiting, own_ns=2_000_000)))[0] == "hidden_time"


def test_one_honest_call_or_an_honest_warm_up_hides_nothing() -> None:
    turns = _turns(cpu_us=2_150)
    honest = _turns()
    assert _suspicion([honest[0], *turns[1:]])[0] == "hidden_time"
    assert _suspicion([*turns[:3], honest[3], *turns[4:]])[0] == "hidden_time"


def test_a_call_cannot_have_taken_longer_than_its_answer_took_to_come() -> None:
    turns = _turns()
    longer = replace(turns[2].called, answer=_answer(500))
    assert _suspicion([*turns[:2], replace(turns[2], called=longer), *turns[3:]])[0] == "clock"


@pytest.mark.parametrize("edge", ["head_us", "tail_us"])
def test_work_before_the_start_or_after_the_end_is_hidden_time(edge: str) -> None:
    assert _suspicion(_turns(answer=_answer(20, **{edge: 200})))[0] == "hidden_time"


def test_inputs_that_the_driver_puts_in_place_lie_there_for_no_time_that_would_serve_anybody() -> None:
    def asked(head_us: float, staged_bytes: int) -> tuple[str, str] | None:
        turns = _turns(answer=_answer(20, head_us=head_us))
        return clocks.suspicion(turns, 4096, WARMUPS, staged_bytes=staged_bytes)

    assert asked(30, 8192) is None
    assert asked(90, 8192)[0] == "hidden_time"
    assert asked(90, 65_536) is None, "copying takes its time"
    assert asked(90, 0) is None, "what lay there before the order came is looked at by CPU time"


def test_copying_large_outputs_takes_time_that_nobody_hides() -> None:
    turns = _turns(cpu_us=4_150, late_us=4_000)
    assert _suspicion(turns, copied_bytes=8 << 20) is None
    assert _suspicion(turns, copied_bytes=4096)[0] == "hidden_time"


def test_however_large_the_outputs_what_follows_a_call_is_short_since_copying_is_left_out() -> None:
    turns = _turns(answer=_answer(20, tail_us=4_000), cpu_us=4_150, late_us=4_000)
    assert _suspicion(turns, copied_bytes=8 << 20)[0] == "hidden_time"


def test_threads_that_work_between_calls_are_hidden_time() -> None:
    assert _suspicion(_turns(paused_cpu_us=2_900))[0] == "hidden_time"
    assert _suspicion(_turns(paused_cpu_us=100)) is None, "threads that end or wait use a little"


def test_more_cores_than_allowed_are_hidden_time() -> None:
    busy = _turns(elapsed_us=20_000, primes_us=0, cpu_us=38_000, answer=_answer(20_000))
    assert _suspicion(busy)[0] == "hidden_time"
    assert _suspicion(_turns(elapsed_us=20_000, primes_us=0, cpu_us=20_100, answer=_answer(20_000))) is None
