"""Identity survives whatever a store or a tool does to the JSON without changing its meaning."""

import pytest

from schemas.definition import Definition
from schemas.workload import RandomInput, Workload

GIVEN = {
    "name": "scale", "op_type": "elementwise", "axes": {"n": {"type": "var"}, "k": {"type": "const", "value": 4}},
    "inputs": {"x": {"shape": ["n", "k"], "dtype": "float32"}, "a": {"shape": None, "dtype": "float32"}},
    "outputs": {"y": {"shape": ["n", "k"], "dtype": "float32"}},
    "reference": "def run(x, a):\n    return x * a\n",
}  # fmt: skip


def test_writing_every_default_out_keeps_the_digest() -> None:
    given = Definition.model_validate(GIVEN)
    full = Definition.model_validate(given.model_dump(mode="json"))
    assert full.digest == given.digest
    sparse = Workload(definition_digest=given.digest, axes={"n": 1}, inputs={"x": RandomInput(type="random")})
    assert Workload.model_validate(sparse.model_dump(mode="json")).digest == sparse.digest


def test_names_for_people_do_not_count() -> None:
    renamed = GIVEN | {"name": "other", "description": "d", "tags": ["scale:cpu"]}
    renamed["axes"] = {"n": {"type": "var", "description": "rows"}, "k": {"type": "const", "value": 4}}
    assert Definition.model_validate(renamed).digest == Definition.model_validate(GIVEN).digest


@pytest.mark.parametrize(
    "change",
    [
        {"reference": "def run(x, a):\n    return x * a * 1\n"},
        {"inputs": dict(reversed(list(GIVEN["inputs"].items())))},  # type: ignore[attr-defined]
        {"constraints": ["n >= 1"]},
        {"op_type": "gemm"},
        {"unknown_key": 1},
        {"axes": {"n": {"type": "var"}, "k": {"type": "const", "value": 8}}},
    ],
    ids=["reference", "input order", "constraint", "op type", "unknown key", "const axis"],
)
def test_whatever_changes_the_contract_changes_the_digest(change: dict[str, object]) -> None:
    assert Definition.model_validate(GIVEN | change).digest != Definition.model_validate(GIVEN).digest
