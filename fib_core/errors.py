"""Who is guilty is in the type, never in a message.

FibError
├── ContractError          bad data: a file, a row, a definition that breaks its schema
│   └── UnsupportedInput   valid, but we cannot invent or load it (names the inputs)
├── CandidateError         a kernel's fault: becomes an Evaluation, never an exception in a flow
│   ├── BuildError
│   └── EntryPointError
├── DeviceError            the machine's fault: retried, then INVALID, never a verdict on a kernel
├── ObjectMissing          the store holds nothing under this key
├── PublishConflict        somebody else moved the pointer first
├── RolledBack             an operator went back from this index, so no run publishes it again
├── StoreRefused           the store cannot be trusted (ignores conditional writes, fails a digest, bad credentials)
└── TooManyInvalid         more than the allowed share of evaluations were spoiled by the machine
"""


class FibError(Exception):
    """Base of every error that a user may meet; says what happened, where, and what to do next."""


class ContractError(FibError):
    """Bad data. ``file`` and ``line`` (1-based, 0 = whole file) say where."""

    def __init__(self, reason: str, file: str = "", line: int = 0) -> None:
        self.reason, self.file, self.line = reason, file, line
        place = f"{file}:{line}: " if file and line else (f"{file}: " if file else "")
        super().__init__(place + reason)


class UnsupportedInput(ContractError):
    """A structural input that cannot be invented, or a blob that is not there."""


class CandidateError(FibError):
    """A kernel's fault."""


class BuildError(CandidateError):
    """The sources do not compile or import; ``log`` is the tool's own output."""

    def __init__(self, message: str, log: str = "") -> None:
        self.log = log
        super().__init__(message)


class EntryPointError(CandidateError):
    """Built, but the entry point is not there or cannot be called."""


class DeviceError(FibError):
    """The machine's fault."""


class ObjectMissing(FibError):
    """Nothing is stored under this key."""


class PublishConflict(FibError):
    """A conditional write lost: the pointer is not where it was read."""


class RolledBack(FibError):
    """The channel went back from this index by hand; publishing it again would undo that."""


class StoreRefused(FibError):
    """The store cannot be trusted with publishing."""


class TooManyInvalid(FibError):
    """The share of INVALID evaluations is above the limit; the run fails with exit code 3."""
