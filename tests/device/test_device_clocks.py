"""What the clocks of a CUDA device say about a call: pure, so that it is tested where there is no device."""

from dataclasses import replace

import pytest

from fib_core.device import device_clocks, wire
from fib_core.device.arena import Exchange

HONEST = wire.Answer(wire.OK, 0, 1, 40_000, False, 0, 0, "", b"", event_ns=12_000, cupti_ns=9_500, kernels=1)


def _calls(**changes: int) -> list[Exchange]:
    return [Exchange(replace(HONEST, call=number, **changes), 0, 400_000) for number in range(5)]


def test_an_honest_kernel_raises_no_suspicion_and_takes_what_cupti_says() -> None:
    assert device_clocks.suspicion(_calls()) is None
    assert device_clocks.primary_ns(HONEST) == 9_500
    assert device_clocks.primary_ns(HONEST, "cuda_event") == 12_000


def test_work_that_the_host_did_is_charged_to_the_call() -> None:
    assert device_clocks.primary_ns(replace(HONEST, elapsed_ns=2_100_000)) == 2_100_000


@pytest.mark.parametrize(("idle_ns", "told_ns"), [(0, 9_500), (90_000, 9_500), (350_000, 259_500)])
def test_what_the_host_does_after_the_device_is_idle_is_charged_beyond_a_return(idle_ns: int, told_ns: int) -> None:
    late = replace(HONEST, elapsed_ns=380_000, event_ns=9_500 + idle_ns, idle_ns=idle_ns)
    assert device_clocks.primary_ns(late) == told_ns
    assert device_clocks.primary_ns(late, "cuda_event") == 9_500 + idle_ns, "the events count it anyway"


def test_a_record_that_shows_only_a_decoy_is_not_believed() -> None:
    decoy = replace(HONEST, cupti_ns=1_200, event_ns=259_000, elapsed_ns=40_000)
    assert device_clocks.primary_ns(decoy) == 259_000


def test_slow_launches_are_not_the_kernels_time() -> None:
    assert device_clocks.primary_ns(replace(HONEST, elapsed_ns=345_000, event_ns=340_000)) == 9_500


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"cupti_ns": 249_000, "event_ns": 1_400}, "clock"),
        ({"cupti_ns": -2}, "clock"),
        ({"cupti_ns": -3}, "clock"),
        ({"cupti_ns": 0}, "clock"),
        ({"cupti_ns": 900_000, "event_ns": 900_000}, "clock"),
        ({"strays": 1}, "hidden_time"),
    ],
    ids=["a stream that nobody waits for", "trace taken away", "records lost", "no work", "longer than seen", "strays"],
)
def test_what_does_not_fit_is_named(changes: dict[str, int], rule: str) -> None:
    found = device_clocks.suspicion(_calls(**changes))
    assert found is not None
    assert found[0] == rule


def test_kernels_before_the_first_call_are_the_imports() -> None:
    calls = _calls()
    calls[0] = Exchange(replace(HONEST, strays=7), 0, 400_000)
    assert device_clocks.suspicion(calls) is None


def test_a_device_without_cupti_is_the_machines_fault_only_where_cupti_was_asked_for() -> None:
    blind = _calls(cupti_ns=-1)
    assert device_clocks.missing(blind, "cupti") is not None
    assert device_clocks.missing(blind, "cuda_event") is None
    assert device_clocks.missing(_calls(), "cupti") is None
