"""apply: a covered call runs the chosen solution, every other call runs the caller's function, nothing is lost."""

import threading
from importlib.metadata import version

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import fib_core.runtime as fib
from fib_core.errors import BuildError
from schemas.canonical import digest_of
from tests.runtime.published import (
    FUSED,
    FUSED_DPS,
    FUSED_VALUE,
    SCALE,
    SCALE_DPS,
    SCALE_VALUE,
    build,
    index,
    solution,
)

GAIN = torch.tensor([1.0, 2.0, 3.0, 4.0])


class Own:
    """The caller's function; remembers the arguments of every call."""

    def __init__(self, function):
        self.function, self.calls, self.__name__ = function, [], "own"

    def __call__(self, *args, **kwargs):
        self.calls.append((args, kwargs))
        return self.function(*args, **kwargs)


def own_scale():
    return Own(lambda x, gain: x * gain)


def own_fused():
    def fused(x, residual, gain):
        residual.add_(x)
        return residual * gain, residual

    return Own(fused)


def scaled(source=SCALE_VALUE, boxes=((2, 4),), **more):
    return index((SCALE, [(box, solution(SCALE, source, **more)) for box in boxes]))


def rows(count):
    return torch.arange(count * 4, dtype=torch.float32).reshape(count, 4) + 1


def counted(name="scale_h4"):
    return fib.stats()["definitions"][name]


@pytest.mark.parametrize(("source", "dps"), [(SCALE_VALUE, False), (SCALE_DPS, True)])
@pytest.mark.parametrize("named", [False, True])
def test_a_covered_call_runs_the_solution_and_gives_the_callers_result(serve, source, dps, named):
    serve(scaled(source, dps=dps))
    own = own_scale()
    served = fib.apply("scale_h4")(own)
    result = served(x=rows(3), gain=GAIN) if named else served(rows(3), GAIN)
    assert torch.equal(result, rows(3) * GAIN)
    assert own.calls == []
    assert counted()["hit"] == 1
    assert counted()["entries"]["rows=4"] == {"hit": 1, "incumbent": 0, "state": "ready"}


def test_the_solution_really_ran_and_not_a_copy_of_the_callers_function(serve):
    """Negative control: a solution with another answer gives another answer."""
    serve(scaled("def run(x, gain):\n    return x * gain + 1\n"))
    assert torch.equal(fib.apply("scale_h4")(own_scale())(rows(3), GAIN), rows(3) * GAIN + 1)


def test_the_call_form_and_a_digest_reach_the_same_entry(serve):
    serve(scaled())
    own = own_scale()
    for name in ("scale_h4", SCALE.digest):
        assert torch.equal(fib.apply(name, (rows(2),), {"gain": GAIN}, fallback=own), rows(2) * GAIN)
        assert counted(name)["hit"] == 1
    assert own.calls == []


def test_the_call_form_without_a_fallback_is_the_callers_mistake(serve):
    serve(scaled())
    with pytest.raises(TypeError, match="fallback"):
        fib.apply("scale_h4", (rows(2), GAIN))


@pytest.mark.parametrize("count", [0, 1, 5, 4096])
def test_a_call_outside_the_box_gets_the_callers_function_with_its_own_arguments(serve, count):
    serve(scaled())
    own, x = own_scale(), rows(count)
    assert torch.equal(fib.apply("scale_h4")(own)(x, gain=GAIN), x * GAIN)
    (args, kwargs), = own.calls
    assert args[0] is x
    assert kwargs["gain"] is GAIN
    assert counted()["miss"] == {"outside_every_box": 1}


BOXES = ((1, 1), (3, 4), (6, 8), (20, 30))


@settings(max_examples=60, deadline=None)
@given(count=st.integers(0, 64))
def test_only_a_size_inside_a_box_is_ever_served(count):
    made, _ = scaled(boxes=BOXES)
    pulled = fib.PulledIndex(made.digest, made, {SCALE.digest: SCALE}, {d: s for d, (_, s) in _.items()})
    fib.use(pulled, build)
    own = own_scale()
    fib.apply("scale_h4")(own)(rows(count), GAIN)
    inside = any(low <= count <= high for low, high in BOXES)
    assert (counted()["hit"], len(own.calls)) == ((1, 0) if inside else (0, 1))


MISFITS = {
    "dtype": (rows(3).double(), GAIN),
    "layout": (rows(6)[::2], GAIN),
    "shape": (torch.ones(3, 5), torch.ones(5)),
    "type": ([[1.0, 2.0, 3.0, 4.0]] * 3, GAIN),
    "gradient": (rows(3).requires_grad_(), GAIN),
    "device": (rows(3), GAIN.to("meta")),
}


@pytest.mark.parametrize("reason", MISFITS)
def test_a_call_that_is_not_what_was_measured_is_a_miss_with_its_reason(serve, reason):
    serve(scaled())
    own = Own(lambda x, gain: (x, gain))
    x, gain = MISFITS[reason]
    result = fib.apply("scale_h4")(own)(x, gain)
    assert result[0] is x
    assert result[1] is gain
    assert counted()["miss"] == {reason: 1}


