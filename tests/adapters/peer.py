"""A second environment with the public package, made once under build/: the public tool reads what we write."""

import subprocess
import sysconfig
import venv
from pathlib import Path

PACKAGE = "flashinfer-bench==0.1.2"
HELPERS = ("docstring-parser==0.17.0",)


class PeerUnavailable(Exception):
    """The package index or the package cannot be had; the text says what pip said."""


def peer_python(build: Path) -> Path:
    """Interpreter of the peer environment; heavy libraries are borrowed from ours by a path file."""
    home = build / "peer-venv"
    python = home / "bin" / "python"
    ready = home / f"ready-{PACKAGE}"
    if not ready.exists():
        venv.create(home, with_pip=True, clear=True)
        _borrow(python)
        _install(python)
        ready.touch()
    return python


def _borrow(python: Path) -> None:
    program = "import sysconfig; print(sysconfig.get_path('purelib'))"
    purelib = subprocess.check_output([python, "-c", program], text=True)
    ours = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    (Path(purelib.strip()) / "borrowed.pth").write_text("\n".join(sorted(ours)) + "\n")


def _install(python: Path) -> None:
    command = [python, "-m", "pip", "install", "--quiet", "--no-deps", "--retries", "1", "--timeout", "20"]
    done = subprocess.run([*command, PACKAGE, *HELPERS], capture_output=True, text=True, timeout=240, check=False)
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["no output"])[-1]
        raise PeerUnavailable(f"pip cannot install {PACKAGE}: {last}")
