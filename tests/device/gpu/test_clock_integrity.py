"""The table of a CUDA clock is filled before the fork; what a fork does to it is seen from outside. Needs no device."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fib_core.builders import toolchain
from fib_core.device.driver_build import clock_beside, ensure_driver
from fib_core.device.integrity import NativeCode

_HERE = Path(__file__).parent
# A fork server in small: fills the table, then forks one child after another, each of which does one thing and waits.
_SERVER = """
import ctypes, os, sys, time
from pathlib import Path
from fib_core.device import device_clock, environment_cuda

library = Path(sys.argv[1])
environment_cuda.find_cupti = lambda: Path(sys.argv[2])
device_clock.find_functions(library)
clock = ctypes.CDLL(str(library))

def page():
    lines = Path('/proc/self/maps').read_text().splitlines()
    return [l for l in lines if l.endswith(library.name) and l.split()[1] == 'r--p'][-1].split()[0].split('-')

def redirect():
    start, end = (int(word, 16) for word in page())
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.mprotect(ctypes.c_void_p(start), ctypes.c_size_t(end - start), 3) == 0
    ctypes.memset(start + 8, 1, 8)
    assert libc.mprotect(ctypes.c_void_p(start), ctypes.c_size_t(end - start), 1) == 0

def ask_for_other_functions():
    assert clock.fib_clock_init(b'/nowhere/libcupti.so', None, ctypes.c_size_t(0)) == 0

print('ready', os.getpid(), flush=True)
for line in sys.stdin:
    if os.fork() == 0:
        {'rest': lambda: None, 'redirect': redirect, 'ask': ask_for_other_functions}[line.strip()]()
        print('done', os.getpid(), flush=True)
        time.sleep(60)
        os._exit(0)
"""


class Server:
    def __init__(self, driver: Path, fakes: Path) -> None:
        command = [sys.executable, "-c", _SERVER, str(clock_beside(driver)), str(fakes / "libcupti.so")]
        modules = os.pathsep.join([str(_HERE.parents[2]), os.environ.get("PYTHONPATH", "")])
        places = {"LD_LIBRARY_PATH": str(fakes), "PYTHONPATH": modules}
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=os.environ | places,
            start_new_session=True,
        )  # fmt: skip
        self.native_code = NativeCode(self._pid(), driver)

    def fork(self, deed: str) -> int:
        assert self.process.stdin is not None
        self.process.stdin.write(deed + "\n")
        self.process.stdin.flush()
        return self._pid()

    def _pid(self) -> int:
        assert self.process.stdout is not None
        return int(self.process.stdout.readline().split()[1])


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    fakes = tmp_path_factory.mktemp("fakes")
    made = fakes / "libcuda.so.1"
    flags = ["-std=c++17", "-fPIC", "-shared", "-o", str(made)]
    subprocess.run([toolchain.compiler(), *flags, str(_HERE / "fake_driver.cpp")], check=True, timeout=60)
    (fakes / "libcupti.so").symlink_to(made)
    running = Server(ensure_driver(tmp_path_factory.mktemp("build")), fakes)
    yield running
    os.killpg(running.process.pid, 9)
    running.process.wait()


def test_a_redirected_clock_table_is_seen_from_outside(server: Server) -> None:
    assert "fib_cuda_clock.so" in server.native_code.watched
    for whole in (True, False):
        assert server.native_code.changed_in(server.fork("redirect"), whole) == "fib_cuda_clock.so"


def test_an_honest_fork_has_changed_nothing(server: Server) -> None:
    assert server.native_code.changed_in(server.fork("rest")) is None


def test_a_filled_table_takes_no_other_functions(server: Server) -> None:
    assert server.native_code.changed_in(server.fork("ask")) is None
