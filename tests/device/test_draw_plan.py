"""What is drawn: two different rows in secret places, as often as they need, in orders that fit into memory."""

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from kernels import SAMPLE, definition, workload

from fib_core.device import draw_plan
from fib_core.device.case import Case
from fib_core.device.draw_plan import LEVEL, PATTERNS, DrawPlan
from fib_core.device.sampling import needed_draws


def case_of(batch: int, cap: int, top_k: int = 40, seed: str = "secret", target: Any = SAMPLE) -> Case:
    recipes = {"probs": {"type": "random", "distribution": "probs"}}
    if "top_k" in target.inputs:
        params = {"value": top_k, "count": batch}
        recipes["top_k"] = {"type": "structured", "generator": "constant", "params": params}
    options = {"device": "cpu", "seed": seed, "blob_root": None, "sampling_draws": cap}
    return Case(target, workload(target, recipes, B=batch), options)


def drawn_of(plan: DrawPlan, row: int) -> int:
    return sum(order.calls * int((order.places == row).sum()) for order in plan.orders)


@settings(max_examples=12, deadline=None)
@given(batch=st.sampled_from([1, 2, 3, 4, 7, 32]), cap=st.sampled_from([300, 4_000, 60_000]))
def test_each_row_gets_the_draws_that_it_needs_or_the_cap_and_lies_in_its_own_places(batch: int, cap: int) -> None:
    plan = DrawPlan.of(case_of(batch, cap))
    for row, tested in enumerate(plan.rows):
        assert tested.wanted == min(cap, needed_draws(tested.rows, 0, LEVEL))
        assert drawn_of(plan, row) >= tested.wanted
    assert not torch.equal(plan.rows[0].inputs["probs"], plan.rows[1].inputs["probs"])
    for order in plan.orders[:PATTERNS]:
        probs = plan.inputs(order)["probs"]
        assert probs.shape == (batch, 512)
        for place, row in enumerate(order.places.tolist()):
            assert torch.equal(probs[place], plan.rows[row].inputs["probs"][0])


def test_the_places_are_secret_and_change_from_order_to_order() -> None:
    first, other = (DrawPlan.of(case_of(32, 1_500, seed=seed)) for seed in ("one", "two"))
    assert not torch.equal(first.orders[0].places, other.orders[0].places)
    assert not torch.equal(first.orders[0].places, first.orders[1].places)
    again = DrawPlan.of(case_of(32, 1_500, seed="one"))
    assert all(torch.equal(a.places, b.places) for a, b in zip(first.orders, again.orders, strict=True))


def test_a_single_token_needs_few_draws_and_a_large_support_many() -> None:
    assert DrawPlan.of(case_of(32, 60_000, top_k=1)).rows[0].wanted < 1_000
    assert DrawPlan.of(case_of(32, 60_000, top_k=400)).rows[0].wanted > 20_000


def test_orders_are_split_until_their_outputs_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = DrawPlan.of(case_of(32, 60_000, top_k=400))
    monkeypatch.setattr(draw_plan, "_ORDER_BYTES", 64 * 1024)
    parts = DrawPlan.of(case_of(32, 60_000, top_k=400))
    assert max(order.calls for order in parts.orders) * case_of(32, 1).output_layout().total_bytes <= 64 * 1024
    assert max(order.calls for order in whole.orders) > 64
    assert drawn_of(parts, 0) == drawn_of(whole, 0)


def test_a_filter_that_all_rows_share_stays_one_number() -> None:
    shared = definition(
        "shared_filter_sampling", "sampling", {"B": None, "V": 512, "one": 1},
        {"probs": (["B", "V"], "float32"), "top_k": (["one"], "int32")}, {"samples": (["B"], "int64")},
        "import torch\ndef run(probs, top_k):\n    return torch.multinomial(probs, 1)[:, 0]\n",
    )  # fmt: skip
    recipes = {
        "probs": {"type": "random", "distribution": "probs"},
        "top_k": {"type": "structured", "generator": "constant", "params": {"value": 5, "count": 1}},
    }
    options = {"device": "cpu", "seed": "secret", "blob_root": None, "sampling_draws": 300}
    plan = DrawPlan.of(Case(shared, workload(shared, recipes, B=8), options))
    assert plan.inputs(plan.orders[0])["top_k"].tolist() == [5]
