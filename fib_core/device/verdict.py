"""From facts and comparisons to a verdict, in the order shape, dtype, mutation, values. Torch-free plain data.

In: rules and reasons found in the candidate or by the referee. Out: a :class:`Verdict`.
"""

from dataclasses import dataclass, field
from typing import Any

from schemas.evaluation import ErrorFigures, Status

_PROBLEM_STATUS = {
    "count": Status.INCORRECT_SHAPE,
    "tensor_type": Status.CHEATED,
    "layout": Status.INCORRECT_SHAPE,
    "shape": Status.INCORRECT_SHAPE,
    "dtype": Status.INCORRECT_DTYPE,
    "input_alias": Status.CHEATED,
    "strides": Status.INCORRECT_SHAPE,
    "no_tensor": Status.INCORRECT_SHAPE,
    "unreadable": Status.RUNTIME_ERROR,
}
_DEATH_RULE = {"timeout": "visit_limit"}
_LOAD_STATUS = {"build": Status.COMPILE_ERROR, "entry_point": Status.COMPILE_ERROR}


@dataclass(frozen=True)
class Verdict:
    """Status of one (solution, workload) with its rule and reason."""

    status: Status
    rule: str | None = None
    reason: str = ""
    errors: dict[str, ErrorFigures] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """For a socket."""
        errors = {name: figures.model_dump(mode="json") for name, figures in self.errors.items()}
        return {"status": self.status.value, "rule": self.rule, "reason": self.reason, "errors": errors}

    @classmethod
    def parse(cls, body: dict[str, Any]) -> "Verdict":
        """Inverse of :meth:`as_json`."""
        errors = {name: ErrorFigures.model_validate(figures) for name, figures in body["errors"].items()}
        return cls(Status(body["status"]), body["rule"], body["reason"], errors)


def cheated(rule: str, reason: str) -> Verdict:
    """An attack on the measurement, or what cannot be told from one."""
    return Verdict(Status.CHEATED, rule, reason)


def of_problem(problem: dict[str, str], call: int) -> Verdict:
    """A returned object that is wrong before its values are read."""
    rule = problem["rule"]
    reason = f"output {problem['output']} of call {call}: {problem['detail']}"
    return Verdict(_PROBLEM_STATUS[rule], rule, reason)


def of_failure(failure: dict[str, str]) -> Verdict:
    """An exception of the contestant, at load or in a call. What cannot be imported or found counts as not compiled."""
    return Verdict(_LOAD_STATUS.get(failure["rule"], Status.RUNTIME_ERROR), failure["rule"], failure["message"])


def of_death(cause: str, detail: str) -> Verdict:
    """A process that ended, was ended, or never answered."""
    status = Status.TIMEOUT if cause == "timeout" else Status.RUNTIME_ERROR
    return Verdict(status, _DEATH_RULE.get(cause, cause), detail)


def merge_figures(one: ErrorFigures | None, other: ErrorFigures) -> ErrorFigures:
    """The worse of two calls, figure by figure; unknown stays unknown."""
    if one is None:
        return other
    return ErrorFigures(
        max_abs=_extreme(max, one.max_abs, other.max_abs),
        max_rel=_extreme(max, one.max_rel, other.max_rel),
        matched_ratio=_extreme(min, one.matched_ratio, other.matched_ratio),
    )


def _extreme(choose: Any, one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else float(choose(one, other))
