"""C++ solutions: compiled by :mod:`fib_core.builders.compile_cpp`, loaded here (tvm-ffi, or a torch extension)."""

import importlib.machinery
import importlib.util
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fib_core.builders.compile_cpp import MODULE_NAME, ensure_compiled
from fib_core.errors import BuildError, EntryPointError
from schemas.solution import Solution

_BUILD_S = 120.0


def build(solution: Solution, solution_digest: str, cache_dir: Path) -> Callable[..., Any]:
    """Load the shared object, compiling it first if this content was never compiled with this toolchain."""
    return entry_of(solution, ensure_compiled(solution, cache_dir, _BUILD_S))


def entry_of(solution: Solution, library: Path) -> Callable[..., Any]:
    """The entry point that a compiled solution exports."""
    module = _torch_module(library) if solution.spec.binding == "torch" else _ffi_module(library)
    entry = getattr(module, solution.entry_symbol, None)
    if entry is None:
        raise EntryPointError(f"{solution.entry_file} exports no {solution.entry_symbol!r}; check spec.entry_point")
    found: Callable[..., Any] = entry
    return found


def _ffi_module(library: Path) -> Any:
    import tvm_ffi

    try:
        return tvm_ffi.load_module(str(library))
    except (RuntimeError, OSError, ValueError) as error:
        raise BuildError(f"{library.name} does not load: {error}", log=str(error)) from error


def _torch_module(library: Path) -> Any:
    import torch  # noqa: F401 (its symbols must be there before the extension is)

    loader = importlib.machinery.ExtensionFileLoader(MODULE_NAME, os.fspath(library))
    spec = importlib.util.spec_from_file_location(MODULE_NAME, library, loader=loader)
    assert spec is not None, library
    try:
        module = importlib.util.module_from_spec(spec)
        loader.exec_module(module)
    except ImportError as error:
        raise BuildError(f"{library.name} does not load: {error}", log=str(error)) from error
    return module
