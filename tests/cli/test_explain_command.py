"""fib explain: the entry and its evidence, or why none; the same answer as apply."""

import json

import pytest
import typer
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from fib_core.adapters.directory_store import DirectoryStore
from fib_core.errors import ContractError
from fib_core.index import lookup
from fib_core.runtime import index_client
from fib_core.runtime.explanation import explain as ask
from fib_core.runtime.pulled import PulledIndex
from flows.cli import explain, pull
from schemas.canonical import canonical_bytes, digest_of
from schemas.decision import Decision, Estimate
from tests.runtime.published import (
    FUSED,
    HERE,
    SCALE,
    SCALE_VALUE,
    entry,
    evidence,
    index,
    key,
    modern,
    publish,
    solution,
)


@pytest.fixture
def app():
    made = typer.Typer()
    explain.register(made)
    pull.register(made)
    return made


@pytest.fixture
def store(tmp_path, monkeypatch):
    for name in ("FIB_CACHE", "FIB_STORE", "FIB_CHANNEL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("FIB_HOME", str(tmp_path))
    return DirectoryStore(tmp_path / "store")


CHOSEN = solution(SCALE, SCALE_VALUE)


def _index():
    return index((SCALE, [((2, 4), CHOSEN), ((6, 8), None), ((30, 32), CHOSEN)]), (FUSED, []))


def _json(app, *arguments):
    result = CliRunner().invoke(app, [*arguments, "--json"], catch_exceptions=False)
    assert result.exit_code == 0
    return json.loads(result.stdout)


def test_a_covered_call_shows_its_entry_and_its_evidence(app, store):
    digest = publish(store, _index())
    found = _json(app, "explain", "scale_h4", "rows=3")
    assert found["served_by"] == "solution"
    assert found["solution"]["digest"] == CHOSEN.digest_for(SCALE.digest)
    assert found["entry"] == {"key": "rows=4", "box": {"rows": [2, 4]}}
    assert (found["index_digest"], found["profile"], found["device_class"]) == (digest, "quick", HERE)
    evidence = found["evidence"]
    assert (evidence["ratio"], evidence["interval"], evidence["rounds"]) == (1.5, [1.4, 1.6], 8)
    assert evidence["against"]["incumbent"] == "torch_plain"
    assert (evidence["control"], evidence["decision_read"]) == (None, False)


def _decision():
    estimate = {
        "solution_digest": CHOSEN.digest_for(SCALE.digest), "ratio": 1.01, "standard_error": 0.02,
        "interval": (0.97, 1.05), "p_value": 0.4, "p_holm": 0.4, "log_ratios": (0.01,),
    }  # fmt: skip
    box = entry(SCALE, (2, 4), CHOSEN).box
    return Decision(
        snapshot_digest=digest_of("1"), definition_digest=SCALE.digest, definition="scale_h4", key="rows=4", box=box,
        profile="quick", verdict="promoted", solution_digest=CHOSEN.digest_for(SCALE.digest), incumbent_digest=None,
        reason="promoted", alpha=0.05, min_effect=0.1, control=Estimate.model_validate(estimate),
    )  # fmt: skip


def test_the_control_is_shown_where_the_decision_is_at_hand_and_is_what_the_entry_names(app, store):
    made, owned = _index()
    decision = _decision()
    item = made.definitions[0]
    named = item.entries[0].model_copy(update={"decision_digest": decision.digest})
    item = item.model_copy(update={"entries": (named, *item.entries[1:])})
    publish(store, (made.model_copy(update={"definitions": (item, made.definitions[1])}), owned))
    store.put_once(key("decisions", decision.digest), canonical_bytes(decision.model_dump(mode="json")))
    index_client.pull()
    evidence = _json(app, "explain", "scale_h4", "rows=3")["evidence"]
    assert evidence["control"] == {"ratio": 1.01, "interval": [0.97, 1.05], "standard_error": 0.02, "p_value": 0.4}
    text = CliRunner().invoke(app, ["explain", "scale_h4", "rows=3"], catch_exceptions=False).stdout
    assert "control  1.010 [0.970, 1.050]" in text
    # Another decision under that name is no evidence.
    path = store_path(store, key("decisions", decision.digest))
    path.write_bytes(path.read_bytes().replace(b"1.01", b"1.00"))
    assert _json(app, "explain", "scale_h4", "rows=3")["evidence"]["control"] is None


def store_path(store, name):
    from pathlib import Path
    from urllib.parse import urlsplit

    return Path(urlsplit(store.url).path) / name


def test_a_call_outside_every_box_shows_the_nearest_ones(app, store):
    publish(store, _index())
    found = _json(app, "explain", "scale_h4", "rows=5")
    assert (found["served_by"], found["reason"], found["entry"]) == ("your function", "outside_every_box", None)
    assert [near["box"]["rows"] for near in found["nearest"]] == [[6, 8], [2, 4], [30, 32]]


def test_a_kept_incumbent_says_why(app, store):
    publish(store, _index())
    found = _json(app, "explain", "scale_h4", "rows=7")
    assert (found["served_by"], found["solution"]) == ("incumbent", None)
    assert found["reason"] == "kept incumbent: no candidate met min_effect"
    text = CliRunner().invoke(app, ["explain", "scale_h4", "rows=7"], catch_exceptions=False).stdout
    assert "your own function; the incumbent was kept: kept incumbent: no candidate met min_effect" in text


def test_an_entry_for_another_contract_or_layout_is_ignored_and_named(app, store):
    made, owned = _index()
    item = made.definitions[0]
    strided = item.entries[0].box.model_copy(update={"layout": "strided"})
    entries = (item.entries[0].model_copy(update={"box": strided}), *item.entries[1:])
    changed = (item.model_copy(update={"entries": entries}), made.definitions[1])
    publish(store, (made.model_copy(update={"definitions": changed}), owned))
    found = _json(app, "explain", "scale_h4", "rows=3")
    assert (found["served_by"], found["ignored_entries"]) == ("your function", ["rows=4"])


def test_another_device_class_gets_nothing_and_hears_what_was_measured(app, store):
    publish(store, _index())
    found = _json(app, "explain", "scale_h4", "rows=3", "--device-class", "sm_90a/132/hbm3e")
    assert found["reason"] == "other_device_class"
    assert HERE in found["detail"]


def test_a_device_is_asked_for_by_any_of_its_names(app, store):
    publish(store, index((SCALE, [((2, 4), CHOSEN)]), device_class="sm_90a/132/hbm3e"))
    for name in ("NVIDIA H200", "NVIDIA_H200", "sm_90a/132/hbm3e"):
        found = _json(app, "explain", "scale_h4", "rows=3", "--device-class", name)
        assert (found["served_by"], found["device_class"]) == ("solution", "sm_90a/132/hbm3e")
    found = _json(app, "explain", "scale_h4", "rows=3", "--device-class", "NVIDIA Something")
    assert (found["served_by"], found["reason"]) == ("your function", "other_device_class")
    assert "NVIDIA Something" in found["detail"]


def _two_keys(**more):
    """One entry of two keys, the weaker in front; and a key that kept the incumbent."""
    made, owned = modern(_index())
    item = made.definitions[0]
    weak = item.entries[0]
    strong = evidence(SCALE, weak, key="rows=2", ratio=1.9, interval=(1.8, 2.0), **more)
    entries = (weak.model_copy(update={"evidence": (strong, *weak.evidence)}), *item.entries[1:])
    changed = (item.model_copy(update={"entries": entries}), made.definitions[1])
    return made.model_copy(update={"definitions": changed}), owned


def test_an_entry_of_several_keys_lists_them_all_with_where_and_how_each_was_measured(app, store):
    publish(store, _two_keys(device_ids=("GPU-1",), drivers=("570.1",), structures=("kv_lens:~64/even",)))
    found = _json(app, "explain", "scale_h4", "rows=3")["evidence"]
    assert (found["ratio"], [item["key"] for item in found["keys"]]) == (1.5, ["rows=2", "rows=4"])
    assert found["keys"][0]["device_ids"] == ["GPU-1"]
    text = CliRunner().invoke(app, ["explain", "scale_h4", "rows=3"], catch_exceptions=False).stdout
    assert "key      rows=2 1.900, campaign 0: monotonic, eager, cache warm, isolated, quick" in text
    assert "on GPU-1 with torch" in text
    assert "driver 570.1" in text
    assert "measured on kv_lens:~64/even" in text


def test_a_kept_key_of_the_present_shape_says_why_with_its_rounds_and_verdict(app, store):
    publish(store, modern(_index()))
    found = _json(app, "explain", "scale_h4", "rows=7")
    assert (found["served_by"], found["reason"]) == ("incumbent", "kept incumbent: no candidate met min_effect")
    assert (found["evidence"]["verdict"], found["evidence"]["rounds"]) == ("kept_incumbent", 8)
    text = CliRunner().invoke(app, ["explain", "scale_h4", "rows=7"], catch_exceptions=False).stdout
    assert "your own function; the incumbent was kept: kept incumbent: no candidate met min_effect" in text


def test_outside_its_box_a_kept_keys_class_still_says_what_was_decided(app, store):
    publish(store, modern(index((SCALE, [((6, 8), None)]))))
    found = _json(app, "explain", "scale_h4", "rows=5")
    assert (found["served_by"], found["reason"]) == ("your function", "outside_every_box")
    assert found["detail"].endswith("at its key rows=8: kept incumbent: no candidate met min_effect")
    assert "at its key" not in _json(app, "explain", "scale_h4", "rows=9")["detail"]


def test_a_stale_entry_is_named_with_its_reason_and_is_not_served(app, store):
    publish(store, _two_keys(library_versions={"torch": "1.0"}))
    found = _json(app, "explain", "scale_h4", "rows=3")
    assert (found["served_by"], found["reason"]) == ("your function", "stale_library")
    (stale,) = found["stale_entries"]
    assert (stale["key"], stale["box"]) == ("rows=4", {"rows": [2, 4]})
    assert "measured with torch 1.0" in stale["reasons"][0]
    assert _json(app, "explain", "scale_h4", "rows=31")["served_by"] == "solution"
    text = CliRunner().invoke(app, ["explain", "scale_h4", "rows=3"], catch_exceptions=False).stdout
    assert "stale    rows=4, rows 2..4: measured with torch 1.0" in text


def test_without_a_network_the_pulled_index_answers(app, store, tmp_path):
    publish(store, _index())
    index_client.pull()
    (tmp_path / "store").rename(tmp_path / "gone")
    assert _json(app, "explain", "scale_h4", "rows=3")["served_by"] == "solution"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["scale_h5", "rows=3"], "close names: scale_h4"),
        (["scale_h4"], "missing: rows"),
        (["scale_h4", "rows=3", "columns=4"], "columns"),
        (["scale_h4", "rows=three"], "axis=value"),
        (["scale_h4", "rows"], "axis=value"),
        (["scale_h4", "rows=3", "h=5"], "fixed to another size: h"),
    ],
)
def test_a_question_that_cannot_be_answered_says_what_to_ask(app, store, arguments, said):
    publish(store, _index())
    with pytest.raises(ContractError, match=said):
        CliRunner().invoke(app, ["explain", *arguments], catch_exceptions=False)


BOXES = ((1, 1), (2, 2), (3, 4), (6, 8), (20, 30), (33, 64))
MADE, OWNED = index((SCALE, [(box, CHOSEN) for box in BOXES]))
CHOSEN_BY_DIGEST = {digest: chosen for digest, (_, chosen) in OWNED.items()}
PULLED = PulledIndex(MADE.digest, MADE, {SCALE.digest: SCALE}, CHOSEN_BY_DIGEST)


@settings(max_examples=150, deadline=None)
@given(rows=st.integers(0, 80))
def test_the_explanation_agrees_with_the_publishers_own_lookup(rows):
    entry_found = lookup.find(MADE, SCALE.digest, {"rows": rows}, HERE)
    found = ask(PULLED, "scale_h4", {"rows": rows})
    assert (found["entry"]["key"] if found["entry"] else None) == (entry_found.key if entry_found else None)
    inside = any(low <= rows <= high for low, high in BOXES)
    assert (found["served_by"] == "solution") is inside
