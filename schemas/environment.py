"""Where a number was measured: device class, libraries, clocks where known."""

from schemas.base import NonEmpty, Record


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
