"""What ``fib doctor`` looks at. In: this machine. Out: findings: what was found, and what to do about a problem.

Modules are imported in processes of their own: a broken library may fail in any way, and none belongs in this one.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

FREE_BYTES_MIN = 2 << 30
IMPORT_LIMIT_S = 120.0
PIPELINE = "pip install 'fib[pipeline]' (or `make setup` in a checkout)"
KERNELS = "pip install 'fib[gpu]' (or `make setup` in a checkout)"
# Import name -> (what it is for, what to do when it does not import).
MODULES = {
    "torch": ("kernels and references", KERNELS),
    "triton": ("Triton solutions", KERNELS),
    "tvm_ffi": ("C++ solutions", KERNELS.replace("fib[gpu]", "apache-tvm-ffi")),
    "prefect": ("the pipeline", PIPELINE),
    "mlflow": ("the record of runs", PIPELINE),
}


@dataclass(frozen=True)
class Finding:
    """One line: ``advice`` is empty where nothing has to be done."""

    name: str
    ok: bool
    found: str
    advice: str = ""


def python_version(version: tuple[int, int] = sys.version_info[:2]) -> Finding:
    """3.11 or 3.12."""
    text = ".".join(map(str, version))
    if (3, 11) <= version < (3, 13):
        return Finding("python", True, text)
    return Finding("python", False, f"{text}, not 3.11 or 3.12", "make the environment with python3.11 or python3.12")


def programs() -> list[Finding]:
    """The compiler (``CXX`` or g++) and make."""
    wanted = {os.environ.get("CXX", "g++"): "install gcc with C++ (g++) or set CXX", "make": "install make"}
    found = {name: shutil.which(name) for name in wanted}
    return [
        Finding(Path(name).name, True, str(found[name]))
        if found[name]
        else Finding(Path(name).name, False, f"{name} is not on PATH", wanted[name])
        for name in wanted
    ]


def modules(names: dict[str, tuple[str, str]] | None = None) -> list[Finding]:
    """Each module imported in a fresh process; its version, or the last line of what went wrong."""
    names = MODULES if names is None else names
    running = {name: _import_elsewhere(name) for name in names}
    return [_imported(name, *names[name], process) for name, process in running.items()]


def home(path: Path) -> Finding:
    """``FIB_HOME`` can be written and has room."""
    advice = "set FIB_HOME to a folder that this user may write"
    try:
        path.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path) as file:
            file.write(b"x")
    except OSError as error:
        return Finding("home", False, f"{path} cannot be written ({error.strerror})", advice)
    free = shutil.disk_usage(path).free
    if free < FREE_BYTES_MIN:
        return Finding("home", False, f"{path} has {free >> 20} MiB free", "free 2 GiB, or set FIB_HOME elsewhere")
    return Finding("home", True, f"{path}, {free >> 30} GiB free")


def store(url: str) -> Finding:
    """Reachable, and honours conditional writes: a taken key is not written again, a moved pointer is not swapped."""
    from fib_core.errors import FibError
    from fib_core.runtime.index_client import open_store
    from flows.cli.store_probe import broken_promises

    try:
        opened = open_store(url)
        broken = broken_promises(opened)
    except FibError as error:
        return Finding("store", False, str(error), "see the store's address, credentials and rights")
    if broken:
        advice = "publish to a directory or to a server that honours If-None-Match and If-Match"
        return Finding("store", False, f"{opened.url} does not hold: {'; '.join(broken)}", advice)
    return Finding("store", True, f"{opened.url} reachable, conditional writes honoured")


def device() -> Finding:
    """The device that ``FIB_DEVICE`` names, by its class; nothing is run on it."""
    from fib_core.errors import FibError

    try:
        from tasks.settings import Settings
        from tasks.wiring import describe_device
    except ImportError as error:
        return Finding("device", False, f"needs the pipeline: {error}", PIPELINE)
    try:
        return Finding("device", True, describe_device(Settings()).device_class)
    except FibError as error:
        return Finding("device", False, str(error), "set FIB_DEVICE to cpu, or to a cuda:INDEX that this host has")


def _import_elsewhere(name: str) -> "subprocess.Popen[str]":
    code = (
        f"import importlib.metadata as m, {name}\n"
        f"owners = m.packages_distributions().get({name!r})\n"
        "print('version', m.version(owners[0]) if owners else 'unknown')"
    )
    return subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def _imported(name: str, purpose: str, advice: str, process: "subprocess.Popen[str]") -> Finding:
    try:
        out, err = process.communicate(timeout=IMPORT_LIMIT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return Finding(name, False, f"importing takes more than {IMPORT_LIMIT_S:.0f} s", advice)
    if process.returncode:
        why = err.strip().splitlines()[-1:] or [f"exit status {process.returncode}"]
        return Finding(name, False, f"does not import ({purpose}): {why[0]}", advice)
    version = next((line.split()[1] for line in out.splitlines() if line.startswith("version ")), "?")
    return Finding(name, True, version)
