"""CUDA C++ solutions: compiled by :mod:`fib_core.builders.compile_cuda`, loaded as a C++ solution is."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from fib_core.builders.compile_cuda import ensure_compiled
from fib_core.builders.cpp import entry_of
from schemas.solution import Solution

_BUILD_S = 120.0


def build(solution: Solution, solution_digest: str, cache_dir: Path) -> Callable[..., Any]:
    """Load the shared object, compiled for this host's device unless that was done before with this toolchain."""
    return entry_of(solution, ensure_compiled(solution, cache_dir, _BUILD_S))
