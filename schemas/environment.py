"""Where a number was measured: device class, libraries, clocks where known."""

from pydantic import Field

from schemas.base import Natural, NonEmpty, Record


class Environment(Record):
    """Hardware and software of one measurement. Absent is None, never a guess."""

    device_class: NonEmpty
    device_id: NonEmpty
    device_name: NonEmpty
    hostname_digest: str
    driver: str | None = None
    clock_mhz: float | None = None
    threads: int
    python: NonEmpty
    libraries: dict[str, str]
    toolchain: str | None = None


class Conditions(Record):
    """The device around one contestant's turn: what may change from visit to visit. Absent is None, never a guess."""

    clock_mhz: float | None = Field(default=None, ge=0)
    """Of the multiprocessors, right after the turn."""
    other_processes: Natural | None = None
    """Processes on the device when the visit had its lock and nothing of its own was there yet."""
