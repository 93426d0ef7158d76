"""Opens the native clock of a CUDA device in a freshly forked candidate, before any contestant's code is there.

In: a device, the clock library. Out: the device is ready, CUPTI traces if it is there. Raises ``OSError`` if not.
"""

import ctypes
import gc
from pathlib import Path

import torch

_TEXT_BYTES = 512
_L2_FACTOR = 3  # a fill this many times the L2 cache leaves no input there


def find_functions(library: Path) -> None:
    """Load the clock and fill its table in the fork server: its forks cannot be given another one. Calls no driver.

    What is missing here (a driver, CUPTI) is said by :class:`DeviceClock`, in the process that needs it.
    """
    from fib_core.device.environment_cuda import find_cupti

    cupti = find_cupti()
    text = ctypes.create_string_buffer(_TEXT_BYTES)
    clock = ctypes.CDLL(str(library))
    clock.fib_clock_init(str(cupti).encode() if cupti else None, text, ctypes.c_size_t(_TEXT_BYTES))


class DeviceClock:
    """The clock of device ``cuda:INDEX`` in this process."""

    def __init__(self, device: str, library: Path) -> None:
        from fib_core.device.environment_cuda import find_cupti

        self.index, self.library = int(device.partition(":")[2]), library
        torch.cuda.set_device(self.index)
        torch.cuda.init()
        # Contexts of torch's own come first: nothing of it may start while a call is traced.
        self.generators = [torch.cuda.default_generators[self.index].manual_seed]
        clock, text = ctypes.CDLL(str(library)), ctypes.create_string_buffer(_TEXT_BYTES)
        size = ctypes.c_size_t(_TEXT_BYTES)
        cupti = find_cupti()
        code = clock.fib_clock_init(str(cupti).encode() if cupti else None, text, size)
        code = code if code < 0 else clock.fib_clock_open(self.index, text, size)
        if code < 0:
            raise OSError(f"the clock of {device} does not start: {text.value.decode(errors='replace')}")
        self.traced = code == 0
        torch.zeros(1, device=device)
        fill = _L2_FACTOR * torch.cuda.get_device_properties(self.index).L2_cache_size
        if clock.fib_clock_flush(ctypes.c_size_t(fill)) != 0:
            raise OSError(f"{device} has no room for {fill} bytes between calls")
        gc.collect()
