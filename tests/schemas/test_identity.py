"""Identity: a digest covers all that changes behaviour and nothing that is only said about it."""

import pytest
from pydantic import ValidationError

from schemas.base import Record
from schemas.decision import KeyBox
from schemas.definition import Definition, TensorSpec
from schemas.solution import Solution
from schemas.workload import RandomInput, SafetensorsInput, Workload
from tests.core.world import DEVICE, dense, gemm, solution

BASE = gemm()


def changed(record: Record, **changes):
    return type(record).model_validate(record.model_dump(exclude_unset=True) | changes)


@pytest.mark.parametrize("changes", [{"name": "other"}, {"description": "words"}, {"tags": ["a"]}])
def test_a_definitions_labels_are_not_its_identity(changes: dict) -> None:
    assert changed(BASE, **changes).digest == BASE.digest


@pytest.mark.parametrize(
    "changes",
    [
        {"reference": "def run(A, B):\n    return B @ A.T\n"},
        {"constraints": ["M < 9"]},
        {"op_type": "other"},
        {"axes": {"M": {"type": "var"}, "N": {"type": "const", "value": 16}, "K": {"type": "const", "value": 4}}},
        {"inputs": dict(reversed(BASE.model_dump()["inputs"].items()))},
    ],
)
def test_whatever_changes_a_contract_changes_its_digest(changes: dict) -> None:
    assert changed(BASE, **changes).digest != BASE.digest


def test_descriptions_deep_inside_a_definition_change_nothing() -> None:
    inputs = {name: spec.model_dump() | {"description": "words"} for name, spec in BASE.inputs.items()}
    assert changed(BASE, inputs=inputs).digest == BASE.digest


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"outputs": {"A": {"shape": ["M"], "dtype": "float32"}}}, "names on both sides"),
        ({"outputs": {"C": {"shape": ["Z"], "dtype": "float32"}}}, "undeclared axes"),
        ({"mutates": {"A": "nothing"}}, "mutates A -> nothing"),
        ({"reference": "def other(): ..."}, "no top-level `def run`"),
        ({"reference": "def run(:"}, "reference does not parse: line 1"),
        ({"constraints": ["M =="]}, "does not parse"),
    ],
)
def test_an_inconsistent_definition_is_refused_in_words(changes: dict, message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        changed(BASE, **changes)


def test_sizes_come_from_the_contract_and_the_call() -> None:
    assert BASE.const_axes == {"N": 8, "K": 4}
    assert BASE.var_axes == ("M",)
    assert BASE.shape_of("C", {"M": 3}) == (3, 8)
    scalar = changed(BASE, inputs=BASE.model_dump()["inputs"] | {"eps": {"shape": None, "dtype": "float32"}})
    assert scalar.shape_of("eps", {"M": 3}) is None


def test_a_solutions_author_and_name_are_labels_and_its_contract_is_not() -> None:
    one = solution("one", BASE)
    renamed = changed(one, name="two", author="other", description="x")
    assert renamed.digest_for(BASE.digest) == one.digest_for(BASE.digest)
    assert one.digest_for("sha256:" + "0" * 64) != one.digest_for(BASE.digest)


@pytest.mark.parametrize(
    "spec",
    [
        {"destination_passing_style": False}, {"compile_options": ["-O2"]}, {"dependencies": ["x"]},
        {"supports": ["M < 9"]}, {"language": "triton"}, {"binding": "torch"},
    ],
)  # fmt: skip
def test_whatever_changes_a_solutions_behaviour_changes_its_digest(spec: dict) -> None:
    one = solution("one", BASE)
    other = changed(one, spec=one.spec.model_dump() | spec)
    assert other.digest_for(BASE.digest) != one.digest_for(BASE.digest)


@pytest.mark.parametrize("path", ["../main.py", "/etc/main.py", "a/../../main.py"])
def test_a_source_never_leaves_its_folder(path: str) -> None:
    with pytest.raises(ValidationError, match="leaves the build directory"):
        changed(solution("one", BASE), sources=[{"path": path, "content": "x"}])


def test_unknown_keys_of_public_records_survive_and_of_ours_are_errors() -> None:
    body = solution("one", BASE).model_dump(mode="json", exclude_unset=True) | {"their_key": {"a": 1}}
    assert Solution.model_validate(body).public_json() == body
    definition = BASE.model_dump(mode="json", exclude_unset=True) | {"their_key": [1]}
    assert Definition.model_validate(definition).public_json() == definition
    with pytest.raises(ValidationError, match="their_key"):
        changed(dense(BASE, 4), their_key=1)


def test_facts_about_a_workload_are_not_its_identity() -> None:
    one = dense(BASE, 4, count=3)
    assert changed(one, call_count=9, uuid="u", tags=["t"], structure_class="s").digest == one.digest
    assert dense(BASE, 5).digest != one.digest


def test_a_blob_counts_by_content_and_not_by_path() -> None:
    def blob(path: str, digest: str) -> Workload:
        recipe = SafetensorsInput(type="safetensors", path=path, tensor_key="A")
        return Workload(
            definition_digest=BASE.digest, axes={"M": 2}, inputs={"A": recipe, "B": RandomInput(type="random")},
            blob_digests={"A": "sha256:" + digest * 64},
        )  # fmt: skip

    assert blob("a.safetensors", "1").digest == blob("moved/b.safetensors", "1").digest
    assert blob("a.safetensors", "1").digest != blob("a.safetensors", "2").digest


def test_records_are_frozen() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        BASE.name = "other"  # type: ignore[misc]


def test_a_box_covers_its_ends_and_nothing_unbound() -> None:
    box = KeyBox(definition_digest=BASE.digest, device_class=DEVICE, layout="contiguous", axes={"M": (5, 8)})
    assert [size for size in range(12) if box.covers({"M": size})] == [5, 6, 7, 8]
    assert not box.covers({})
    assert box.covers({"M": 6, "other": 1})


def test_a_scalar_is_a_null_shape_and_a_tensor_without_axes_an_empty_one() -> None:
    assert TensorSpec(shape=None, dtype="float32") != TensorSpec(shape=(), dtype="float32")
