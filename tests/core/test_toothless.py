"""A workload that would let a plainly wrong output pass supports no promotion, and the record says which and why."""

from fib_core import report
from fib_core.workloads.axisclass import class_key
from schemas.workload import Workload
from tests.core.road import walk
from tests.core.world import World, gemm, solution

DEFINITION = gemm()
FAST = [solution("fast", DEFINITION)]


def _walk(survivors):
    return walk(World({"old": 1.0, "fast": 0.5}, survivors=survivors), FAST)


def test_with_teeth_everywhere_the_faster_kernel_is_promoted() -> None:
    assert any(item.verdict == "promoted" for item in _walk(lambda workload: ()).decisions)


def test_a_toothless_key_keeps_its_incumbent_and_the_others_do_not() -> None:
    sound = _walk(lambda workload: ())
    key = next(item.key for item in sound.decisions if item.verdict == "promoted")

    def survivors(workload: Workload) -> tuple[str, ...]:
        return ("zeros:C",) if class_key(workload.axes) == key else ()

    walked = _walk(survivors)
    by_key = {item.key: item for item in walked.decisions}
    assert by_key[key].verdict == "kept_incumbent"
    assert "toothless" in by_key[key].reason
    assert "zeros:C" in by_key[key].reason
    others = {item.key for item in sound.decisions if item.verdict == "promoted"} - {key}
    assert others
    assert {item.key for item in walked.decisions if item.verdict == "promoted"} == others


def test_a_definition_without_any_workload_that_kills_all_mutations_promotes_nothing() -> None:
    walked = _walk(lambda workload: ("mean:C",))
    assert {item.verdict for item in walked.decisions} == {"kept_incumbent"}
    assert all("toothless" in item.reason for item in walked.decisions)


def test_the_report_lists_toothless_workloads_with_their_mutations() -> None:
    walked = _walk(lambda workload: ("zeros:C",) if workload.axes["M"] == 1 else ())
    rows = report.toothless_rows(walked.screened, walked.snapshot)
    assert rows
    assert {row["mutations that pass"] for row in rows} == {"zeros:C"}
    assert {row["definition"] for row in rows} == {DEFINITION.name}
