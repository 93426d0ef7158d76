"""What an index says about how a decision was measured. In: a Decision, its Evaluations, workloads. Out: KeyEvidence.

Pure. The samples themselves stay in the evaluations; the index carries a digest over their names.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import NamedTuple

from fib_core.decision.profiles import RULES
from fib_core.errors import ContractError
from fib_core.index.staleness import POLICY_VERSION
from schemas.base import Digest
from schemas.canonical import digest_of
from schemas.decision import Decision, Estimate, Profile
from schemas.evaluation import Evaluation, Mode, Timer
from schemas.index import KeyEvidence, MeasurementPolicy
from schemas.workload import RandomInput, Workload


@dataclass(frozen=True)
class Measured:
    """Facts that the evaluations behind one decision share; devices and drivers are all that took part, sorted."""

    device_ids: tuple[str, ...]
    drivers: tuple[str, ...]
    library_versions: Mapping[str, str]
    cache: str
    timer: Timer
    mode: Mode

    @classmethod
    def of(cls, evaluations: Iterable[Evaluation]) -> "Measured":
        """Read the facts off; raises ContractError if there are none, or if libraries, timer or mode differ.

        Jobs keep these three apart, so where they differ something answered for a device that it did not measure.
        """
        listed = list(evaluations)
        ways = {
            (item.job.timer, item.job.mode, tuple(sorted(item.environment.libraries.items()))) for item in listed
        }
        if len(ways) != 1:
            about = listed[0].job.definition_digest if listed else "nothing"
            raise ContractError(f"one decision on {about}: {len(listed)} evaluations, measured in {len(ways)} ways")
        ((timer, mode, versions),) = ways
        return cls(
            device_ids=tuple(sorted({item.environment.device_id for item in listed})),
            drivers=tuple(sorted({item.environment.driver for item in listed if item.environment.driver})),
            library_versions=dict(versions),
            cache="; ".join(sorted({item.cache_policy for item in listed})),
            timer=timer,
            mode=mode,
        )


def samples_digest(evaluations: Iterable[Digest]) -> Digest:
    """One name for all samples behind a decision: the digest of the sorted evaluation digests."""
    return digest_of(sorted(evaluations))


class Question(NamedTuple):
    """What one key's rounds ask, without how they come out: equal in every campaign and snapshot that asks the same."""

    definition: Digest
    key: str
    device_class: str
    profile: Profile
    incumbent: Digest | None
    forms: tuple[Digest, ...]
    finalists: tuple[Digest, ...]
    workloads: tuple[Digest, ...]

    @classmethod
    def of(cls, decision: Decision) -> "Question":
        """What a decision answered."""
        return cls(
            decision.definition_digest, decision.key, decision.box.device_class, decision.profile,
            decision.incumbent_digest, decision.forms, decision.finalists, decision.workloads,
        )  # fmt: skip

    @property
    def digest(self) -> Digest:
        """Whatever the order of forms, finalists and workloads."""
        body = self._asdict()
        return digest_of(body | {name: sorted(body[name]) for name in ("forms", "finalists", "workloads")})


def rules_digest(profile: Profile) -> Digest:
    """Name of the decision rule's numbers; it changes with any of them."""
    return digest_of(asdict(RULES[profile]))


def winning_estimate(decision: Decision) -> Estimate | None:
    """The estimate of whoever was promoted."""
    return next((item for item in decision.estimates if item.solution_digest == decision.solution_digest), None)


def evidence_of(decision: Decision, measured: Measured, workloads: Sequence[Workload]) -> KeyEvidence:
    """The decision as its index entry carries it; ``workloads`` are those that it timed, gates included."""
    estimate = winning_estimate(decision)
    return KeyEvidence(
        key=decision.key,
        decision_digest=decision.digest,
        contest_digest=Question.of(decision).digest,
        campaign=decision.campaign,
        snapshot_digest=decision.snapshot_digest,
        ratio=estimate.ratio if estimate else None,
        standard_error=estimate.standard_error if estimate else None,
        interval=estimate.interval if estimate else None,
        rounds=decision.rounds,
        finalist_count=len(decision.finalists),
        samples_digest=samples_digest(decision.evaluations),
        device_ids=decision.device_ids or measured.device_ids,
        drivers=measured.drivers,
        library_versions=dict(measured.library_versions),
        policy=MeasurementPolicy(
            version=POLICY_VERSION, cache=measured.cache, launch="eager", timer=measured.timer, mode=measured.mode,
            profile=decision.profile, rules=rules_digest(decision.profile),
        ),
        structures=tuple(sorted({item.structure_class for item in workloads} - {""})),
        distributions=tuple(sorted({name for item in workloads for name in _distributions(item)})),
    )  # fmt: skip


def _distributions(workload: Workload) -> list[str]:
    """``probs:peaked`` for every input whose random values are not the standard normal ones."""
    random = {name: item for name, item in workload.inputs.items() if isinstance(item, RandomInput)}
    return [f"{name}:{item.distribution}" for name, item in random.items() if item.distribution]
