"""A sealed mapping cannot be patched, replaced or unmapped by the code that shares its process."""

import ctypes
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from forked import free, refused

from fib_core.device import linux, seal

_NUMBERS = {
    "x86_64": {"mprotect": 10, "munmap": 11, "mmap": 9},
    "aarch64": {"mprotect": 226, "munmap": 215, "mmap": 222},
}
_READ_WRITE_EXECUTE = 7
_FIXED_PRIVATE_ANONYMOUS = 0x32
HOST_SEALS = bool(free(lambda: seal.seal(["[vdso]"])))
needs_seals = pytest.mark.skipif(not HOST_SEALS, reason="this kernel seals nothing")


def place_of(name: str) -> tuple[int, int]:
    """First address and length of the first mapping; the kernel's own pages come whole or not at all."""
    lines = Path("/proc/self/maps").read_text().splitlines()
    start, end = next(line for line in lines if line.endswith(name)).split()[0].split("-")
    return int(start, 16), int(end, 16) - int(start, 16)


def call(name: str, *words: int) -> int:
    return linux.syscall(_NUMBERS[linux.MACHINE][name], *words)


ATTACKS: dict[str, Callable[[int, int], int]] = {
    "patch": lambda at, length: call("mprotect", at, length, _READ_WRITE_EXECUTE),
    "replace": lambda at, length: call("mmap", at, length, 3, _FIXED_PRIVATE_ANONYMOUS, -1, 0),
    "unmap": lambda at, length: call("munmap", at, length),
}


@needs_seals
@pytest.mark.parametrize("attack", ATTACKS)
def test_a_sealed_library_cannot_be_changed(tmp_path: Path, attack: str) -> None:
    library = tmp_path / "driver.so"
    source = "int answer(void) { return 42; }"
    subprocess.run(["cc", "-shared", "-fPIC", "-x", "c", "-", "-o", str(library)], input=source, text=True, check=True)

    def act(names: list[str]) -> int:
        loaded = ctypes.CDLL(str(library))
        sealed = seal.seal(names)
        assert sealed == tuple(names)
        assert loaded.answer() == 42
        ATTACKS[attack](*place_of("driver.so"))
        return len(sealed)

    assert free(lambda: act([])) == 0
    assert refused(free(lambda: act(["driver.so"])))


@needs_seals
def test_the_kernels_clock_page_stays_what_it_is() -> None:
    def act() -> int:
        seal.seal(["[vdso]"])
        return ATTACKS["patch"](*place_of("[vdso]"))

    assert free(lambda: ATTACKS["patch"](*place_of("[vdso]"))) == 0
    assert refused(free(act))
    assert free(lambda: (seal.seal(["[vdso]"]), time.perf_counter_ns() > 0)[1]) is True


def test_an_unknown_name_seals_nothing() -> None:
    assert free(lambda: seal.seal(["no-such-library.so"])) == ()


def test_a_kernel_without_seals_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linux, "MACHINE", "riscv64")
    assert free(lambda: seal.seal(["[vdso]"])) == ()
