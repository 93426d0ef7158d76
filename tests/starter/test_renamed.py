"""Verdicts come from behaviour alone: every faulty starter kernel, and the same file under other names and layout.

All contestants of one definition go through one visit of a real worker: the original, then its renamed twin.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from renaming import renamed

from fib_core.adapters.device_worker import DeviceWorker
from fib_core.workloads.structure import recipes_for
from schemas.definition import Definition
from schemas.evaluation import Evaluation, Limits, Status
from schemas.solution import Solution
from schemas.visit import Contestant, VisitRequest
from schemas.workload import Workload

# A visit waits for the host-wide device lock, which somebody else's run may hold for minutes.
pytestmark = pytest.mark.timeout(900)

HERE = Path(__file__).parent
DATA = HERE.parents[1] / "infra" / "starter" / "data"
FAULTY: dict[str, Any] = json.loads((HERE / "faulty.json").read_text())
DEFINITIONS = list(dict.fromkeys(name.split("__")[0] for name in FAULTY))
# A hanging kernel costs its limit twice, so it is short where one hangs; a loaded machine fills memory in seconds.
VISIT_S = {"gemm": 10.0, "rope": 4.0}
LIMITS = Limits(visit_s=8.0, build_s=120.0, memory_bytes=3 << 30)
ROPE = {"num_tokens": 3, "num_qo_heads": 4, "num_kv_heads": 2, "max_seq_len": 64}
AXES = {"gemm": {"M": 3}, "rmsnorm": {"batch_size": 3}, "rope": ROPE, "sampling": {"batch_size": 8}}
STRUCTURE: dict[str, dict[str, tuple[int, ...]]] = {"rope": {"positions": (5, 40, 41)}}


@pytest.fixture(scope="module")
def worker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DeviceWorker]:
    with DeviceWorker(cache_dir=tmp_path_factory.mktemp("build")) as running:
        yield running


def read(name: str) -> Solution:
    return Solution.model_validate_json(next(DATA.glob(f"solutions/*/*/*/{name}.json")).read_bytes())


def verdicts(
    worker: DeviceWorker, definition: Definition, solutions: list[Solution], patience: float = 1.0
) -> list[Evaluation]:
    axes = AXES[definition.op_type]
    recipes = recipes_for(definition, axes, STRUCTURE.get(definition.op_type, {}), {})
    digests = [one.digest_for(definition.digest) for one in solutions]
    contestants = tuple(
        Contestant(role="candidate", solution=one, solution_digest=digest)
        for one, digest in zip(solutions, digests, strict=True)
    )
    request = VisitRequest(
        definition=definition,
        workloads=(Workload(definition_digest=definition.digest, axes=axes, inputs=recipes),),
        contestants=contestants,
        stage="screen",
        round=0,
        seed="renamed",
        warmup_count=1,
        sample_count=2,
        input_sets=2,
        sampling_draws=4000 if definition.op_type == "sampling" else 0,
        limits=LIMITS.model_copy(update={"visit_s": patience * VISIT_S.get(definition.op_type, LIMITS.visit_s)}),
    )
    result = worker.visit(request)
    assert result.fault is None, result.fault
    return list(result.evaluations)


@pytest.mark.parametrize("name", DEFINITIONS)
def test_a_faulty_kernel_gets_its_verdict_under_any_name_and_layout(worker: DeviceWorker, name: str) -> None:
    definition = Definition.model_validate_json(next(DATA.glob(f"definitions/*/{name}.json")).read_bytes())
    labels = [label for label in FAULTY if label.split("__")[0] == name]
    originals = [read(label) for label in labels]
    twins = [renamed(one) for one in originals]
    assert all(one.identity() != twin.identity() for one, twin in zip(originals, twins, strict=True))
    found = verdicts(worker, definition, originals + twins)
    late = [place for place, one in enumerate(found) if one.status is Status.TIMEOUT]
    late = [place for place in late if "TIMEOUT" not in FAULTY[labels[place % len(labels)]]["statuses"]]
    if late:  # the limit is short for the sake of those that hang; a slow or stalled host keeps others from their end
        again = verdicts(worker, definition, [(originals + twins)[place] for place in late], patience=8.0)
        found = [again[late.index(place)] if place in late else one for place, one in enumerate(found)]
    seen = {
        label: ((one.status.value, one.rule), (twin.status.value, twin.rule), one.reason)
        for label, one, twin in zip(labels, found[: len(labels)], found[len(labels) :], strict=True)
    }
    for label, (verdict, twin_verdict, reason) in seen.items():
        expected = FAULTY[label]
        assert verdict[0] in expected["statuses"], f"{label} ({expected['fault']}): {verdict}: {reason}"
        assert not expected["rules"] or verdict[1] in expected["rules"], f"{label}: {verdict}: {reason}"
        assert twin_verdict == verdict, f"{label}: {verdict} became {twin_verdict} under other names"


def test_the_renaming_leaves_no_name_of_the_original() -> None:
    for label in FAULTY:
        original = read(label)
        twin = renamed(original)
        assert twin.entry_symbol not in original.sources[0].content
        assert original.entry_symbol + "(" not in twin.sources[0].content.replace("FUNC(", "")


def test_sound_kernels_pass_under_any_name(worker: DeviceWorker) -> None:
    definition = Definition.model_validate_json(next(DATA.glob("definitions/*/rmsnorm_h1024.json")).read_bytes())
    sound = [read("rmsnorm_h1024__two_pass"), read("rmsnorm_h1024__fp32"), renamed(read("rmsnorm_h1024__fp32"))]
    assert [one.status.value for one in verdicts(worker, definition, sound)] == ["PASSED"] * 3
