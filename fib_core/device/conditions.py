"""What may change on a device from visit to visit: its clock, and who else is on it.

In: an :class:`Environment`. Out: readings, None where the host does not say. Only a CUDA device is asked: a CPU's
clock and neighbours change within a call, and show in the times themselves.
"""

import subprocess
from collections.abc import Callable
from typing import TypeVar

from fib_core.builders import nvidia
from fib_core.builders.toolchain import ToolchainMissing
from fib_core.device.environment_cuda import current_clock_mhz, other_processes
from fib_core.errors import DeviceError
from schemas.environment import Conditions, Environment

_Answer = TypeVar("_Answer")


def count_others(environment: Environment) -> int | None:
    """Processes on the device, asked while none of ours is there: no process id needs to be told apart."""
    return _asked(lambda: other_processes(environment.device_id).count) if _is_cuda(environment) else None


def conditions(environment: Environment, others: int | None) -> Conditions | None:
    """The device right after a turn; ``others`` as counted before the visit. None for a CPU."""
    if not _is_cuda(environment):
        return None
    return Conditions(clock_mhz=_asked(lambda: current_clock_mhz(environment.device_id)), other_processes=others)


def _is_cuda(environment: Environment) -> bool:
    return environment.device_class.startswith("sm_")


def _asked(question: Callable[[], _Answer]) -> _Answer | None:
    """The driver's answer; a driver that refuses spoils no visit, the reading is just not there."""
    nvml = nvidia.load_nvml()
    refusals: tuple[type[Exception], ...] = (DeviceError, ToolchainMissing, subprocess.SubprocessError)
    refusals += (nvml.NVMLError,) if nvml is not None else ()
    try:
        return question()
    except refusals:
        return None
