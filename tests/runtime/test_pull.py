"""Pulling: verified, atomic, repeatable, offline afterwards."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from fib_core.errors import DeviceError, ObjectMissing, StoreRefused
from fib_core.runtime import index_client
from tests.fakes.memory_store import MemoryStore
from tests.runtime.published import (
    FUSED,
    FUSED_VALUE,
    SCALE,
    SCALE_DPS,
    SCALE_VALUE,
    index,
    key,
    point,
    publish,
    solution,
)  # fmt: skip

CHECKOUT = Path(__file__).parents[2]


def _first():
    return index((SCALE, [((2, 4), solution(SCALE, SCALE_VALUE))]), (FUSED, [((2, 4), solution(FUSED, FUSED_VALUE))]))


def _second():
    return index((SCALE, [((2, 8), solution(SCALE, SCALE_DPS, dps=True))]), note="2")


def _fused_only():
    return index((FUSED, [((2, 4), solution(FUSED, FUSED_VALUE))]))


@pytest.fixture
def store():
    return MemoryStore()


def test_a_pull_brings_the_index_its_definitions_and_its_solutions(store, tmp_path):
    digest = publish(store, _first())
    pulled = index_client.pull_from(store, "quick", tmp_path)
    assert pulled.index_digest == digest
    assert set(pulled.definitions) == {SCALE.digest, FUSED.digest}
    assert {s.name for s in pulled.solutions.values()} == {s.name for _, s in _first()[1].values()}
    assert list(pulled.definitions[SCALE.digest].inputs) == ["x", "gain"]
    assert pulled.fetched_count == 5


def _nowhere(root: Path) -> Path:
    (root / "file").write_text("")
    return root / "file/cache"


def _taken(root: Path) -> Path:
    (root / "cache/current.json").mkdir(parents=True)
    return root / "cache"


@pytest.mark.parametrize("cache", [_nowhere, _taken])
def test_a_cache_that_cannot_be_written_is_the_machines_fault_in_one_sentence(store, tmp_path, cache):
    """A read-only home or a full disk: what a server catches around a pull is what a pull says that it raises."""
    publish(store, _first())
    with pytest.raises(DeviceError, match=r"cache .* cannot be written .*set FIB_CACHE"):
        index_client.pull_from(store, "quick", cache(tmp_path))


def test_a_cache_that_cannot_be_read_is_the_machines_fault_and_an_absent_one_is_not(tmp_path):
    with pytest.raises(DeviceError, match=r"current\.json cannot be read: Is a directory"):
        index_client.load(_taken(tmp_path))
    with pytest.raises(ObjectMissing):
        index_client.load(tmp_path / "absent")


def test_after_a_pull_no_store_is_needed(store, tmp_path):
    pulled = index_client.pull_from(store_with(store, _first()), "quick", tmp_path)
    store.objects.clear()
    again = index_client.load(tmp_path)
    assert (again.index, again.definitions, again.solutions) == (pulled.index, pulled.definitions, pulled.solutions)
    assert (again.channel, again.source) == ("quick", "memory://test")


def test_a_second_pull_fetches_only_what_is_new(store, tmp_path):
    publish(store, _first())
    assert index_client.pull_from(store, "quick", tmp_path).fetched_count == 5
    assert index_client.pull_from(store, "quick", tmp_path).fetched_count == 0
    first = index_client.load(tmp_path).index_digest
    publish(store, _second())
    pulled = index_client.pull_from(store, "quick", tmp_path)
    assert (pulled.fetched_count, pulled.previous) == (2, first)
    # An index pulled before stays readable by its digest.
    assert index_client.load(tmp_path, index_digest=first).index_digest == first


def test_an_unknown_channel_is_named_and_nothing_moves(store, tmp_path):
    publish(store, _first())
    index_client.pull_from(store, "quick", tmp_path)
    with pytest.raises(ObjectMissing, match="no channel 'stable'"):
        index_client.pull_from(store, "stable", tmp_path)
    assert index_client.load(tmp_path).channel == "quick"


def test_a_cache_without_a_pull_says_what_to_do(tmp_path):
    with pytest.raises(ObjectMissing, match="run `fib pull`"):
        index_client.load(tmp_path / "nothing")


@pytest.mark.parametrize("name", ["../x", "a/b", "", ".hidden"])
def test_a_channel_name_never_leaves_its_folder(store, tmp_path, name):
    with pytest.raises(StoreRefused, match="not plain"):
        index_client.read_pointer(store, name)


def _tampered_solution(body: bytes) -> bytes:
    value = json.loads(body)
    value["solution"]["sources"][0]["content"] += "\n# one more line"
    return json.dumps(value).encode()


def _other_owner(body: bytes) -> bytes:
    return json.dumps(json.loads(body) | {"definition_digest": FUSED.digest}).encode()


def _tampered_definition(body: bytes) -> bytes:
    value = json.loads(body)
    value["inputs"] = dict(reversed(value["inputs"].items()))
    return json.dumps(value).encode()


@pytest.mark.parametrize(
    ("kind", "damage"),
    [
        ("solutions", _tampered_solution),
        ("solutions", _other_owner),
        ("solutions", lambda body: body[: len(body) // 2]),
        ("definitions", _tampered_definition),
        ("definitions", lambda body: b"{}"),
        ("indexes", lambda body: body.replace(b'"rounds":8', b'"rounds":9')),
        ("indexes", lambda body: b""),
    ],
)
def test_a_damaged_object_is_refused_by_name_and_the_old_index_stays(store, tmp_path, kind, damage):
    old = publish(store, _fused_only())
    index_client.pull_from(store, "quick", tmp_path)
    new = publish(store, _second())
    owned = next(iter(_second()[1]))
    name = key(kind, {"indexes": new, "solutions": owned, "definitions": SCALE.digest}[kind])
    sound = store.objects[name]
    store.objects[name] = damage(sound)
    with pytest.raises(StoreRefused, match=name.removesuffix(".json")):
        index_client.pull_from(store, "quick", tmp_path)
    assert not (tmp_path / name).exists()
    assert index_client.load(tmp_path).index_digest == old
    store.objects[name] = sound
    assert index_client.pull_from(store, "quick", tmp_path).index_digest == new


def test_a_solution_of_another_definition_is_refused(store, tmp_path):
    record, owned = _second()
    stranger = solution(FUSED, FUSED_VALUE)
    digest = stranger.digest_for(FUSED.digest)
    item = record.definitions[0]
    crossed = item.model_copy(update={"entries": (item.entries[0].model_copy(update={"solution_digest": digest}),)})
    publish(store, (record.model_copy(update={"definitions": (crossed,)}), owned | {digest: (FUSED, stranger)}))
    with pytest.raises(StoreRefused, match=f"is a solution of {FUSED.digest}"):
        index_client.pull_from(store, "quick", tmp_path)


def test_a_referenced_object_that_is_missing_is_named(store, tmp_path):
    publish(store, _first())
    gone = next(name for name in store.objects if name.startswith("solutions/"))
    del store.objects[gone]
    with pytest.raises(StoreRefused, match=gone.removesuffix(".json") + r".*missing"):
        index_client.pull_from(store, "quick", tmp_path)
    assert not (tmp_path / "current.json").exists()


def test_a_damaged_cache_is_refused_offline_and_healed_by_the_next_pull(store, tmp_path):
    publish(store, _first())
    index_client.pull_from(store, "quick", tmp_path)
    victim = next((tmp_path / "solutions").glob("*.json"))
    victim.write_bytes(_tampered_solution(victim.read_bytes()))
    with pytest.raises(StoreRefused, match=victim.stem):
        index_client.load(tmp_path)
    assert index_client.pull_from(store, "quick", tmp_path).fetched_count == 1
    assert index_client.load(tmp_path).index_digest


def test_rolling_a_channel_back_is_followed(store, tmp_path):
    first = publish(store, _first())
    publish(store, _second())
    index_client.pull_from(store, "quick", tmp_path)
    point(store, first)
    assert index_client.pull_from(store, "quick", tmp_path).index_digest == first


def test_importing_the_runtime_loads_only_the_standard_library():
    code = (
        "import sys; before = set(sys.modules); import fib_core.runtime\n"
        "new = {m.split('.')[0] for m in set(sys.modules) - before}\n"
        "print(*sorted(n for n in new if n not in sys.stdlib_module_names))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=CHECKOUT, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["fib_core"]


def store_with(store, made):
    publish(store, made)
    return store
