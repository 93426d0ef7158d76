"""What this process runs with, as far as it can know. In: names of libraries. Out: versions, the driver's version.

Imports none of them: installed metadata and one line of the kernel module's own file are enough.
"""

import re
from collections.abc import Iterable
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fib_core.index.staleness import Present
    from schemas.index import DispatchIndex

_DRIVER = Path("/proc/driver/nvidia/version")
_ABSENT = "absent"


@cache
def version_here(library: str) -> str:
    """Installed version of a distribution, or ``absent``."""
    try:
        return metadata.version(library)
    except metadata.PackageNotFoundError:
        return _ABSENT


def driver_here(place: Path = _DRIVER) -> str | None:
    """Version of the loaded NVIDIA kernel module; None where there is none, or none to be seen."""
    try:
        first = place.read_text().partition("\n")[0]
    except OSError:
        return None
    found = re.search(r"\b(\d+\.\d+(?:\.\d+)?)\b", first)
    return found.group(1) if found else None


def present_for(index: "DispatchIndex") -> "Present":
    """The present as this process can judge it: majors of the libraries that the index names, and of the driver.

    Bytes of solutions and definitions need no look: the reader names both by digest. What is absent judges nothing.
    """
    from fib_core.index.staleness import Present

    here = {name: version_here(name) for name in sorted(_named(index))}
    return Present(libraries={name: text for name, text in here.items() if text != _ABSENT}, driver=driver_here())


def _named(index: "DispatchIndex") -> Iterable[str]:
    found = set(index.library_versions)
    for definition in index.definitions:
        for entry in definition.entries:
            for item in entry.evidence:
                found |= item.library_versions.keys()
    # An interpreter is no distribution and a driver's interface is covered by the driver.
    return found - {"python", "cuda-driver"}
