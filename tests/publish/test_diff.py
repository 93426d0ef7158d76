"""What changed between two indexes: every entry falls in one place, and counts sum."""

from hypothesis import given
from hypothesis import strategies as st

from fib_core.index.index_diff import CHANGES, INCUMBENT, back_again, counts, diff, left_out
from schemas.index import KeptKey
from tests.runtime.published import FUSED, FUSED_VALUE, SCALE, SCALE_DPS, SCALE_VALUE, entry, index, solution

VALUE, DPS, BOTH = solution(SCALE, SCALE_VALUE), solution(SCALE, SCALE_DPS, dps=True), solution(FUSED, FUSED_VALUE)


def of(*boxes, definition=SCALE, note="1", **more):
    """An index of one definition with entries (rows, solution[, changed fields])."""
    record, _ = index((definition, [(rows, chosen) for rows, chosen, *_ in boxes]), note=note)
    entries = tuple(entry(definition, rows, chosen, **(rest[0] if rest else {})) for rows, chosen, *rest in boxes)
    block = record.definitions[0].model_copy(update={"entries": entries} | more)
    return record.model_copy(update={"definitions": (block,)})


def only(old, new):
    (row,) = diff(old, new)
    return row


def test_the_same_index_has_only_unchanged_keys():
    same = of(((2, 4), VALUE), ((5, 8), None))
    assert {row.change for row in diff(same, same)} == {"unchanged"}
    assert counts(diff(same, same)) == {"old": 2, "new": 2, "unchanged": 2, "stale": 0} | dict.fromkeys(CHANGES[:-1], 0)


def test_another_winner_is_named_on_both_sides():
    row = only(of(((2, 4), VALUE)), of(((2, 4), DPS)))
    assert (row.change, row.old.winner, row.new.winner) == ("winner", VALUE.name, DPS.name)


def test_a_key_that_lost_its_winner_is_a_change_to_the_incumbent_however_it_is_listed():
    kept = KeptKey(
        key="rows=4", box=entry(SCALE, (2, 4), None).box, verdict="kept_incumbent", reason="no gain",
        decision_digest="sha256:" + "5" * 64,
    )  # fmt: skip
    for new in (of(((2, 4), None)), of(kept=(kept,))):
        row = only(of(((2, 4), VALUE)), new)
        assert (row.change, row.new.winner, row.new.ratio) == ("winner", INCUMBENT, None)
        assert "ratio" in row.also


def test_another_ratio_comes_with_both_intervals():
    row = only(of(((2, 4), VALUE)), of(((2, 4), VALUE, {"ratio": 1.2, "interval": (1.1, 1.3)})))
    assert (row.change, row.also) == ("ratio", ())
    assert (row.old.ratio, row.old.interval, row.new.ratio, row.new.interval) == (1.5, (1.4, 1.6), 1.2, (1.1, 1.3))


def test_another_guard_is_a_change_of_the_same_key():
    row = only(of(((2, 4), VALUE)), of(((3, 4), VALUE)))
    assert (row.change, row.old.guard["axes"], row.new.guard["axes"]) == ("guard", {"rows": [2, 4]}, {"rows": [3, 4]})
    other = of(((2, 4), VALUE)).model_copy(update={"device_class": "sm_90a/132/hbm3e"})
    block = other.definitions[0]
    moved = block.entries[0].box.model_copy(update={"device_class": "sm_90a/132/hbm3e"})
    entries = (block.entries[0].model_copy(update={"box": moved}),)
    other = other.model_copy(update={"definitions": (block.model_copy(update={"entries": entries}),)})
    assert only(of(((2, 4), VALUE)), other).change == "guard"


def test_measured_again_with_the_same_figures_is_a_change_of_evidence_alone():
    row = only(of(((2, 4), VALUE)), of(((2, 4), VALUE, {"decision_digest": "sha256:" + "7" * 64})))
    assert (row.change, row.also) == ("evidence", ())


def test_a_key_with_several_boxes_is_paired_box_by_box():
    both = [((1, 2), VALUE, {"key": "k"}), ((4, 5), VALUE, {"key": "k"})]
    rows = diff(of(*both), of(both[1]))
    assert sorted(row.change for row in rows) == ["removed", "unchanged"]
    assert next(row for row in rows if row.change == "removed").old.guard["axes"] == {"rows": [1, 2]}


def test_an_entry_measured_with_another_major_version_is_stale_and_only_that():
    old = of(((2, 4), VALUE)).model_copy(update={"library_versions": {"torch": "2.1"}})
    new = of(((5, 8), VALUE)).model_copy(update={"library_versions": {"torch": "3.0"}})
    removed, added = sorted(diff(old, new), key=lambda row: row.change != "removed")
    assert "library" in removed.stale[0]
    assert added.stale == ()
    assert counts([removed, added])["stale"] == 1
    minor = new.model_copy(update={"library_versions": {"torch": "2.9"}})
    assert all(row.stale == () for row in diff(old, minor))


def test_keys_of_a_changed_definition_are_stale():
    gone, _ = index((SCALE, [((2, 4), VALUE)]))
    new, _ = index((FUSED, [((2, 4), BOTH)]))
    removed = next(row for row in diff(gone, new) if row.change == "removed")
    assert removed.stale[0].startswith("definition:")


BOXES = st.lists(
    st.tuples(
        st.sampled_from([(1, 1), (2, 2), (3, 4), (5, 8)]),
        st.sampled_from([VALUE, DPS, None]),
        st.sampled_from([{}, {"key": "k"}, {"rounds": 20}, {"decision_digest": "sha256:" + "7" * 64}]),
    ),
    max_size=6,
)


@given(one=BOXES, other=BOXES)
def test_counts_sum_and_every_entry_appears_exactly_once(one, other):
    old, new = of(*one), of(*other)
    rows, found = diff(old, new), counts(diff(old, new))
    assert found["old"] == len(one) == sum(row.old is not None for row in rows)
    assert found["new"] == len(other) == sum(row.new is not None for row in rows)
    assert sum(found[name] for name in CHANGES) == len(rows)
    for name in ("added", "removed"):
        assert found[name] == counts(diff(new, old))[{"added": "removed", "removed": "added"}[name]]
    listed = [side.guard for row in rows for side in (row.old,) if side]
    assert sorted(map(str, listed)) == sorted(
        str(item.box.model_dump(mode="json")) for block in old.definitions for item in block.entries
    )


def test_what_an_index_serves_and_the_next_does_not_hold_at_all_is_left_out():
    both, _ = index((SCALE, [((2, 4), VALUE)]), (FUSED, [((2, 4), BOTH), ((5, 8), BOTH)]))
    assert left_out(both, of(((5, 8), VALUE))) == {FUSED.name: 2}
    assert left_out(both, both) == {}
    assert left_out(of(((2, 4), VALUE)), of(((2, 4), None))) == {}, "decided otherwise is not left out"
    assert left_out(of(((2, 4), None)), of(((2, 4), BOTH), definition=FUSED)) == {}, "the incumbent served anyway"


def test_what_a_later_index_serves_again_is_named_and_what_never_went_is_not():
    gone, now = of(((2, 4), BOTH)), of(((2, 4), VALUE))
    assert back_again(gone, now, gone) == [f"{BOTH.name} of {SCALE.name}"]
    assert back_again(gone, now, now) == []
    assert back_again(gone, gone, gone) == []
    assert back_again(now, of(((2, 4), None)), of(((2, 4), BOTH))) == [], "another solution of that key is new"
