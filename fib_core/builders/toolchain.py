"""Which compiler would build, with what flags, for which CPU: facts that key compiled artefacts. Torch-free."""

import functools
import hashlib
import importlib.metadata
import importlib.util
import os
import shutil
import subprocess
from pathlib import Path

from fib_core.errors import BuildError

BASE_FLAGS = ("-O3", "-march=native", "-std=c++17", "-fPIC", "-shared")
_PROBE_S = 30


class ToolchainMissing(BuildError):
    """This host cannot compile at all: its own fault, not the sources'."""


def compiler() -> str:
    """Path of the C++ compiler: ``CXX`` or g++."""
    name = os.environ.get("CXX", "g++")
    path = shutil.which(name)
    if path is None:
        raise ToolchainMissing(f"no C++ compiler: {name} is not on PATH; install g++ or set CXX")
    return path


@functools.cache
def compiler_version(path: str) -> str:
    """First line of ``--version``."""
    done = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=_PROBE_S, check=False)
    return done.stdout.splitlines()[0] if done.stdout else "unknown"


def toolchain_name() -> str | None:
    """For an Environment; None where there is no compiler."""
    try:
        return compiler_version(compiler())
    except (BuildError, OSError, subprocess.TimeoutExpired):
        return None


@functools.cache
def cpu_flags() -> frozenset[str]:
    """CPU features as the kernel names them; ``-march=native`` means these."""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("flags"):
            return frozenset(line.split(":", 1)[1].split())
    return frozenset()


def version_of(distribution: str) -> str | None:
    """Installed version without importing the package; None if absent."""
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


@functools.cache
def ffi_flags() -> tuple[str, ...]:
    """Include and link flags of tvm-ffi, from its installed files (importing it would cost a serving process time)."""
    spec = importlib.util.find_spec("tvm_ffi")
    if spec is None or spec.origin is None:
        raise ToolchainMissing("apache-tvm-ffi is not installed; C++ solutions need the extra `gpu`")
    root = Path(spec.origin).parent
    library = root / "lib"
    return (f"-I{root / 'include'}", f"-L{library}", f"-Wl,-rpath,{library}", "-ltvm_ffi")


def fingerprint(options: tuple[str, ...], binding: str) -> str:
    """Everything but the sources that shapes the object file."""
    parts = [compiler_version(compiler()), *BASE_FLAGS, *options, binding, *sorted(cpu_flags())]
    parts += [f"{name}={version_of(name)}" for name in ("apache-tvm-ffi", *(["torch"] if binding == "torch" else []))]
    return hashlib.sha256("\x1f".join(parts).encode()).hexdigest()
