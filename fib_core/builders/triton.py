"""Triton solutions: Python sources; without a GPU they run in Triton's interpreter: slow, but the same language.

The interpreter computes bfloat16 wrongly unless a kernel converts to float32 first; that is its author's to mind.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fib_core.builders import python
from fib_core.errors import BuildError
from schemas.solution import Solution


def build(solution: Solution, solution_digest: str, cache_dir: Path) -> Callable[..., Any]:
    """As a Python solution, with the interpreter switched on where there is no CUDA device."""
    import torch

    if not torch.cuda.is_available():
        os.environ["TRITON_INTERPRET"] = "1"  # read by triton when a kernel is decorated
    try:
        import triton  # noqa: F401 (fail here, with a clear reason)
    except ImportError as error:
        raise BuildError("Triton is not installed; install the extra `gpu`", log=str(error)) from error
    return python.build(solution, solution_digest, cache_dir)
