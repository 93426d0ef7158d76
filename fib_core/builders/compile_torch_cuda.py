"""Compiles a torch extension with nvcc: ``python -m`` this module, ``DIR OPTIONS... -- SOURCES...``."""

import sys

from fib_core.builders.compile_cpp import MODULE_NAME
from fib_core.builders.compile_cuda import BASE_FLAGS


def main(arguments: list[str]) -> None:
    """Leave ``DIR/fib_solution.so`` behind; the compilers' own output goes to stdout."""
    from torch.utils import cpp_extension

    split = arguments.index("--")
    directory, options, sources = arguments[0], arguments[1:split], arguments[split + 1 :]
    libraries = [option for option in options if option.startswith("-l")]
    flags = [*BASE_FLAGS, *(option for option in options if option not in libraries)]
    cpp_extension.load(
        MODULE_NAME, sources, extra_cflags=["-O3", "-std=c++17"], extra_cuda_cflags=flags, extra_ldflags=libraries,
        build_directory=directory, verbose=True, with_cuda=True, is_python_module=False,
    )  # fmt: skip


if __name__ == "__main__":
    main(sys.argv[1:])
