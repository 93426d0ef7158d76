"""Sources to a callable, per language. Shared by the judge (device) and by the serving process (runtime).

Importing this package costs nothing; a language's tools are imported when a solution of that language is loaded.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from fib_core.errors import BuildError
from schemas.solution import Solution


def load(solution: Solution, solution_digest: str, cache_dir: Path) -> Callable[..., Any]:
    """The solution's entry point, built under ``cache_dir`` if it is not there yet.

    Raises ``BuildError`` (does not compile, cannot be imported; ``log`` is the tool's output) or ``EntryPointError``.
    Whatever else the solution's own module raises at import comes through as it is.
    """
    language = solution.spec.language
    if language == "python":
        from fib_core.builders import python

        return python.build(solution, solution_digest, cache_dir)
    if language == "triton":
        from fib_core.builders import triton

        return triton.build(solution, solution_digest, cache_dir)
    if language == "cpp":
        from fib_core.builders import cpp

        return cpp.build(solution, solution_digest, cache_dir)
    if language == "cuda":
        from fib_core.builders import cuda

        return cuda.build(solution, solution_digest, cache_dir)
    raise BuildError(f"language {language!r} cannot be built on this device; supported: python, triton, cpp, cuda")
