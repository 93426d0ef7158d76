"""The ledger: nothing is forgotten, nothing damaged is believed, and INVALID never counts as an answer."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fib_core import ledger
from fib_core.errors import ObjectMissing, StoreRefused
from schemas.definition import AxisConst, AxisVar, Definition, TensorSpec
from schemas.environment import Environment
from schemas.evaluation import ErrorFigures, Evaluation, Job, JobPointer, Limits, Status
from tests.fakes.memory_store import MemoryStore

A, B, C = ("sha256:" + letter * 64 for letter in "abc")


def make_job(round_number: int = 0) -> Job:
    return Job(
        definition_digest=A,
        workload_digest=B,
        solution_digest=C,
        policy_version=1,
        stage="confirm",
        round=round_number,
        device_class="x86-64-v3/1t",
        library_versions={"torch": "2.13.0"},
        mode="isolated",
        timer="perf_counter",
        effort="w1-s3-i2-d0",
    )


def make_evaluation(
    samples: tuple[float, ...] = (1.5, 2.0), status: Status = Status.PASSED, job: Job | None = None
) -> Evaluation:
    return Evaluation(
        job=job or make_job(),
        status=status,
        errors={"out": ErrorFigures(max_abs=1e-9, max_rel=None)},
        samples_us=samples,
        convention="destination_passing",
        cache_policy="warm",
        input_sets=3,
        environment=Environment(
            device_class="x86-64-v3/1t", device_id="cpu:0", device_name="cpu", hostname_digest=A, threads=1,
            python="3.11", libraries={"torch": "2.13.0"},
        ),
        limits=Limits(visit_s=10, build_s=120, memory_bytes=1 << 31),
        seed="12ab",
        started_at="2026-01-01T00:00:00Z",
    )  # fmt: skip


def make_definition() -> Definition:
    return Definition(
        name="scale_n4",
        op_type="scale",
        axes={"M": AxisVar(), "N": AxisConst(value=4)},
        inputs={"x": TensorSpec(shape=("M", "N"), dtype="float32")},
        outputs={"y": TensorSpec(shape=("M", "N"), dtype="float32")},
        reference="def run(x):\n    return 2 * x\n",
    )


class TornStore(MemoryStore):
    """Dies before the n-th write, like a process killed between two of them."""

    def __init__(self, writes: int) -> None:
        super().__init__()
        self.left = writes

    def put_once(self, key: str, body: bytes) -> bool:
        if self.left == 0:
            raise KeyboardInterrupt
        self.left -= 1
        return super().put_once(key, body)


def test_a_recorded_evaluation_is_found_by_its_job_and_by_no_other() -> None:
    store = MemoryStore()
    evaluation = make_evaluation()
    assert ledger.find(store, make_job()) is None
    assert ledger.record(store, evaluation) == evaluation.digest
    assert ledger.find(store, make_job()) == evaluation
    assert ledger.find(store, make_job(round_number=1)) is None


@given(st.lists(st.floats(), max_size=5))
def test_every_sample_comes_back_exactly_even_a_non_finite_one(samples: list[float]) -> None:
    store = MemoryStore()
    ledger.record(store, make_evaluation(tuple(samples)))
    found = ledger.find(store, make_job())
    assert found is not None
    assert [repr(value + 0.0) for value in found.samples_us] == [repr(value + 0.0) for value in samples]


def test_the_first_evaluation_of_a_job_stands_and_the_second_writer_is_told_so() -> None:
    store = MemoryStore()
    first, second = make_evaluation((1.0,)), make_evaluation((2.0,))
    ledger.record(store, first)
    assert ledger.record(store, second) == first.digest
    assert ledger.find(store, make_job()) == first
    assert ledger.load(store, ledger.EVALUATIONS, second.digest, Evaluation) == second


def test_an_invalid_evaluation_is_kept_but_the_job_stays_open() -> None:
    store = MemoryStore()
    spoiled = make_evaluation((), Status.INVALID)
    assert ledger.record(store, spoiled) == spoiled.digest
    assert ledger.load(store, ledger.EVALUATIONS, spoiled.digest, Evaluation) == spoiled
    assert ledger.find(store, make_job()) is None
    good = make_evaluation()
    assert ledger.record(store, good) == good.digest
    assert ledger.find(store, make_job()) == good


@pytest.mark.parametrize("writes", [0, 1])
def test_a_writer_killed_between_writes_leaves_a_job_that_can_still_be_recorded(writes: int) -> None:
    store = TornStore(writes)
    with pytest.raises(KeyboardInterrupt):
        ledger.record(store, make_evaluation())
    assert ledger.find(store, make_job()) is None
    store.left = 99
    other = make_evaluation((9.0,))
    assert ledger.record(store, other) == other.digest
    assert ledger.find(store, make_job()) == other


def test_a_pointer_whose_evaluation_is_gone_is_refused_and_both_keys_are_named() -> None:
    store = MemoryStore()
    digest = ledger.record(store, make_evaluation())
    del store.objects[ledger.object_key(ledger.EVALUATIONS, digest)]
    with pytest.raises(StoreRefused, match=f"by-job/{make_job().digest[7:]}.*{digest}.*delete it"):
        ledger.find(store, make_job())


@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b'{"schema_version":"1"}', b"\xff\xfe"])
def test_bytes_that_are_no_evaluation_are_refused_not_taken_for_absence(damage: bytes) -> None:
    store = MemoryStore()
    digest = ledger.record(store, make_evaluation())
    store.objects[ledger.object_key(ledger.EVALUATIONS, digest)] = damage
    with pytest.raises(StoreRefused, match="damaged"):
        ledger.find(store, make_job())


def test_one_changed_sample_is_enough_to_be_refused() -> None:
    store = MemoryStore()
    evaluation = make_evaluation((1.5, 2.0))
    key = ledger.object_key(ledger.EVALUATIONS, ledger.record(store, evaluation))
    body = json.loads(store.objects[key])
    store.objects[key] = json.dumps(body).encode()
    assert ledger.find(store, make_job()) == evaluation, "control: formatting alone is no damage"
    body["samples_us"][1] = 1.9
    store.objects[key] = json.dumps(body).encode()
    with pytest.raises(StoreRefused, match="digest"):
        ledger.find(store, make_job())
    with pytest.raises(StoreRefused, match="digest"):
        ledger.record(store, evaluation)


@pytest.mark.parametrize("wrong", ["job", "evaluation of another job", "invalid evaluation"])
def test_a_pointer_that_lies_is_refused(wrong: str) -> None:
    store = MemoryStore()
    status = Status.INVALID if wrong == "invalid evaluation" else Status.PASSED
    job = make_job(7) if wrong == "evaluation of another job" else make_job()
    digest = ledger.save(store, ledger.EVALUATIONS, make_evaluation((1.0,), status, job))
    pointer = JobPointer(job=make_job(3).digest if wrong == "job" else make_job().digest, evaluation=digest)
    store.put_once(ledger.object_key(ledger.BY_JOB, make_job().digest), ledger.body_of(pointer))
    with pytest.raises(StoreRefused, match="another job"):
        ledger.find(store, make_job())


def test_a_definition_keeps_its_digest_through_the_store() -> None:
    store = MemoryStore()
    definition = make_definition()
    digest = ledger.save(store, "definitions", definition)
    assert ledger.save(store, "definitions/", definition) == digest
    assert list(store.keys("")) == [f"definitions/{digest[7:]}.json"]
    assert ledger.load(store, "definitions", digest, Definition).digest == definition.digest


def test_labels_may_differ_under_one_digest_and_the_first_stays() -> None:
    store = MemoryStore()
    definition = make_definition()
    renamed = definition.model_copy(update={"name": "other"})
    assert ledger.save(store, "definitions", definition) == ledger.save(store, "definitions", renamed)
    assert ledger.load(store, "definitions", definition.digest, Definition).name == "scale_n4"


def test_what_was_never_saved_is_missing_and_a_name_that_is_no_digest_is_refused() -> None:
    with pytest.raises(ObjectMissing):
        ledger.load(MemoryStore(), "definitions", A, Definition)
    with pytest.raises(StoreRefused, match="not a content digest"):
        ledger.load(MemoryStore(), "definitions", "../../etc/passwd", Definition)
