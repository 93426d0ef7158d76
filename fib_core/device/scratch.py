"""Points every cache and temporary file of this process, and of what it starts, below one private directory.

In: the directory a confined candidate may write. Out: the environment is changed. Must not import torch.
"""

import os
import tempfile
from pathlib import Path

# Compilers and libraries that keep what they built somewhere below the user's home unless told.
_PLACES = {
    "TMPDIR": "tmp",
    "HOME": "home",
    "XDG_CACHE_HOME": "cache",
    "TRITON_CACHE_DIR": "triton",
    "TORCHINDUCTOR_CACHE_DIR": "inductor",
    "TORCH_EXTENSIONS_DIR": "extensions",
    "TVM_FFI_CACHE_DIR": "tvm-ffi",
    "CUDA_CACHE_PATH": "cuda",
    "FLASHINFER_WORKSPACE_BASE": "flashinfer",
}


def settle(directory: Path) -> None:
    """Call before confinement; ``directory`` exists and is nobody else's."""
    for variable, name in _PLACES.items():
        place = directory / name
        place.mkdir(exist_ok=True)
        os.environ[variable] = str(place)
    tempfile.tempdir = os.environ["TMPDIR"]  # it may have been asked for, and remembered, before the fork
