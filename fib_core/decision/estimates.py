"""One contestant on one key: estimate, interval, p-value, gates; and which of the four conditions fail.

In: paired rounds and a look. Out: an Assessment. Statistics come from ``stats``; nothing here chooses a winner.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from fib_core.decision.paired import Entry, Rounds
from fib_core.decision.profiles import Look, Rules
from fib_core.decision.stats import hodges_lehmann, holm, interval, lower_bound, signed_rank_p, standard_error
from schemas.base import Digest
from schemas.decision import Condition, Estimate, Spread
from schemas.snapshot import Placed


@dataclass(frozen=True)
class Assessment:
    """Figures of one contestant at one look. ``gate`` names the first gate that it does not pass."""

    digest: Digest
    log_ratios: tuple[float, ...]
    ratio: float
    interval: tuple[float, float]
    standard_error: float
    p_value: float
    gate_failed: str
    gate_slow: str
    effect: float = 0.0
    p_holm: float = 1.0
    failed: tuple[Condition, ...] = ()

    @property
    def gate(self) -> str:
        """The gate to name to a person."""
        return self.gate_failed or self.gate_slow

    @property
    def text(self) -> str:
        """``1.32x (1.21-1.40)``."""
        low, high = self.interval
        return f"{self.ratio:.2f}x ({low:.2f}-{high:.2f})" if self.log_ratios else "no complete round"

    @property
    def estimate(self) -> Estimate | None:
        """The record to publish; None if the rounds do not support one."""
        if not self.log_ratios or not all(map(math.isfinite, (*self.interval, self.standard_error))):
            return None
        return Estimate(
            solution_digest=self.digest, ratio=self.ratio, standard_error=self.standard_error, interval=self.interval,
            p_value=self.p_value, p_holm=self.p_holm, log_ratios=self.log_ratios,
        )  # fmt: skip

    def judged(self, p_holm: float, look: Look, effect: float) -> "Assessment":
        """The same figures with the four conditions answered."""
        enough = len(self.log_ratios) >= look.rounds
        answers: dict[Condition, bool] = {
            "significance": enough and p_holm < look.alpha,
            "min_effect": self.ratio >= 1 + effect,
            "gates_passed": not self.gate_failed,
            "gates_speed": not self.gate_slow,
        }
        failed = tuple(name for name, fine in answers.items() if not fine)
        return replace(self, p_holm=p_holm, effect=effect, failed=failed)

    @staticmethod
    def adjusted(raw: Sequence["Assessment"], look: Look, effect: float) -> list["Assessment"]:
        """Answer the conditions for all finalists of a key, with Holm's adjustment over them."""
        adjusted = holm([item.p_value for item in raw])
        return [item.judged(p_holm, look, effect) for item, p_holm in zip(raw, adjusted, strict=True)]


def assess(
    rounds: Rounds, entry: Entry, train: Sequence[Placed], gates: Sequence[Placed], look: Look, rules: Rules
) -> Assessment:
    """Figures of one contestant after ``look.rounds`` complete rounds."""
    logs = rounds.log_ratios(entry, train)[: look.rounds]
    low, high = interval(logs, rules.confidence) if logs else (-math.inf, math.inf)
    return Assessment(
        digest=entry.solution,
        log_ratios=logs,
        ratio=math.exp(hodges_lehmann(logs)) if logs else 0.0,
        interval=(math.exp(low), math.exp(high)),
        standard_error=standard_error(logs, rules.confidence) if logs else math.inf,
        p_value=signed_rank_p(logs),
        gate_failed=_failed_gate(rounds, entry),
        gate_slow=_slow_gate(rounds, entry, gates, look, rules),
    )


def noise_floor(spread: Spread | None, rules: Rules) -> float:
    """The least gain worth a change: the profile's, or so many A/A standard errors of the worker, if that is more."""
    return rules.min_effect if spread is None else max(rules.min_effect, rules.noise_factor * spread.standard_error)


def _failed_gate(rounds: Rounds, entry: Entry) -> str:
    """The first non-passing evaluation of this contestant in the rounds of its definition."""
    found = rounds.failures.get(entry, ())
    first = min(found, key=lambda item: (item.job.round, item.status, item.job.workload_digest), default=None)
    return f"{first.status.value} in round {first.job.round}" if first else ""


def _slow_gate(rounds: Rounds, entry: Entry, gates: Sequence[Placed], look: Look, rules: Rules) -> str:
    """The first gate whose one-sided interval still allows a loss of more than the margin."""
    for item in gates:
        logs = rounds.log_ratios(entry, [item])[: look.rounds]
        bound = math.exp(lower_bound(logs, rules.confidence)) if logs else 0.0
        if bound < 1 - rules.margin:
            return f"{item.split} {_shape(item)}: {bound:.2f}x at worst"
    return ""


def _shape(item: Placed) -> str:
    return ", ".join(f"{name}={size}" for name, size in item.workload.axes.items())
