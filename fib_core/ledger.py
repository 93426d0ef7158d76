"""What the project remembers: records under their digests, and which evaluation answers which job.

In: an ObjectStore (the port) and records. Out: records, verified against the digests that name them. Must not know
which store it is, nor what anybody does with the records.

Order of writes: the evaluation is durable before the pointer that names it exists, so a writer killed anywhere leaves
at worst an evaluation that no pointer names. A pointer to nothing therefore means damage, and is refused, never
measured around: the pointer is write-once, so a new measurement could not take its place.
"""

from typing import TypeVar

from pydantic import ValidationError

from fib_core.errors import ObjectMissing, StoreRefused
from fib_core.ports import ObjectStore
from schemas.base import PublicRecord, Record
from schemas.canonical import is_digest
from schemas.evaluation import Evaluation, Job, JobPointer

EVALUATIONS = "evaluations"
BY_JOB = "evaluations/by-job"

AnyRecord = TypeVar("AnyRecord", bound=Record)


def object_key(prefix: str, digest: str) -> str:
    """``<prefix>/<hex>.json``, where a record of that digest lies."""
    if not is_digest(digest):
        raise StoreRefused(f"{digest!r} is not a content digest (sha256: and 64 hex digits)")
    return f"{prefix.rstrip('/')}/{digest.removeprefix('sha256:')}.json"


def save(store: ObjectStore, prefix: str, record: Record) -> str:
    """Store ``record`` under its digest and return the digest; storing it again is free and checks what is there."""
    digest = record.digest
    if not store.put_once(object_key(prefix, digest), body_of(record)):
        load(store, prefix, digest, type(record))
    return digest


def load(store: ObjectStore, prefix: str, digest: str, model: type[AnyRecord]) -> AnyRecord:
    """Read the record named ``digest``; raises ``ObjectMissing``, or ``StoreRefused`` if its content has another."""
    key = object_key(prefix, digest)
    record = _parsed(store, key, model)
    if record.digest != digest:
        raise _damaged(store, key, f"its content has the digest {record.digest}")
    return record


def record(store: ObjectStore, evaluation: Evaluation) -> str:
    """Store an evaluation, then let its job point to it; returns the digest of the evaluation that stands for the job.

    Whoever points first stays: that may be another writer's digest. INVALID is stored but never pointed to, so that the
    job is measured again next time; its own digest is returned.
    """
    digest = save(store, EVALUATIONS, evaluation)
    if not evaluation.finished:
        return digest
    job = evaluation.job.digest
    pointer = JobPointer(job=job, evaluation=digest)
    if store.put_once(object_key(BY_JOB, job), body_of(pointer)):
        return digest
    standing = find(store, evaluation.job)
    return digest if standing is None else standing.digest


def find(store: ObjectStore, job: Job) -> Evaluation | None:
    """The finished evaluation of ``job``, or None if there is none yet; raises ``StoreRefused`` on damage."""
    key = object_key(BY_JOB, job.digest)
    try:
        pointer = _parsed(store, key, JobPointer)
    except ObjectMissing:
        return None
    try:
        evaluation = load(store, EVALUATIONS, pointer.evaluation, Evaluation)
    except ObjectMissing:
        raise _damaged(store, key, f"it points to {pointer.evaluation}, which is gone") from None
    if not evaluation.job.digest == pointer.job == job.digest or not evaluation.finished:
        raise _damaged(store, key, f"{pointer.evaluation} is unfinished, or evaluates another job")
    return evaluation


def body_of(record: Record) -> bytes:
    """JSON in field order: every field, or exactly the given keys where the record is the public format's.

    Not canonical bytes: those sort keys, and the order of a definition's inputs is its calling convention.
    """
    return record.model_dump_json(exclude_unset=isinstance(record, PublicRecord)).encode()


def _parsed(store: ObjectStore, key: str, model: type[AnyRecord]) -> AnyRecord:
    try:
        return model.model_validate_json(store.get(key).body)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        raise _damaged(store, key, f"it is no {model.__name__}: {place} {first['msg']}".replace("  ", " ")) from error


def _damaged(store: ObjectStore, key: str, why: str) -> StoreRefused:
    return StoreRefused(f"{key} in {store.url} is damaged: {why}; restore it from a copy, or delete it and run again")
