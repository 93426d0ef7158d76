"""What honest candidates do keeps working under confinement."""

import ctypes
import importlib.util
import mmap
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from forked import HOST, LIMITS, confined, free, needs_landlock, refused

from fib_core.device import linux, sandbox

KERNEL = """
import triton
import triton.language as tl

@triton.jit
def double(a, b, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(b + at, 2 * tl.load(a + at, mask=at < n), mask=at < n)
"""
NATIVE = """
#include <tvm/ffi/tvm_ffi.h>
int64_t run(int64_t a) { return 2 * a; }
TVM_FFI_DLL_EXPORT_TYPED_FUNC(run, run);
"""


def in_thread() -> int:
    found: list[int] = []
    threads = [threading.Thread(target=found.append, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(found)


def forked_child_ends(how: Callable[[], None]) -> int:
    pid = os.fork()
    if pid == 0:
        how()
        os._exit(3)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def native_code() -> int:
    code = {"x86_64": b"\xb8\x2a\x00\x00\x00\xc3", "aarch64": b"\x40\x05\x80\x52\xc0\x03\x5f\xd6"}[linux.MACHINE]
    region = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    region.write(code)
    address = ctypes.addressof(ctypes.c_char.from_buffer(region))
    return int(ctypes.CFUNCTYPE(ctypes.c_int)(address)())


def test_threads_forks_and_native_code_keep_working(tmp_path: Path) -> None:
    assert confined(in_thread) == 6
    assert confined(lambda: forked_child_ends(lambda: None)) == 3
    assert confined(native_code) == 42
    assert confined(lambda: os.getpriority(os.PRIO_PROCESS, 0)) == os.getpriority(os.PRIO_PROCESS, 0)


@needs_landlock
def test_a_candidate_still_rules_its_own_children() -> None:
    def end_child() -> int:
        child = subprocess.Popen(["sleep", "30"])
        child.kill()
        return child.wait()

    scoped = int(next(name for name in HOST if "landlock" in name).partition("abi")[2]) >= 6
    assert refused(confined(end_child)) or (scoped and confined(end_child) == -signal.SIGKILL)


def test_a_candidate_still_dies_of_its_own_abort() -> None:
    assert free(os.abort) == confined(os.abort) == f"ended with {-signal.SIGABRT}"


def adopted_by() -> int:
    """Parent of a grandchild whose own parent has gone."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        here = os.getpid()
        if os.fork() == 0:
            while os.getppid() == here:
                time.sleep(0.001)
            os.write(write, str(os.getppid()).encode())
        os._exit(0)
    os.waitpid(child, 0)
    return int(os.read(read, 20))


def test_orphans_stay_in_the_candidates_family() -> None:
    assert confined(lambda: adopted_by() == os.getpid()) is True
    assert free(lambda: adopted_by() == os.getpid()) is False


def test_its_parent_can_still_end_it() -> None:
    limits = replace(LIMITS, memory_bytes=1 << 30)
    ready, tell = os.pipe()
    pid = os.fork()
    if pid == 0:
        sandbox.confine(limits)
        os.write(tell, b"x")
        signal.pause()
    os.read(ready, 1)
    os.kill(pid, signal.SIGKILL)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGKILL
    os.close(ready)
    os.close(tell)


def torch_operators() -> bool:
    """Two OpenMP threads, told to bind themselves to cores; oneDNN's generated code; LAPACK."""
    os.environ.update(OMP_PROC_BIND="true", OMP_PLACES="cores")
    import torch

    torch.set_num_threads(2)
    square = torch.arange(2.0**18).reshape(512, 512)
    done = [
        square @ square,
        square.bfloat16() @ square.bfloat16(),
        torch.softmax(square, -1),
        torch.sort(square)[0],
        torch.linalg.qr(square[:64, :64])[0],
        torch.nn.functional.conv2d(square[None, None], square[None, None, :3, :3]),
    ]
    return all(tensor.numel() for tensor in done)


def interpreted_triton(directory: Path) -> bool:
    os.environ["TRITON_INTERPRET"] = "1"
    import torch

    (directory / "kernel.py").write_text(KERNEL)
    spec = importlib.util.spec_from_file_location("kernel", directory / "kernel.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    a, b = torch.arange(100.0), torch.zeros(100)
    module.double[(2,)](a, b, 100, BLOCK=64)
    return bool((b == 2 * a).all())


def compiled_native(directory: Path) -> int:
    """Compiles, links and loads, all below the scratch directory."""
    import tvm_ffi

    from fib_core.builders.compile_cpp import run_compiler
    from fib_core.builders.toolchain import BASE_FLAGS, compiler, ffi_flags

    os.environ["TMPDIR"] = str(directory)
    (directory / "native.cc").write_text(NATIVE)
    output, sources = directory / "native.so", directory / "native.cc"
    code, log = run_compiler([compiler(), *BASE_FLAGS, str(sources), "-o", str(output), *ffi_flags()], 60)
    assert code == 0, log
    return int(tvm_ffi.load_module(str(output)).run(21))


def in_a_fresh_process(work: str, directory: Path) -> str:
    """The result of one function of this file, confined, in a process whose parent never ran an operator.

    Torch's thread pools do not survive a fork, and other tests of this process may have started them.
    """
    program = (
        "import sys; from pathlib import Path; sys.path[:0] = sys.argv[1:3]\n"
        "import test_confined_work as here; from forked import confined\n"
        f"place = Path(sys.argv[3]); print(confined(lambda: here.{work}, place))"
    )
    paths = [str(Path(__file__).parent), str(Path(__file__).parents[2]), str(directory)]
    done = subprocess.run([sys.executable, "-c", program, *paths], capture_output=True, text=True, timeout=200)
    return done.stdout.strip() + done.stderr[-2000:]


def test_operators_keep_working(tmp_path: Path) -> None:
    assert in_a_fresh_process("torch_operators()", tmp_path) == "True"


def test_interpreted_triton_keeps_working(tmp_path: Path) -> None:
    assert in_a_fresh_process("interpreted_triton(place)", tmp_path) == "True"


@pytest.mark.slow
def test_a_compiler_and_what_it_made_keep_working(tmp_path: Path) -> None:
    assert confined(lambda: compiled_native(tmp_path), tmp_path) == 42
    assert (tmp_path / "native.so").exists()
