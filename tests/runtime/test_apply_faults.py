"""apply when something is wrong: a build, a call, a definition, the index; the caller always gets its answer."""

import threading
from importlib.metadata import version

import pytest
import torch

import fib_core.runtime as fib
from fib_core.errors import BuildError
from tests.runtime.callers import GAIN, counted, own_fused, own_scale, rows, scaled
from tests.runtime.published import (
    FUSED,
    SCALE,
    build,
    index,
    solution,
)


def test_a_solution_that_does_not_build_is_off_and_tried_once(serve, warnings_of):
    tries = []

    def broken(chosen, digest, folder):
        tries.append(digest)
        raise BuildError("k.cc:1: expected ;", log="long log")

    serve(scaled(), broken)
    served = fib.apply("scale_h4")(own_scale())
    for _ in range(3):
        assert torch.equal(served(rows(3), GAIN), rows(3) * GAIN)
    assert len(tries) == 1
    assert counted()["miss"] == {"solution_failed": 3}
    assert "expected ;" in counted()["entries"]["rows=4"]["state"]
    assert len(warnings_of()) == 1


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("def run(x, gain):\n    raise RuntimeError('no such tile')\n", "no such tile"),
        ("def run(x, gain):\n    return x[:1] * gain\n", "WrongResult"),
        ("def run(x, gain):\n    return x.double() * gain\n", "WrongResult"),
        ("def run(x, gain):\n    return x * gain, x\n", "returned 2 values"),
        ("def run(x, gain):\n    return None\n", "returned 0 values"),
    ],
)
def test_a_solution_that_fails_at_the_call_is_off_and_the_caller_gets_a_result(serve, source, said):
    serve(scaled(source, boxes=((2, 4), (6, 8))))
    own = own_scale()
    served = fib.apply("scale_h4")(own)
    for _ in range(2):
        assert torch.equal(served(rows(3), GAIN), rows(3) * GAIN)
    assert len(own.calls) == 2
    assert said in counted()["entries"]["rows=4"]["state"]
    assert counted()["entries"]["rows=8"]["state"] == "unused"


def test_an_exception_after_a_possible_change_in_place_is_the_callers_and_the_entry_is_off(serve):
    source = "def run(x, residual, gain):\n    residual += x\n    raise RuntimeError('half done')\n"
    serve(index((FUSED, [((2, 4), solution(FUSED, source))])))
    own = own_fused()
    served = fib.apply("fused_add_scale_h4")(own)
    with pytest.raises(RuntimeError, match="half done"):
        served(rows(3), rows(3), GAIN)
    assert own.calls == []
    served(rows(3), rows(3), GAIN)
    assert len(own.calls) == 1
    assert counted("fused_add_scale_h4")["miss"] == {"solution_failed": 2}


def test_an_exception_of_the_callers_own_function_stays_the_callers(serve):
    serve(scaled())

    def own(x, gain):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        fib.apply("scale_h4")(own)(rows(5), GAIN)
    assert counted()["entries"]["rows=4"]["state"] == "unused"


def test_an_unknown_definition_is_served_by_the_caller_and_close_names_are_said(serve, warnings_of):
    serve(scaled())
    assert torch.equal(fib.apply("scale_h5")(own_scale())(rows(3), GAIN), rows(3) * GAIN)
    assert counted("scale_h5")["miss"] == {"unknown_definition": 1}
    assert "scale_h4" in warnings_of()[0]


def test_the_switch_turns_everything_off(serve, monkeypatch):
    monkeypatch.setenv("FIB_APPLY", "0")
    serve(scaled())
    own = own_scale()
    fib.apply("scale_h4")(own)(rows(3), GAIN)
    assert len(own.calls) == 1
    assert counted()["miss"] == {"disabled": 1}


def test_without_an_index_everything_runs_as_before_and_says_so_once(warnings_of):
    own = own_scale()
    served = fib.apply("scale_h4")(own)
    for _ in range(3):
        assert torch.equal(served(rows(3), GAIN), rows(3) * GAIN)
    assert counted()["miss"] == {"no_index": 3}
    (said,) = warnings_of()
    assert "fib pull" in said


def test_the_first_call_finds_the_pulled_index_by_itself_and_a_pin_is_obeyed(serve, monkeypatch):
    old = serve(scaled()).index_digest
    serve(index((SCALE, [((2, 4), None)])))
    for pin, digest in ((old, old), ("quick", fib.load().index_digest)):
        monkeypatch.setenv("FIB_INDEX", pin)
        fib.reset()
        fib.apply("scale_h4")(own_scale())(rows(5), GAIN)
        assert fib.stats()["index_digest"] == digest
    assert old != digest


def test_choosing_another_index_reaches_functions_that_are_decorated_already(serve):
    serve(scaled())
    served = fib.apply("scale_h4")(own_scale())
    served(rows(3), GAIN)
    serve(index((SCALE, [((2, 4), None)])))
    served(rows(3), GAIN)
    assert (counted()["hit"], counted()["incumbent"]) == (0, 1)


def test_another_library_version_than_the_measured_one_is_said(serve, warnings_of):
    made, owned = scaled()
    serve((made.model_copy(update={"library_versions": {"torch": "1.0", "python": "3.11.4"}}), owned))
    fib.apply("scale_h4")(own_scale())(rows(3), GAIN)
    assert fib.stats()["library_differences"] == {"torch": ["1.0", version("torch")]}
    assert "torch 1.0" in warnings_of()[0]
    serve((made.model_copy(update={"library_versions": {"torch": version("torch")}}), owned))
    assert fib.stats()["library_differences"] == {}


def test_preparing_builds_before_traffic(serve):
    built = []
    serve(scaled(boxes=((2, 4), (6, 8))), lambda *args: built.append(args[1]) or build(*args))
    assert fib.prepare() == {SCALE.digest: {"rows=4": "ready", "rows=8": "ready"}}
    fib.apply(SCALE.digest)(own_scale())(rows(3), GAIN)
    assert len(built) == 2


def test_threads_share_one_build_and_every_call_is_counted_once(serve):
    started, go, builds = threading.Event(), threading.Event(), []

    def slow(*args):
        builds.append(1)
        started.set()
        go.wait(10)
        return build(*args)

    serve(scaled(), slow)
    own = own_scale()
    served = fib.apply("scale_h4")(own)
    first = threading.Thread(target=served, args=(rows(3), GAIN))
    first.start()
    assert started.wait(10)
    served(rows(3), GAIN)  # somebody else is building: this call does not wait
    assert len(own.calls) == 1
    go.set()
    first.join()
    crowd = [threading.Thread(target=lambda: [served(rows(3), GAIN) for _ in range(200)]) for _ in range(4)]
    for thread in crowd:
        thread.start()
    for thread in crowd:
        thread.join()
    assert len(builds) == 1
    assert (counted()["hit"], counted()["miss"]) == (801, {"building": 1})
