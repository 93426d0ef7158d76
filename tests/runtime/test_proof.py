"""The proof before a pointer moves: a sound index passes, and one with any single defect is refused by name."""

import pytest

from fib_core.errors import ContractError
from fib_core.runtime.device_class import aliases_of, class_of_name, class_under, cuda_class, is_canonical
from fib_core.runtime.proof import prove
from fib_core.runtime.table import OTHER_DEVICE, Table
from schemas.definition import Definition
from schemas.index import DispatchIndex
from tests.fakes.memory_store import MemoryStore
from tests.runtime.published import FUSED, HERE, SCALE, SCALE_VALUE, Made, index, key, modern, publish, solution

H200 = "sm_90a/132/hbm3e"
CHOSEN = solution(SCALE, SCALE_VALUE)


def sound(device_class: str = HERE, **more) -> Made:
    boxes = [((2, 4), solution(SCALE, SCALE_VALUE, **more)), ((6, 8), None), ((30, 60), solution(SCALE, SCALE_VALUE))]
    return modern(index((SCALE, boxes), (FUSED, []), device_class=device_class))


def proved(made: Made, damage=None) -> None:
    store = MemoryStore()
    digest = publish(store, made)
    if damage is not None:
        damage(store.objects)
    prove(lambda name: store.get(name).body, digest)


def with_block(made: Made, **update) -> Made:
    record, owned = made
    block = record.definitions[0].model_copy(update=update)
    return record.model_copy(update={"definitions": (block, *record.definitions[1:])}), owned


def with_box(made: Made, place: int = 0, kind: str = "entries", **update) -> Made:
    items = list(getattr(made[0].definitions[0], kind))
    items[place] = items[place].model_copy(update={"box": items[place].box.model_copy(update=update)})
    return with_block(made, **{kind: tuple(items)})


@pytest.mark.parametrize("device_class", [HERE, H200, "x86-64-v4/8t", "aarch64/1t", "sm_100a/148/hbm3e"])
def test_a_sound_index_is_proved_on_every_kind_of_device(device_class: str) -> None:
    proved(sound(device_class))


def test_an_index_of_the_first_version_with_entries_of_the_incumbent_is_proved_too() -> None:
    proved(index((SCALE, [((2, 4), CHOSEN), ((6, 8), None)])))


DEFECTS = {
    "two entries overlap": (lambda made: with_box(made, axes={"rows": (2, 40)}), r"rows=4 at .*ambiguous"),
    "a kept key's box lies in an entry": (
        lambda made: with_box(made, kind="kept", axes={"rows": (3, 8)}), r"rows=4 at rows=4: ambiguous",
    ),
    "a box that forgets an axis": (lambda made: with_box(made, axes={}), r"rows=4: .*var axes: rows"),
    "a kept key's box that forgets an axis": (
        lambda made: with_box(made, kind="kept", axes={}), r"rows=8: .*var axes: rows",
    ),
    "a kept key's box that holds no call": (
        lambda made: with_box(made, kind="kept", axes={"rows": (8, 6)}), r"rows=8: .*holds no call",
    ),
    "a kept key that no guard of the reader knows, inside an entry": (
        lambda made: with_box(made, kind="kept", axes={"rows": (3, 3)}, dtype="int8->int8"),
        r"rows=8 at rows=3: it kept the incumbent, yet the entry rows=4 serves this",
    ),
    "a box with an axis of nobody": (
        lambda made: with_box(made, axes={"rows": (2, 4), "columns": (1, 1)}), r"rows=4: .*columns",
    ),
    "a box that holds no call": (lambda made: with_box(made, axes={"rows": (4, 2)}), r"rows=4: .*holds no call"),
    "a marketing name for a device class": (
        lambda made: with_box(made, device_class="NVIDIA H200"), r"rows=4: .*calls itself NVIDIA H200",
    ),
    "another class than the index": (lambda made: with_box(made, device_class=H200), r"rows=4: .*" + H200),
    "another definition's guard": (
        lambda made: with_box(made, definition_digest=FUSED.digest), r"rows=4: .*another definition",
    ),
    "another dtype": (lambda made: with_box(made, dtype="bfloat16->bfloat16"), r"rows=4: .*dtype"),
    "another layout": (lambda made: with_box(made, layout="strided"), r"rows=4: .*layout"),
    "lengths that no call of the box has": (
        lambda made: with_box(made, lengths={"num_kv_indices": (1, 1)}), r"rows=4: no legal call",
    ),
    "a solution that supports not all of its box": (
        lambda made: sound(supports=("rows % 3 == 0",)), r"scale_h4 rows=4 at rows=2: solution_does_not_support",
    ),
    "a solution that is not listed": (
        lambda made: (made[0].model_copy(update={"solutions": ()}), made[1]), "rows=4: its solution is not listed",
    ),
    "counts that do not add up": (lambda made: with_block(made, dropped_count=0), "0 entries dropped, but 1 keys kept"),
}  # fmt: skip


@pytest.mark.parametrize("defect", DEFECTS)
def test_an_index_with_one_defect_is_refused_naming_the_entry(defect: str) -> None:
    spoil, said = DEFECTS[defect]
    with pytest.raises(ContractError, match=said):
        proved(spoil(sound()))


def test_a_class_whose_memory_no_device_name_tells_is_refused() -> None:
    with pytest.raises(ContractError, match="calls itself sm_90a/132/unknown"):
        proved(sound("sm_90a/132/unknown"))
    with pytest.raises(ContractError, match="no device name leads to sm_90a/132/gddr6"):
        proved(sound("sm_90a/132/gddr6"))