@pytest.mark.parametrize(
    ("args", "kwargs"), [((), {}), ((1, 2, 3), {}), ((1,), {"weight": 2}), ((1, 2), {"gain": 3}), ((), {"x": 1})]
)
def test_arguments_that_do_not_bind_go_to_the_callers_function_untouched(serve, args, kwargs):
    serve(scaled())
    own = Own(lambda *args, **kwargs: "own answer")
    assert fib.apply("scale_h4")(own)(*args, **kwargs) == "own answer"
    assert own.calls == [(args, kwargs)]
    assert counted()["miss"] == {"arguments": 1}


def test_parameters_are_served_when_no_gradient_is_wanted(serve):
    serve(scaled())
    served = fib.apply("scale_h4")(own_scale())
    with torch.no_grad():
        result = served(rows(3), torch.nn.Parameter(GAIN))
    assert counted()["hit"] == 1
    assert not result.requires_grad


def test_another_device_class_is_a_miss_and_is_said_once(serve, warnings_of):
    serve(index((SCALE, [((2, 4), solution(SCALE, SCALE_VALUE))]), device_class="sm_90a/132/hbm3e"))
    served = fib.apply("scale_h4")(own_scale())
    for count in (2, 3, 4):
        served(rows(count), GAIN)
    assert counted()["miss"] == {"other_device_class": 3}
    (said,) = warnings_of()
    assert "sm_90a/132/hbm3e" in said


def test_another_number_of_threads_is_another_device_class_even_within_a_process(serve, warnings_of):
    serve(scaled())
    served = fib.apply("scale_h4")(own_scale())
    served(rows(3), GAIN)
    torch.set_num_threads(2)
    served(rows(3), GAIN)
    torch.set_num_threads(1)
    served(rows(3), GAIN)
    assert (counted()["hit"], counted()["miss"]) == (2, {"other_device_class": 1})
    assert "torch.set_num_threads" in warnings_of()[0]


def test_two_entries_that_cover_one_call_serve_nobody(serve):
    serve(scaled(boxes=((2, 4), (3, 8))))
    served = fib.apply("scale_h4")(own_scale())
    served(rows(4), GAIN)
    served(rows(2), GAIN)
    assert (counted()["miss"], counted()["hit"]) == ({"ambiguous_entries": 1}, 1)


def test_an_entry_of_the_incumbent_runs_the_callers_function_and_is_no_miss(serve):
    serve(index((SCALE, [((2, 4), None)])))
    own = own_scale()
    fib.apply("scale_h4")(own)(rows(3), GAIN)
    assert len(own.calls) == 1
    assert (counted()["incumbent"], counted()["hit"], counted()["miss"]) == (1, 0, {})


def test_what_a_solution_does_not_support_inside_its_box_is_a_miss(serve):
    serve(scaled(boxes=((2, 8),), supports=("rows % 2 == 0",)))
    served = fib.apply("scale_h4")(own_scale())
    for count in (2, 3, 4):
        served(rows(count), GAIN)
    assert (counted()["hit"], counted()["miss"]) == (2, {"solution_does_not_support": 1})


def test_a_claim_of_another_incumbent_gets_the_callers_function(serve):
    serve(scaled())
    served = fib.apply("scale_h4", incumbent=digest_of("something else"))(own_scale())
    served(rows(3), GAIN)
    assert counted()["miss"] == {"other_incumbent": 1}
    fib.apply("scale_h4", incumbent=digest_of("incumbent scale_h4"))(own_scale())(rows(3), GAIN)
    assert counted()["hit"] == 1


@pytest.mark.parametrize(("source", "dps"), [(FUSED_VALUE, False), (FUSED_DPS, True)])
@pytest.mark.parametrize("count", [3, 5])
def test_an_input_that_is_changed_in_place_is_the_callers_own_tensor_on_hit_and_miss(serve, source, dps, count):
    serve(index((FUSED, [((2, 4), solution(FUSED, source, dps=dps))])))
    own, residual = own_fused(), rows(count)
    y, out = fib.apply("fused_add_scale_h4")(own)(rows(count), residual, GAIN)
    assert out is residual
    assert torch.equal(residual, rows(count) * 2)
    assert torch.equal(y, rows(count) * 2 * GAIN)
    assert len(own.calls) == (0 if count == 3 else 1)


def test_fresh_leaves_out_what_the_caller_already_holds(serve):
    serve(index((FUSED, [((2, 4), solution(FUSED, FUSED_DPS, dps=True))])))
    residual = rows(3)
    y = fib.apply("fused_add_scale_h4", returns="fresh")(own_fused())(rows(3), residual, GAIN)
    assert torch.equal(y, rows(3) * 2 * GAIN)
    assert torch.equal(residual, rows(3) * 2)


def test_memory_shared_with_a_changed_input_is_a_miss(serve):
    serve(index((FUSED, [((2, 4), solution(FUSED, FUSED_VALUE))])))
    x, buffer = rows(3), rows(6)
    served = fib.apply("fused_add_scale_h4")(Own(lambda x, residual, gain: None))
    served(x, x, GAIN)
    served(buffer[:3], buffer[2:5], GAIN)
    served(buffer[:3], buffer[3:], GAIN)
    found = counted("fused_add_scale_h4")
    assert (found["hit"], found["miss"]) == (1, {"aliasing": 2})


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
