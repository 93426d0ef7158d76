"""Freezes mappings of this process: nobody, its own code included, can unmap, replace or make them writable again.

In: file names of mappings (the native driver, ``[vdso]`` with the clock). Out: which are frozen. Forks inherit it. A
mapping that is writable now stays writable. Must not import torch.
"""

from collections.abc import Collection
from pathlib import Path

from fib_core.device import linux
from fib_core.device.syscall_numbers import number_of


def seal(names: Collection[str]) -> tuple[str, ...]:
    """Freeze every mapping whose file has one of these names; kernels before 6.10 freeze nothing."""
    number = number_of("mseal", linux.MACHINE)
    found = [] if number is None else _mappings(names)
    done: dict[str, bool] = {}
    for name, start, end in found:
        done[name] = done.get(name, True) and _frozen(number or 0, start, end - start)
    return tuple(name for name, frozen in done.items() if frozen)


def _mappings(names: Collection[str]) -> list[tuple[str, int, int]]:
    """Name, first and last address. Adjacent pieces of a file come apart by their protection; all of them count."""
    found = []
    for line in Path("/proc/self/maps").read_text().splitlines():
        fields = line.split(maxsplit=5)
        name = fields[5].rpartition("/")[2] if len(fields) == 6 else ""
        if name in names:
            start, end = (int(text, 16) for text in fields[0].split("-"))
            found.append((name, start, end))
    return found


def _frozen(number: int, start: int, length: int) -> bool:
    try:
        linux.syscall(number, start, length, 0)
    except OSError:
        return False
    return True
