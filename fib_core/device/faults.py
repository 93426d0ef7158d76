"""Faults of the machine, each with the cause that a MachineFault carries. Torch-free."""

from fib_core.errors import DeviceError


class MachineFailure(DeviceError):
    """Base: ``cause`` is a short stable word, the message says what was seen."""

    cause = "device"


class ZygoteDied(MachineFailure):
    """The fork server is gone; it is started again for the next visit."""

    cause = "zygote_died"


class RefereeDied(MachineFailure):
    """The referee is gone or does not answer."""

    cause = "referee_died"


class RefereeFailed(MachineFailure):
    """The referee reported that it could not do its work (memory, disk)."""

    cause = "referee_failed"
