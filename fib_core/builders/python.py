"""Python solutions: a package per digest, imported by file location; the entry symbol is the callable."""

import importlib.util
import sys
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any

from fib_core.builders.sources import once, write_sources
from fib_core.errors import BuildError, EntryPointError
from schemas.solution import Solution


def build(solution: Solution, solution_digest: str, cache_dir: Path) -> Callable[..., Any]:
    """Import the entry file; syntax and import errors are build errors, other exceptions come through as they are."""
    root = place(solution, solution_digest, cache_dir)
    name = root.name
    module = _import(name, root, PurePosixPath(solution.entry_file))
    entry = getattr(module, solution.entry_symbol, None)
    if not callable(entry):
        raise EntryPointError(f"{solution.entry_file} has no callable {solution.entry_symbol!r}; check entry_point")
    found: Callable[..., Any] = entry
    return found


def place(solution: Solution, solution_digest: str, cache_dir: Path) -> Path:
    """The solution's sources on disk, written once: by whoever may write there, before whoever imports them."""
    name = "fib_solution_" + solution_digest.removeprefix("sha256:")[:16]
    return once(cache_dir / "python" / name, lambda directory: write_sources(solution, directory))


def _import(name: str, root: Path, entry: PurePosixPath) -> Any:
    """Import as ``name.path.to.entry``, so that relative imports work; absolute imports of siblings work as well."""
    package = _package(name, root)
    for part in entry.parent.parts:
        name = f"{name}.{part}"
        package = _package(name, Path(package.__path__[0]) / part)
    spec = importlib.util.spec_from_file_location(f"{name}.{entry.stem}", root / entry)
    if spec is None or spec.loader is None:
        raise BuildError(f"{entry} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    try:
        with _siblings(root):
            spec.loader.exec_module(module)
    except (SyntaxError, ImportError) as error:
        raise BuildError(f"{entry}: {type(error).__name__}: {error}", log=str(error)) from error
    return module


def _package(name: str, directory: Path) -> Any:
    """A package that only gives its modules a place; an ``__init__.py`` of the solution is not run."""
    package = types.ModuleType(name)
    package.__path__ = [str(directory)]
    sys.modules[name] = package
    return package


@contextmanager
def _siblings(root: Path) -> Iterator[None]:
    """Absolute imports of siblings, during the import only, then forgotten: two solutions may have a helper.py."""
    before = set(sys.modules)
    sys.path.insert(0, str(root))
    try:
        yield
    finally:
        sys.path.remove(str(root))
        for name in set(sys.modules) - before:
            file = getattr(sys.modules[name], "__file__", None) or ""
            if not name.startswith("fib_solution_") and file.startswith(str(root)):
                del sys.modules[name]
