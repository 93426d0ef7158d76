"""The device class of a tensor's device in this process. In: a torch device. Out: a class string.

The only part of that vocabulary which needs torch; the words themselves are in ``device_class``.
"""

from typing import Any

from fib_core.runtime.device_class import cpu_class, cuda_class, is_canonical
from fib_core.runtime.notices import once


class Devices:
    """Classes by device, remembered; threads are asked every time, since a process may change them."""

    def __init__(self) -> None:
        import torch

        self._torch = torch
        self._threads = torch.get_num_threads
        self._cpu = torch.device("cpu")
        self._by_threads: dict[int, str] = {}
        self._by_device: dict[Any, str] = {}

    def class_of(self, device: Any) -> str:
        """Class of a call whose tensors lie on ``device``."""
        if device == self._cpu:
            threads = self._threads()
            found = self._by_threads.get(threads)
            if found is None:
                found = self._by_threads[threads] = cpu_class(threads)
            return found
        found = self._by_device.get(device)
        if found is None:
            found = self._by_device[device] = self._accelerator_class(device)
        return found

    def _accelerator_class(self, device: Any) -> str:
        if device.type != "cuda":
            return str(device.type)
        facts = self._torch.cuda.get_device_properties(device)
        found = cuda_class((facts.major, facts.minor), facts.multi_processor_count, facts.name)
        if not is_canonical(found):
            once(f"no alias table knows the device name {facts.name!r}: as {found} it matches no entry of any index")
        return found
