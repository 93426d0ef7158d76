"""Accidents of other projects, replayed: each names what happened and where, and shows that it cannot happen here."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fib_core.runtime as fib
from fib_core.errors import ContractError
from fib_core.index.lookup import find
from fib_core.runtime import table as reader
from fib_core.runtime.device_class import aliases_of, class_under
from fib_core.runtime.proof import prove
from fib_core.runtime.table import Table
from fib_core.workloads.axisclass import axis_class, class_key, class_step
from tests.fakes.memory_store import MemoryStore
from tests.runtime.callers import GAIN, counted, own_scale, rows, scaled
from tests.runtime.published import (
    HERE,
    SCALE,
    SCALE_DPS,
    SCALE_VALUE,
    evidence,
    index,
    modern,
    publish,
    solution,
)

CHECKOUT = Path(__file__).parents[2]
CHOSEN = solution(SCALE, SCALE_VALUE)


# vLLM #44830: a fused-MoE file with keys 96 to 1024 only; the loader takes the nearest M, so M=1 ran the M=96 config.


@pytest.mark.parametrize("count", [1, 2, 48, 95, 1025, 4096])
def test_nearest_m_lookup_m_1_is_never_served_by_the_entry_of_m_96(serve, count: int) -> None:
    serve(modern(scaled(boxes=((96, 96), (512, 1024)))))
    own = own_scale()
    fib.apply("scale_h4")(own)(rows(count), GAIN)
    assert (len(own.calls), counted()["miss"]) == (1, {"outside_every_box": 1})


def test_nearest_m_lookup_a_reader_that_takes_the_nearest_entry_fails_the_proof(monkeypatch) -> None:
    """Negative control: the proof catches the accident itself."""
    store = MemoryStore()
    digest = publish(store, modern(scaled(boxes=((96, 128),))))
    prove(lambda name: store.get(name).body, digest)
    monkeypatch.setattr(reader, "covers", lambda box, axes: True)
    with pytest.raises(ContractError, match="no box covers it, yet rows=128 serves it"):
        prove(lambda name: store.get(name).body, digest)


def test_nearest_m_lookup_a_reader_that_has_an_answer_for_every_large_call_fails_the_proof(monkeypatch) -> None:
    store = MemoryStore()
    digest = publish(store, modern(scaled(boxes=((96, 200),))))
    sound = reader.covers
    monkeypatch.setattr(reader, "covers", lambda box, axes: axes["rows"] > 300 or sound(box, axes))
    with pytest.raises(ContractError, match="at rows=401: no box covers it, yet rows=200 serves it"):
        prove(lambda name: store.get(name).body, digest)


# vLLM #23271, #23642, #50436: files named NVIDIA_H100 or after a driver's latest spelling, which no process ever loads.


def test_a_file_that_no_device_name_matches_every_spelling_derives_the_entrys_class() -> None:
    device_class = "sm_90a/132/hbm3e"
    made, owned = modern(index((SCALE, [((2, 4), CHOSEN)]), device_class=device_class))
    table = Table(made.definitions[0], SCALE, {digest: chosen for digest, (_, chosen) in owned.items()})
    for alias in aliases_of(device_class):
        assert table.find({"rows": 3}, class_under(device_class, alias)).entry is not None


@pytest.mark.parametrize("name", ["NVIDIA_H100", "AMD_Instinct_MI325X", "cuda:0"])
def test_a_file_that_no_device_name_matches_is_refused_before_it_is_published(name: str) -> None:
    store = MemoryStore()
    digest = publish(store, modern(index((SCALE, [((2, 4), CHOSEN)]), device_class=name)))
    with pytest.raises(ContractError, match=f"calls itself {name}"):
        prove(lambda key: store.get(key).body, digest)


# AITER: rows of several tuning tables are merged by the smallest recorded time, so the luckiest machine wins.


def test_merging_tables_by_smallest_time_two_decisions_on_one_key_are_a_conflict() -> None:
    from tests.core.test_dispatch import PROMOTED, WALKED, build

    lucky = PROMOTED[0].model_copy(
        update={"campaign": 7, "estimates": (PROMOTED[0].estimates[0].model_copy(update={"ratio": 99.0}),)}
    )
    for decisions in ([*WALKED.decisions, lucky], [lucky, *WALKED.decisions]):
        with pytest.raises(ContractError, match="two decisions about one key"):
            build(decisions=decisions)
    (block,) = build(decisions=[lucky if item is PROMOTED[0] else item for item in WALKED.decisions]).definitions
    assert lucky.digest in {item.decision_digest for entry in block.entries for item in entry.evidence}


def test_merging_tables_by_smallest_time_two_entries_on_one_call_serve_nobody(serve) -> None:
    made, owned = modern(index((SCALE, [((2, 4), CHOSEN), ((2, 4), solution(SCALE, SCALE_DPS, dps=True))])))
    serve((made, owned))
    own = own_scale()
    fib.apply("scale_h4")(own)(rows(3), GAIN)
    assert (len(own.calls), counted()["miss"]) == (1, {"ambiguous_entries": 1})


# flashinfer autotuner: any mismatch in its metadata skips the whole cache; TensorRT #2144: a hard error.


def one_stale() -> tuple:
    made, owned = modern(scaled(boxes=((2, 4), (6, 8), (10, 12))))
    block = made.definitions[0]
    old = block.entries[1]
    proof = evidence(SCALE, old, library_versions={"torch": "1.0"})
    entries = (block.entries[0], old.model_copy(update={"evidence": (proof,)}), block.entries[2])
    return made.model_copy(update={"definitions": (block.model_copy(update={"entries": entries}),)}), owned


def test_whole_table_invalidation_one_stale_entry_leaves_the_rest_served(serve, warnings_of) -> None:
    serve(one_stale())
    own = own_scale()
    served = fib.apply("scale_h4")(own)
    for count in (3, 7, 8, 11):
        served(rows(count), GAIN)
    found = counted()
    assert (found["hit"], found["miss"], len(own.calls)) == (2, {"stale_library": 2}, 2)
    assert found["entries"]["rows=8"]["state"].startswith("stale: measured with torch 1.0")
    assert any("rows=8" in text and "torch 1.0" in text for text in warnings_of())
    assert fib.prepare()[SCALE.digest]["rows=8"].startswith("stale")
    assert fib.prepare()[SCALE.digest]["rows=4"] == "ready"


# flashinfer #3449, #3707, #3566: a plan index that another version numbers otherwise kills the engine.


@settings(max_examples=20, deadline=None)
@given(order=st.permutations(range(3)))
def test_plan_index_instead_of_name_the_order_of_solutions_and_entries_changes_nothing(order: list[int]) -> None:
    sources = [SCALE_VALUE, SCALE_VALUE + "# b\n", SCALE_VALUE + "# c\n"]
    boxes = [((2, 4), sources[0]), ((6, 8), sources[1]), ((10, 12), sources[2])]
    made, owned = modern(index((SCALE, [(box, solution(SCALE, source)) for box, source in boxes])))
    block = made.definitions[0]
    shuffled = made.model_copy(update={
        "solutions": tuple(made.solutions[place] for place in order),
        "definitions": (block.model_copy(update={"entries": tuple(block.entries[place] for place in order)}),),
    })  # fmt: skip
    chosen = {digest: one for digest, (_, one) in owned.items()}
    for size in range(14):
        one = find(made, SCALE.digest, {"rows": size}, HERE)
        assert find(shuffled, SCALE.digest, {"rows": size}, HERE) == one
        assert Table(shuffled.definitions[0], SCALE, chosen).find({"rows": size}, HERE).entry == one


def test_plan_index_instead_of_name_a_solution_that_fails_is_a_miss_and_no_crash(serve) -> None:
    serve(modern(scaled("def run(x, gain):\n    raise RuntimeError('Plan index 7 is invalid')\n")))
    own = own_scale()
    fib.apply("scale_h4")(own)(rows(3), GAIN)
    assert (len(own.calls), counted()["miss"]) == (1, {"solution_failed": 1})


# Megatron #6966: the ranks of one job chose different kernels for 13 of 22 shapes.

RANK = """
import json, random, sys
sys.path.insert(0, {root!r})
from fib_core.runtime.table import Table
from tests.runtime.published import HERE, SCALE, SCALE_VALUE, index, modern, solution
boxes = [((2 ** n // 2 + 1, 2 ** n), solution(SCALE, SCALE_VALUE + "#" * n)) for n in range(1, 8)]
made, owned = modern(index((SCALE, boxes)))
table = Table(made.definitions[0], SCALE, {{d: s for d, (_, s) in owned.items()}})
calls = list(range(140)); random.Random({seed}).shuffle(calls)
chosen = {{n: getattr(table.find({{"rows": n}}, HERE).entry, "solution_digest", None) for n in calls}}
print(json.dumps([made.digest, sorted(chosen.items())]))
"""


def test_ranks_disagreeing_every_process_chooses_the_same_whatever_its_hash_seed_and_order() -> None:
    answers = set()
    for seed in ("0", "1", "4242"):
        code = RANK.format(root=str(CHECKOUT), seed=seed)
        done = subprocess.run(
            [sys.executable, "-c", code], cwd=CHECKOUT, env={"PYTHONHASHSEED": seed, "PATH": "/usr/bin"},
            capture_output=True, text=True, timeout=90, check=True,
        )  # fmt: skip
        answers.add(done.stdout)
    (answer,) = answers
    chosen = dict(json.loads(answer)[1])
    assert len({digest for digest in chosen.values() if digest}) == 7
    assert chosen[0] is None


# flashinfer #3192: the builder rounded sizes down to a bucket, the loader rounded them up; NaN and Inf came out.


@given(st.integers(0, 1 << 20))
def test_floor_against_ceil_buckets_one_function_names_keys_and_files_boxes(size: int) -> None:
    top = axis_class(size)
    assert top // 2 < size <= top or size == top == 0
    assert class_key({"M": size}) == f"M={top}" == class_key({"M": top})
    assert class_step(top) == class_step(size)


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 70), st.integers(0, 70), st.integers(0, 140))
def test_floor_against_ceil_buckets_a_box_is_found_exactly_inside_its_ends(low: int, more: int, size: int) -> None:
    made, owned = modern(index((SCALE, [((low, low + more), CHOSEN)])))
    table = Table(made.definitions[0], SCALE, {digest: chosen for digest, (_, chosen) in owned.items()})
    assert (table.find({"rows": size}, HERE).entry is not None) == (low <= size <= low + more)


def test_floor_against_ceil_buckets_a_reader_that_rounds_down_fails_the_proof(monkeypatch) -> None:
    """Negative control: boxes filed by one function and sought by another are found unreachable."""
    store = MemoryStore()
    digest = publish(store, modern(scaled(boxes=((5, 8), (9, 16)))))
    sought = Table._classes
    monkeypatch.setattr(Table, "_classes", lambda self, axes: tuple(step // 2 for step in sought(self, axes)))
    with pytest.raises(ContractError, match="rows=8 at rows=5: outside_every_box"):
        prove(lambda name: store.get(name).body, digest)
