"""apply: a covered call runs the chosen solution, every other call runs the caller's function, nothing is lost."""


import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import fib_core.runtime as fib
from schemas.canonical import digest_of
from tests.runtime.callers import GAIN, Own, counted, own_fused, own_scale, rows, scaled
from tests.runtime.published import (
    FUSED,
    FUSED_DPS,
    FUSED_VALUE,
    SCALE,
    SCALE_DPS,
    SCALE_VALUE,
    build,
    index,
    modern,
    solution,
)


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


@pytest.mark.parametrize("count", [3, 6, 8])
def test_a_kept_key_runs_the_callers_function_and_stats_keep_saying_why(serve, count):
    serve(modern(index((SCALE, [((2, 4), None), ((6, 8), None)]))))
    own = own_scale()
    fib.apply("scale_h4")(own)(rows(count), GAIN)
    found = counted()
    assert (len(own.calls), found["incumbent"], found["hit"], found["miss"]) == (1, 1, 0, {})
    key = "rows=4" if count < 5 else "rows=8"
    assert found["entries"][key]["incumbent"] == 1
    assert found["entries"][key]["state"] == "incumbent"
    assert found["entries"][key]["why"] == "kept incumbent: no candidate met min_effect"


def test_a_key_whose_points_lie_apart_has_two_boxes_and_one_count(serve):
    made, owned = modern(scaled(boxes=((2, 2), (4, 4))))
    block = made.definitions[0]
    one = block.entries[0].model_copy(update={"key": "rows=4", "evidence": block.entries[1].evidence})
    block = block.model_copy(update={"entries": (one, block.entries[1])})
    serve((made.model_copy(update={"definitions": (block,)}), owned))
    served = fib.apply("scale_h4")(own_scale())
    for count in (2, 3, 4):
        served(rows(count), GAIN)
    assert counted()["entries"] == {"rows=4": {"hit": 2, "incumbent": 0, "state": "ready"}}
    assert counted()["miss"] == {"outside_every_box": 1}


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
