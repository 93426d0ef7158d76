"""Captured tensors of a dataset folder: safetensors headers, integer contents, digests; and writing index arrays.

In: a dataset root and relative paths. Out: dtypes, shapes, numpy arrays. No torch:
bf16 and fp8 payloads are never decoded.
"""

import hashlib
import json
import math
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fib_core.adapters.flashinfer_trace_files import LFS_MARK, Malformed, parse_json, require_regular

MAX_HEADER_BYTES = 100_000_000

# safetensors dtype -> (ours, bits of one element)
_DTYPES = {
    "F32": ("float32", 32), "F16": ("float16", 16), "BF16": ("bfloat16", 16), "F64": ("float64", 64),
    "F8_E4M3": ("float8_e4m3fn", 8), "F8_E5M2": ("float8_e5m2", 8), "F4": ("float4_e2m1", 4),
    "I64": ("int64", 64), "I32": ("int32", 32), "I16": ("int16", 16), "I8": ("int8", 8),
    "U64": ("uint64", 64), "U32": ("uint32", 32), "U16": ("uint16", 16), "U8": ("uint8", 8), "BOOL": ("bool", 8),
}  # fmt: skip
_READABLE: dict[str, np.dtype[Any]] = {
    "float32": np.dtype("<f4"), "float16": np.dtype("<f2"), "float64": np.dtype("<f8"), "bool": np.dtype("?"),
    "int64": np.dtype("<i8"), "int32": np.dtype("<i4"), "int16": np.dtype("<i2"), "int8": np.dtype("i1"),
}  # fmt: skip
_NAMES = {ours: name for name, (ours, _) in _DTYPES.items()}


@dataclass(frozen=True)
class TensorEntry:
    """One tensor of a file: dtype in our words, shape, byte range behind the header."""

    dtype: str
    shape: tuple[int, ...]
    start: int
    end: int


class BlobMissing(Exception):
    """The file is not there (or only its Git LFS pointer is)."""


class BlobFolder:
    """Reads each file's header and digest once; paths stay inside the root."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._headers: dict[str, dict[str, TensorEntry] | Malformed | BlobMissing] = {}
        self._digests: dict[str, str] = {}

    def locate(self, path: str) -> Path:
        """The file behind a row's path; raises Malformed if the path leaves the root."""
        pure = PurePosixPath(path)
        if pure.is_absolute() or ".." in pure.parts or "\0" in path or "\\" in path:
            raise Malformed(f"path {path[:80]!r} leaves the dataset folder")
        return self._root / pure

    def entries(self, path: str) -> dict[str, TensorEntry]:
        """Tensors of one file by key; raises BlobMissing or Malformed."""
        if path not in self._headers:
            try:
                self._headers[path] = read_header(self.locate(path))
            except (Malformed, BlobMissing) as error:
                self._headers[path] = error
        known = self._headers[path]
        if isinstance(known, dict):
            return known
        raise known

    def entry(self, path: str, key: str) -> TensorEntry:
        """One tensor's header."""
        entries = self.entries(path)
        if key not in entries:
            raise Malformed(f"{path} has no tensor {key!r}, only {sorted(entries)[:8]}")
        return entries[key]

    def array(self, path: str, key: str) -> NDArray[Any]:
        """The values of a tensor whose dtype numpy knows."""
        entry = self.entry(path, key)
        if entry.dtype not in _READABLE:
            raise Malformed(f"{path}: {key} is {entry.dtype}, which is not read here")
        with self.locate(path).open("rb") as stream:
            (header_bytes,) = struct.unpack("<Q", stream.read(8))
            stream.seek(8 + header_bytes + entry.start)
            body = stream.read(entry.end - entry.start)
        array: NDArray[Any] = np.frombuffer(body, dtype=_READABLE[entry.dtype]).reshape(entry.shape)
        return array

    def digest(self, path: str) -> str:
        """Content digest of the whole file."""
        if path not in self._digests:
            with self.locate(path).open("rb") as stream:
                self._digests[path] = "sha256:" + hashlib.file_digest(stream, "sha256").hexdigest()
        return self._digests[path]


def read_header(path: Path) -> dict[str, TensorEntry]:
    """Parse and check a safetensors header against the file's size."""
    try:
        path.lstat()
    except (OSError, ValueError) as error:
        raise BlobMissing(str(path)) from error
    require_regular(path)
    size = path.stat().st_size
    with path.open("rb") as stream:
        head = stream.read(8)
        if LFS_MARK.startswith(head) and (head + stream.read(len(LFS_MARK) - 8)) == LFS_MARK:
            raise BlobMissing(str(path))
        length = struct.unpack("<Q", head)[0] if len(head) == 8 else MAX_HEADER_BYTES + 1
        if length > min(MAX_HEADER_BYTES, size - 8):
            raise Malformed("is not a safetensors file: its header is longer than the file")
        text = stream.read(length)
    return _entries(text, size - 8 - length)


def write_tensors(path: Path, tensors: Mapping[str, NDArray[Any]]) -> None:
    """Write arrays as one safetensors file; equal arrays give equal bytes."""
    header: dict[str, Any] = {}
    offset, bodies = 0, []
    for name in sorted(tensors):
        array = np.asarray(tensors[name], order="C")
        little = array.astype(array.dtype.newbyteorder("<"), copy=False)
        body = little.tobytes()
        header[name] = {
            "dtype": _NAMES[str(array.dtype)],
            "shape": list(array.shape),
            "data_offsets": [offset, offset + len(body)],
        }
        offset += len(body)
        bodies.append(body)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(bodies))


def _entries(text: bytes, payload_bytes: int) -> dict[str, TensorEntry]:
    try:
        header = parse_json(text.decode("utf-8"))
    except (Malformed, UnicodeDecodeError) as error:
        raise Malformed("is not a safetensors file: its header is not JSON") from error
    if not isinstance(header, dict):
        raise Malformed("is not a safetensors file: its header is not an object")
    return {key: _entry(key, item, payload_bytes) for key, item in header.items() if key != "__metadata__"}


def _entry(key: str, item: Any, payload_bytes: int) -> TensorEntry:
    try:
        dtype, bits = _DTYPES[item["dtype"]]
        shape = tuple(_natural(size) for size in item["shape"])
        start, end = (_natural(offset) for offset in item["data_offsets"])
    except (KeyError, TypeError, ValueError) as error:
        raise Malformed(f"is not a safetensors file: entry {key!r} is malformed") from error
    if not start <= end <= payload_bytes:
        raise Malformed(f"is truncated: tensor {key!r} ends at byte {end} of {payload_bytes}")
    if (end - start) * 8 != math.prod(shape) * bits:
        raise Malformed(f"tensor {key!r}: {end - start} bytes do not fit shape {list(shape)} of {dtype}")
    return TensorEntry(dtype, shape, start, end)


def _natural(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError(value)
    return value
