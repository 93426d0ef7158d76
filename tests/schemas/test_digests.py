"""Identity survives whatever a store or a tool does to the JSON without changing its meaning."""

from typing import Any

import pytest

from schemas.definition import Definition
from schemas.snapshot import Snapshot
from schemas.workload import RandomInput, Workload

GIVEN: dict[str, Any] = {
    "name": "scale", "op_type": "elementwise", "axes": {"n": {"type": "var"}, "k": {"type": "const", "value": 4}},
    "inputs": {"x": {"shape": ["n", "k"], "dtype": "float32"}, "a": {"shape": None, "dtype": "float32"}},
    "outputs": {"y": {"shape": ["n", "k"], "dtype": "float32"}},
    "reference": "def run(x, a):\n    return x * a\n",
}  # fmt: skip
TURNED = GIVEN | {"inputs": dict(reversed(list(GIVEN["inputs"].items())))}


def test_writing_every_default_out_keeps_the_digest() -> None:
    given = Definition.model_validate(GIVEN)
    full = Definition.model_validate(given.model_dump(mode="json"))
    assert full.digest == given.digest
    sparse = Workload(definition_digest=given.digest, axes={"n": 1}, inputs={"x": RandomInput(type="random")})
    assert Workload.model_validate(sparse.model_dump(mode="json")).digest == sparse.digest


def test_names_for_people_do_not_count() -> None:
    axes = {"n": {"type": "var", "description": "rows"}, "k": {"type": "const", "value": 4}}
    renamed = GIVEN | {"name": "other", "description": "d", "tags": ["scale:cpu"], "axes": axes}
    assert Definition.model_validate(renamed).digest == Definition.model_validate(GIVEN).digest


@pytest.mark.parametrize(
    "change",
    [
        {"reference": "def run(x, a):\n    return x * a * 1\n"},
        {"inputs": TURNED["inputs"]},
        {"constraints": ["n >= 1"]},
        {"op_type": "gemm"},
        {"unknown_key": 1},
        {"axes": {"n": {"type": "var"}, "k": {"type": "const", "value": 8}}},
    ],
    ids=["reference", "input order", "constraint", "op type", "unknown key", "const axis"],
)
def test_whatever_changes_the_contract_changes_the_digest(change: dict[str, object]) -> None:
    assert Definition.model_validate(GIVEN | change).digest != Definition.model_validate(GIVEN).digest


def test_a_snapshot_notices_reordered_inputs() -> None:
    assert _snapshot(GIVEN).digest != _snapshot(TURNED).digest


def test_a_snapshot_read_back_holds_the_same_definitions() -> None:
    snapshot = _snapshot(TURNED)
    again = Snapshot.model_validate_json(snapshot.model_dump_json())
    assert again.digest == snapshot.digest
    assert [item.digest for item in again.definitions] == [item.digest for item in snapshot.definitions]


def _snapshot(definition: dict[str, Any]) -> Snapshot:
    return Snapshot(
        definitions=(Definition.model_validate(definition),),
        workloads=(), incumbents={}, weights="none", split_key="k", policy_version=1,
    )  # fmt: skip


def test_a_changed_copy_has_its_own_digest_and_an_equal_one_stays_equal() -> None:
    given = Definition.model_validate(GIVEN)
    before = given.digest
    assert given.model_copy(update={"constraints": ("n >= 1",)}).digest != before
    untouched = Definition.model_validate(GIVEN)
    assert untouched == given, "a computed digest is no field"
    assert untouched.model_dump() == given.model_dump()
