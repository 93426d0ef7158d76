"""What a contest says of one workload, before it becomes an Evaluation. Plain data.

In: verdicts, samples, logs. Out: an :class:`Outcome`; and the time that a contestant has left.
"""

from dataclasses import dataclass, replace

from fib_core.device.verdict import Verdict
from fib_core.errors import BuildError
from schemas.evaluation import Status
from schemas.visit import VisitRequest


@dataclass(frozen=True)
class Outcome:
    """What one evaluation will say."""

    verdict: Verdict
    times_us: tuple[float, ...] = ()
    log: str = ""
    draws: int | None = None
    power: float | None = None
    second_us: tuple[float, ...] = ()
    survivors: tuple[str, ...] | None = None
    precision: str | None = None
    coarse_power: float | None = None

    def drawn(self, test: "Outcome") -> "Outcome":
        """This one after a distribution test: its verdict and figures, with our times."""
        return replace(
            self, verdict=test.verdict, log=test.log, draws=test.draws, power=test.power, coarse_power=test.coarse_power
        )


@dataclass
class Budget:
    """Time left to one contestant; the referee's work does not count."""

    left_s: float
    spent: bool = False


def not_compiled(request: VisitRequest, error: BuildError) -> list[Outcome]:
    """COMPILE_ERROR for every workload, with the compiler's own words."""
    outcome = Outcome(Verdict(Status.COMPILE_ERROR, "build", str(error)), log=error.log)
    return [outcome] * len(request.workloads)
