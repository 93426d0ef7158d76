"""The call logs of the starter data: seeded, repetitive, skewed, legal, but for a few lines bad on purpose."""

import importlib.util
import json
from collections import Counter
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fib_core.collect import parse_calls
from fib_core.dedup import deduplicate
from fib_core.split import family_of
from fib_core.workloads.axisclass import class_key
from fib_core.workloads.ragged import page_counts, page_size_of
from schemas.definition import Definition

STARTER = Path(__file__).parents[2] / "infra" / "starter"
FAMILIES_FOR_HOLDOUT = 5


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"starter_{name}_under_test", STARTER / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


make, calls = load("make"), load("calls")


def read_definitions() -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for folder in make.op_folders():
        rows = make.load_module(folder / "spec.py").DEFINITIONS
        found |= {row["name"]: make.read_definition(folder, row) for row in rows}
    return found


PUBLIC = read_definitions()
LOGS: dict[str, list[str]] = {name: list(lines) for name, lines in calls.logs(PUBLIC).items()}
PARSED = {name: Definition.model_validate(PUBLIC[name]) for name in LOGS}


def collected(name: str) -> Any:
    return parse_calls([("log", index + 1, text) for index, text in enumerate(LOGS[name])], PARSED)


@pytest.mark.parametrize("name", sorted(LOGS))
def test_every_line_but_the_planted_ones_is_a_usable_call(name: str) -> None:
    found = collected(name)
    planted = 5 if name == calls.BAD_LINES_IN else 0
    assert len(found.quarantined) == planted, [row.reason for row in found.quarantined[:3]]
    assert found.read_count == len(LOGS[name])


def test_each_planted_line_is_bad_in_its_own_way() -> None:
    reasons = [row.reason for row in collected(calls.BAD_LINES_IN).quarantined]
    expected = ["not JSON", "below zero", "unknown definition", "num_pages", "structure implies"]
    assert all(part in reason for part, reason in zip(expected, reasons, strict=True)), reasons


@pytest.mark.parametrize("name", sorted(LOGS))
def test_calls_repeat_and_their_families_are_enough_for_a_split(name: str) -> None:
    workloads = deduplicate(collected(name).records, PARSED)
    families: Counter[str] = Counter()
    for workload in workloads:
        families[family_of(workload)] += workload.call_count or 0
    total = sum(families.values())
    populated = [family for family, count in families.items() if count >= 0.02 * total]
    assert total >= 2000
    assert total >= 20 * len(workloads)
    assert len(populated) > FAMILIES_FOR_HOLDOUT
    assert max(families.values()) > 3 * min(families.values())


def test_the_logs_together_hold_tens_of_thousands_of_calls_in_little_space() -> None:
    assert 30_000 <= sum(map(len, LOGS.values())) <= 100_000
    assert sum(len(make.gzipped(lines)) for lines in LOGS.values()) < 1_000_000


def test_equal_definitions_give_equal_bytes_and_another_seed_gives_other_calls() -> None:
    name = "mla_paged_decode_h16_ckv512_kpe64_ps1"
    assert list(calls.logs({name: PUBLIC[name]})[name]) == LOGS[name]
    _, engine = calls.engine_of(PUBLIC[name])
    assert calls.simulate(engine, seed=1) != calls.simulate(engine, seed=2)


def test_decode_batches_carry_empty_padding_rows_and_have_captured_sizes() -> None:
    rows = [json.loads(text) for text in LOGS["gqa_paged_decode_h16_kv8_d128_ps1"]]
    assert {row["axes"]["batch_size"] for row in rows} <= set(calls.CAPTURED_SIZES)
    assert any(0 in row["structure"]["kv_lens"] for row in rows)


def test_the_most_common_decode_key_is_not_the_largest_batch() -> None:
    counts = Counter(class_key(json.loads(text)["axes"]) for text in LOGS["gqa_paged_decode_h16_kv8_d128_ps1"])
    assert "batch_size=32" not in counts.most_common(1)[0][0]


@pytest.mark.parametrize("name", sorted(name for name in LOGS if PUBLIC[name]["op_type"] in ("gqa_paged", "mla_paged")))
def test_no_call_uses_more_pages_than_the_pool_has(name: str) -> None:
    definition = PARSED[name]
    for record in collected(name).records:
        used = sum(page_counts(record.structure["kv_lens"], page_size_of(definition)))
        assert used == record.axes["num_kv_indices"] <= record.axes["num_pages"]


def test_a_definition_of_an_unknown_model_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="no engine is known"):
        calls.engine_of({"name": "gemm_n1_k1", "tags": ["scale:cpu", "model:nobody"]})


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 2**32), model=st.sampled_from(sorted(calls.ENGINES)))
def test_any_seed_keeps_the_engine_within_its_limits(seed: int, model: str) -> None:
    engine = calls.ENGINES[model]
    for step in calls.simulate(engine, seed):
        assert 1 <= len(step.kv_lens) == len(step.qo_lens) <= calls.CAPTURED_SIZES[-1]
        assert sum(step.kv_lens) <= engine.pool_tokens
        if step.kind == "prefill":
            assert sum(step.qo_lens) <= engine.chunk_tokens
            assert all(1 <= q <= kv for q, kv in zip(step.qo_lens, step.kv_lens, strict=True))
