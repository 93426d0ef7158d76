"""Compiles CUDA C++ solutions with nvcc, for the device of this host, cached by content and toolchain. Torch-free.

In: a solution, a cache directory, a time limit. Out: the shared object's path, or ``BuildError`` with nvcc's output."""

import hashlib
import json
import os
import re
import shutil
import sys
from pathlib import Path

from fib_core.builders import nvidia, toolchain
from fib_core.builders.compile_cpp import LIBRARY, run_compiler
from fib_core.builders.sources import once, write_sources
from fib_core.errors import BuildError
from schemas.solution import Solution

BASE_FLAGS = ("-O3", "-std=c++17", "--expt-relaxed-constexpr")
_SHARED = ("-Xcompiler", "-fPIC", "-shared")
_ALLOWED = re.compile(
    r"-O[0-3]|-std=c\+\+(17|20)|-D[A-Za-z_]\w*(=[\w.+-]*)?|--?(use_fast_math|extra-device-vectorization|lineinfo)"
    r"|--?(expt-)?extended-lambda|--?(fmad|ftz|prec-div|prec-sqrt)=(true|false)|--?maxrregcount=\d{1,3}"
    r"|-Xptxas=-(v|O[0-3]|dlcm=c[agsv])|-l(cuda|cublas|cublasLt)"
)
_USUAL_PLACE = "/usr/local/cuda/bin/nvcc"


def ensure_compiled(solution: Solution, cache_dir: Path, build_s: float) -> Path:
    """Path of the shared object, compiled at most once per content, toolchain and architecture."""
    options = checked_options(solution)
    target = architecture_flag(nvidia.visible_gpu().capability)
    directory = cache_dir / artefact_key(solution, (*options, target))
    return once(directory, lambda private: _compile(solution, (*options, target), private, build_s)) / LIBRARY


def artefact_key(solution: Solution, options: tuple[str, ...]) -> str:
    """Hex name of what nvcc would make of this solution here; independent of the definition and the author."""
    binding = solution.spec.binding or "tvm-ffi"
    needed = ("apache-tvm-ffi", *(["torch"] if binding == "torch" else []))
    tools = [nvcc_version(nvcc()), toolchain.compiler_version(toolchain.compiler())]
    tools += [f"{name}={toolchain.version_of(name)}" for name in needed]
    sources = sorted([source.path, source.content] for source in solution.sources)
    body = json.dumps([sources, solution.entry_file, tools, BASE_FLAGS, options, binding])
    return hashlib.sha256(body.encode()).hexdigest()


def architecture_flag(capability: tuple[int, int]) -> str:
    """Machine code for this architecture alone, with its own instructions from 9.0 on (wgmma needs the ``a``)."""
    name = f"{capability[0]}{capability[1]}{'a' if capability[0] >= 9 else ''}"
    return f"-gencode=arch=compute_{name},code=sm_{name}"


def checked_options(solution: Solution) -> tuple[str, ...]:
    """The solution's own options; ``BuildError`` names the first that is not on the list."""
    for option in solution.spec.compile_options:
        if not _ALLOWED.fullmatch(option):
            raise BuildError(
                f"compile option {option!r} is not allowed for cuda; allowed: -O*, -std=c++17|20, -D*, "
                "--use_fast_math, --fmad=, --ftz=, --prec-div=, --prec-sqrt=, --maxrregcount=, --extended-lambda, "
                "--extra-device-vectorization, --lineinfo, -Xptxas=-v|-O*|-dlcm=*, -lcuda, -lcublas, -lcublasLt"
            )
    return tuple(solution.spec.compile_options)


def nvcc() -> str:
    """Path of nvcc: ``CUDACXX``, else on PATH, else in /usr/local/cuda."""
    name = os.environ.get("CUDACXX", "nvcc")
    path = shutil.which(name) or (shutil.which(_USUAL_PLACE) if name == "nvcc" else None)
    if path is None:
        raise toolchain.ToolchainMissing(f"cuda solutions need nvcc: {name} is not on PATH; install it or set CUDACXX")
    return path


def nvcc_version(path: str) -> str:
    """For a cache key and an Environment: the release with its build, such as ``V13.0.88``."""
    code, text = run_compiler([path, "--version"], 30)
    found = re.search(r"\bV\d+\.\d+\.\d+\b", text)
    if code != 0 or found is None:
        raise toolchain.ToolchainMissing(f"cuda solutions need nvcc: {path} --version answers {text[:200]!r}")
    return found.group()


def _compile(solution: Solution, options: tuple[str, ...], directory: Path, build_s: float) -> None:
    sources = directory / "src"
    write_sources(solution, sources)
    ends = (".cu", ".cc", ".cpp", ".cxx", ".c++")
    units = [str(sources / source.path) for source in solution.sources if source.path.endswith(ends)]
    if solution.spec.binding == "torch":
        command = [sys.executable, "-m", "fib_core.builders.compile_torch_cuda", str(directory), *options, "--", *units]
    else:
        output = ["-o", str(directory / LIBRARY)]
        command = [nvcc(), *BASE_FLAGS, *_SHARED, *options, f"-I{sources}", *units, *output, *_for_nvcc()]
    code, log = run_compiler(command, build_s)
    if code != 0 or not (directory / LIBRARY).exists():
        message = f"{solution.entry_file} does not compile as cuda (exit {code})"
        raise BuildError(message, log=log.replace(f"{sources}/", ""))


def _for_nvcc() -> list[str]:
    """tvm-ffi's flags; nvcc hands the linker's own on only through ``-Xlinker``."""
    flags: list[str] = []
    for flag in toolchain.ffi_flags():
        flags += flag.replace("-Wl,", "-Xlinker,", 1).split(",", 1) if flag.startswith("-Wl,") else [flag]
    return flags
