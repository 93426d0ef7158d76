"""Compiles a torch extension: ``python -m fib_core.builders.compile_torch DIR OPTIONS... -- SOURCES...``."""

import sys

from fib_core.builders.compile_cpp import MODULE_NAME
from fib_core.builders.toolchain import BASE_FLAGS


def main(arguments: list[str]) -> None:
    """Leave ``DIR/fib_solution.so`` behind; the compiler's own output goes to stdout."""
    from torch.utils import cpp_extension

    split = arguments.index("--")
    directory, options, sources = arguments[0], arguments[1:split], arguments[split + 1 :]
    flags = [flag for flag in BASE_FLAGS if flag not in ("-shared",)] + options
    cpp_extension.load(
        MODULE_NAME, sources, extra_cflags=flags, build_directory=directory, verbose=True, is_python_module=False
    )


if __name__ == "__main__":
    main(sys.argv[1:])