def test_a_listed_solution_that_nobody_names_or_that_lies_elsewhere_is_refused() -> None:
    record, owned = sound()
    other = solution(SCALE, SCALE_VALUE + "# more\n")
    digest = other.digest_for(SCALE.digest)
    extra = record.solutions[0].model_copy(update={"solution_digest": digest, "object_key": key("solutions", digest)})
    with pytest.raises(ContractError, match="no entry names it"):
        proved((record.model_copy(update={"solutions": (*record.solutions, extra)}), owned))
    moved = record.solutions[0].model_copy(update={"object_key": "solutions/elsewhere.json"})
    with pytest.raises(ContractError, match="not where it lies"):
        proved((record.model_copy(update={"solutions": (moved,)}), owned))


@pytest.mark.parametrize("kind", ["indexes", "definitions", "solutions"])
@pytest.mark.parametrize("how", ["gone", "damaged"])
def test_an_index_that_the_reader_cannot_read_whole_is_refused(kind: str, how: str) -> None:
    def damage(objects: dict[str, bytes]) -> None:
        name = next(name for name in sorted(objects) if name.startswith(kind + "/"))
        body = objects.pop(name)
        if how == "damaged":
            objects[name] = body[: len(body) // 2]

    with pytest.raises(ContractError, match="cannot read the candidate index"):
        proved(sound(), damage)


def test_a_solution_of_another_definition_is_refused() -> None:
    record, owned = sound()
    stranger = solution(FUSED, "def run(x, residual, gain):\n    return x\n")
    digest = stranger.digest_for(FUSED.digest)
    entries = record.definitions[0].entries
    crossed = (entries[0].model_copy(update={"solution_digest": digest}), *entries[1:])
    with pytest.raises(ContractError, match="is a solution of"):
        proved(with_block((record, owned | {digest: (FUSED, stranger)}), entries=crossed))


TIED = Definition.model_validate({
    "name": "tied", "op_type": "other", "axes": {"a": {"type": "var"}, "b": {"type": "var"}},
    "inputs": {"x": {"shape": ["a"], "dtype": "float32"}, "y": {"shape": ["b"], "dtype": "float32"}},
    "outputs": {"z": {"shape": ["a"], "dtype": "float32"}}, "constraints": ["b == a + 1"],
    "reference": "def run(x, y):\n    return x\n",
})  # fmt: skip


def tied(axes: dict[str, tuple[int, int]]) -> Made:
    chosen = solution(TIED, "def run(x, y):\n    return x\n")
    record, owned = index((TIED, [((1, 1), chosen)]))
    entry = record.definitions[0].entries[0]
    entry = entry.model_copy(update={"box": entry.box.model_copy(update={"axes": axes})})
    block = record.definitions[0].model_copy(update={"entries": (entry,)})
    return record.model_copy(update={"definitions": (block,)}), owned


def proved_tied(made: Made) -> None:
    store = MemoryStore()
    prove(lambda name: store.get(name).body, publish(store, made, definitions=(TIED,)))


def test_corners_that_no_call_may_have_are_not_asked_but_a_box_without_a_legal_one_is_refused() -> None:
    proved_tied(tied({"a": (2, 4), "b": (3, 5)}))
    with pytest.raises(ContractError, match="no legal call"):
        proved_tied(tied({"a": (2, 4), "b": (8, 9)}))


NAMES = ("NVIDIA H200", "NVIDIA H200 NVL", "NVIDIA_H200", "H200-SXM-141GB", "nvidia h200")


@pytest.mark.parametrize("name", NAMES)
def test_every_way_to_write_a_device_name_reaches_its_entry(name: str) -> None:
    record, owned = sound(H200)
    table = Table(record.definitions[0], SCALE, {digest: chosen for digest, (_, chosen) in owned.items()})
    found = table.find({"rows": 3}, cuda_class((9, 0), 132, name))
    assert found.entry is record.definitions[0].entries[0]
    assert class_of_name(name) == H200
    assert class_under(H200, name) == H200


def test_a_name_in_no_table_is_a_miss_with_a_reason_that_says_what_was_asked() -> None:
    record: DispatchIndex = sound(H200)[0]
    found = Table(record.definitions[0], SCALE, {}).find({"rows": 3}, cuda_class((9, 0), 132, "NVIDIA H2000"))
    assert (found.entry, found.reason) == (None, OTHER_DEVICE)
    assert "sm_90a/132/unknown" in found.detail
    assert H200 in found.detail
    assert class_of_name("NVIDIA H2000") is None


def test_a_slice_of_a_device_is_another_class_whatever_its_name() -> None:
    assert cuda_class((9, 0), 16, "NVIDIA H200 MIG 1g.18gb") == "sm_90a/16/hbm3e"
    assert class_of_name("NVIDIA H200 MIG 1g.18gb") is None


def test_every_alias_of_a_class_leads_back_to_it_and_a_cpu_has_none() -> None:
    for device_class in (H200, "sm_100a/148/hbm3e", "sm_80/108/hbm2e", "sm_89/58/gddr6"):
        assert aliases_of(device_class)
        assert {class_under(device_class, alias) for alias in aliases_of(device_class)} == {device_class}
    assert aliases_of(HERE) == ()
    assert [is_canonical(text) for text in (HERE, H200, "sm_90a/132/unknown", "NVIDIA H200", "cuda:0", "")] == [
        True, True, False, False, False, False,
    ]  # fmt: skip
