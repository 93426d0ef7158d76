"""What a contest says of one workload, before it becomes an Evaluation. Plain data.

In: verdicts, samples, logs. Out: an :class:`Outcome`; and the time that a contestant has left.
"""

from dataclasses import dataclass, replace

from fib_core.device.verdict import Verdict
from fib_core.errors import BuildError
from schemas.evaluation import Status
from schemas.visit import VisitRequest


@dataclass(frozen=True)
class Cold:
    """What was slow once: from sources to a callable, the first call of the process, the first on this workload."""

    build_s: float | None = None
    first_call_us: float | None = None
    first_shape_us: float | None = None


@dataclass
class Newcomer:
    """A process of the contestant; ``build_s`` (compiling and loading) is told with its first workload only."""

    build_s: float | None = None
    served: bool = True

    @staticmethod
    def loaded(compile_s: float | None, load_s: float) -> "Newcomer":
        """One that has not been called yet."""
        return Newcomer(None if compile_s is None else compile_s + load_s, served=False)

    def meets(self, first_ns: int | None) -> Cold:
        """What is told of a workload whose first call took ``first_ns`` (None: it did not return)."""
        first_us = None if first_ns is None else first_ns / 1e3
        if self.served:
            return Cold(first_shape_us=first_us)
        self.served = True
        return Cold(self.build_s, first_us, first_us)


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
    cold: Cold = Cold()
    roofline_us: float | None = None

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
