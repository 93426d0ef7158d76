"""Compiles C++ solutions in a killable subprocess, cached by content and toolchain. Torch-free.

In: a solution, a cache directory, a time limit. Out: the shared object's path, or ``BuildError``
with the compiler's output.
"""

import hashlib
import json
import math
import os
import re
import resource
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from fib_core.builders import toolchain
from fib_core.builders.sources import once, write_sources
from fib_core.errors import BuildError
from schemas.solution import Solution

MODULE_NAME = "fib_solution"
LIBRARY = f"{MODULE_NAME}.so"
_ALLOWED = re.compile(r"-(O[0-3sgz]?|Ofast|f[a-z0-9=-]+|m[a-z0-9=.-]+|D[A-Za-z_]\w*(=[\w.+-]*)?|std=[a-z0-9+]+)")
# Look like -f options but load code into the compiler or write elsewhere.
_REFUSED = ("-fplugin", "-fdump", "-fprofile", "-fsanitize", "-fuse-ld")
_LOG_CHARS = 16000


def ensure_compiled(solution: Solution, cache_dir: Path, build_s: float) -> Path:
    """Path of the shared object, compiled at most once per content and toolchain, whoever else compiles now."""
    options = _checked_options(solution)
    target = cache_dir / artefact_key(solution, options)
    return once(target, lambda directory: _compile(solution, options, directory, build_s)) / LIBRARY


def artefact_key(solution: Solution, options: tuple[str, ...]) -> str:
    """Hex name of what the compiler would make of this solution here; independent of the definition and the author."""
    binding = solution.spec.binding or "tvm-ffi"
    sources = sorted([source.path, source.content] for source in solution.sources)
    body = json.dumps([sources, solution.entry_file, toolchain.fingerprint(options, binding)])
    return hashlib.sha256(body.encode()).hexdigest()


def _checked_options(solution: Solution) -> tuple[str, ...]:
    for option in solution.spec.compile_options:
        if not _ALLOWED.fullmatch(option) or option.startswith(_REFUSED):
            raise BuildError(f"compile option {option!r} is not allowed; allowed: -O*, -f*, -m*, -D*, -std=*")
    return tuple(solution.spec.compile_options)


def _compile(solution: Solution, options: tuple[str, ...], directory: Path, build_s: float) -> None:
    sources = directory / "src"
    write_sources(solution, sources)
    units = [str(sources / s.path) for s in solution.sources if s.path.endswith((".cc", ".cpp", ".cxx", ".c++"))]
    if solution.spec.binding == "torch":
        command = [sys.executable, "-m", "fib_core.builders.compile_torch", str(directory), *options, "--", *units]
    else:
        flags = [*toolchain.BASE_FLAGS, *options, f"-I{sources}"]
        output = ["-o", str(directory / LIBRARY)]
        command = [toolchain.compiler(), *flags, *units, *output, *toolchain.ffi_flags()]
    code, log = run_compiler(command, build_s)
    if code != 0 or not (directory / LIBRARY).exists():
        raise BuildError(f"{solution.entry_file} does not compile (exit {code})", log=log.replace(f"{sources}/", ""))


def run_compiler(command: list[str], limit_s: float) -> tuple[int, str]:
    """Exit code and output; the whole process group dies at the limit."""
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, start_new_session=True
    ) as process:
        _bound(process.pid, limit_s)
        try:
            output, _ = process.communicate(timeout=limit_s)
        except subprocess.TimeoutExpired as error:
            os.killpg(process.pid, signal.SIGKILL)
            raise BuildError(f"the compiler was stopped after {limit_s:g} s") from error
    return process.returncode, output.decode(errors="replace")[-_LOG_CHARS:]


def _bound(pid: int, limit_s: float) -> None:
    """A compiler whose caller is killed must end by itself."""
    seconds = math.ceil(limit_s) + 1
    with suppress(ProcessLookupError, PermissionError):
        resource.prlimit(pid, resource.RLIMIT_CPU, (seconds, seconds))
