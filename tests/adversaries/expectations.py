"""The adversary corpus as a table: which file attacks how, and which verdicts are right for it.

A row may end in any of its ``verdicts``. Where what the cheat hides is slowness, ``true_us`` is the time that its work
really takes: then PASSED is right as well, if and only if every reported sample says so (the cheat had no effect).
"""

from dataclasses import dataclass
from typing import Literal

from schemas.evaluation import Status

Outcome = tuple[Status, str | None]
TOIL_US = 2000.0  # what the corpus's slow kernels burn in every call
SHORT_TOIL_US = 200.0  # of those whose work would hide in what a harness allows for its own overhead


@dataclass(frozen=True)
class Row:
    """One file. ``claim``: what a harness in the candidate's own process would record."""

    id: str
    file: str
    title: str
    verdicts: frozenset[Outcome]
    claim: str
    definition: str = "linear"
    destination_passing: bool = False
    true_us: float | None = None
    slowest_only: bool = False  # the true time shows in the slowest sample, not in each
    everywhere: bool = True  # caught on every workload; else on at least one
    copies: int = 1  # entries of the same file in one visit
    bystander: str | None = None  # an honest entry of the same visit, which must pass
    spoils_visit: bool = False  # may also end as a fault of the machine, which is nobody's pass
    language: Literal["python", "cpp", "cuda"] = "python"


def outcomes(status: Status, *rules: str) -> frozenset[Outcome]:
    """One outcome per rule."""
    return frozenset((status, rule) for rule in rules)


WRONG = outcomes(
    Status.INCORRECT_NUMERICAL, "tolerance", "nonfinite", "tail", "cluster", "frobenius", "wrong_base", "mask",
    "distribution",
)  # fmt: skip
TOLERANCE = outcomes(Status.INCORRECT_NUMERICAL, "tolerance")
NONFINITE = outcomes(Status.INCORRECT_NUMERICAL, "nonfinite")
LATE = outcomes(Status.CHEATED, "output_changed", "hidden_time")
HIDDEN = outcomes(Status.CHEATED, "hidden_time")
MUTATED = outcomes(Status.CHEATED, "input_mutated")
ALIAS = outcomes(Status.CHEATED, "input_alias")
CLOCK = outcomes(Status.CHEATED, "clock", "hidden_time", "below_floor", "code_changed")
FORGED = outcomes(Status.CHEATED, "forged_result")
TYPE = outcomes(Status.CHEATED, "tensor_type")
MODE = outcomes(Status.CHEATED, "torch_mode")
RED_ZONE = outcomes(Status.CHEATED, "red_zone")
SIGNAL = outcomes(Status.RUNTIME_ERROR, "signal")
UNREADABLE = outcomes(Status.RUNTIME_ERROR, "unreadable")
ASTRAY = SIGNAL | RED_ZONE | MUTATED  # a late write may meet memory that was given back, or that serves another call
EXIT = outcomes(Status.RUNTIME_ERROR, "exit")
RAISED = outcomes(Status.RUNTIME_ERROR, "exception")
BROKEN = SIGNAL | EXIT | outcomes(Status.RUNTIME_ERROR, "protocol")
STRIDES = outcomes(Status.INCORRECT_SHAPE, "strides", "layout")
PROCESSES = outcomes(Status.RUNTIME_ERROR, "process_limit")
HANG = outcomes(Status.TIMEOUT, "visit_limit")
NOTHING: frozenset[Outcome] = frozenset()
