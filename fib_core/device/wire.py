"""What referee and driver say to each other, as bytes: the Python side of ``native/wire.h``.

In: places, shapes, orders. Out: packets for a SOCK_SEQPACKET pair, and answers parsed. Knows neither torch nor keys.
"""

import struct
from dataclasses import dataclass
from typing import Any

VERSION = 6
DIMS_MAX = 8
TENSORS_MAX = 48
DETAIL_BYTES = 256
HANDLE_BYTES = 192
_SETUP, _GO, _END, _DONE = 1, 2, 3, 4

STATIC, FRESH, OUTPUT, INTEGER, FLOAT, BOOLEAN = range(6)
RETURNED, BUFFER, IN_PLACE = range(3)
OK, RAISED, PROBLEM, MODE_ACTIVE, SKIPPED, BROKEN = range(6)
PROBLEMS = ("", "count", "tensor_type", "layout", "shape", "dtype", "input_alias", "strides", "no_tensor", "unreadable")

# DLPack's code and bits per dtype, in the order that the driver knows; the first eight cross DLPack as they are, the
# others as bytes that are then viewed.
DTYPES: dict[str, tuple[int, int]] = {
    "float32": (2, 32), "float16": (2, 16), "bfloat16": (4, 16), "int64": (0, 64), "int32": (0, 32), "int16": (0, 16),
    "int8": (0, 8), "bool": (6, 8), "float8_e4m3fn": (1, 8), "float8_e5m2": (1, 8),
}  # fmt: skip
_INDEX = {name: index for index, name in enumerate(DTYPES)}

_TENSOR = struct.Struct(f"<4BIQ{DIMS_MAX}q{DIMS_MAX}qQ")
_HEAD = struct.Struct(f"<4I3Q{HANDLE_BYTES}s")
_ORDER = struct.Struct("<4I7Q")
_ANSWER = struct.Struct(f"<4I5Q4I3q2i{DETAIL_BYTES}s")
_TAG = struct.Struct("<Q")


@dataclass(frozen=True)
class Answer:
    """One authenticated answer of the driver."""

    result: int
    call: int
    made: int
    elapsed_ns: int
    changed: bool
    problem: int
    output: int
    detail: str
    payload: bytes
    event_ns: int = 0
    cupti_ns: int = 0
    """Negative: CUPTI is not there (-1), was blinded (-2), or dropped records (-3)."""
    idle_ns: int = 0
    """From the end of the device's last work in the call to the event that ends it."""
    kernels: int = 0
    strays: int = 0
    """Kernels, and copies to the host, between the last call and this one."""
    head_ns: int = 0
    tail_ns: int = 0
    """Of the last call: from the order, or from when its inputs came, to its start; from its end to the answer, less
    what copying took."""
    own_ns: int = 0
    """CPU time of the driver's own: waiting for this order, copying inputs and outputs."""
    digest: int = 0
    """Of the outputs in memory that the contestant can still write to, as they were when it returned."""


def tensor(place: int, dtype: str, shape: tuple[int, ...], offset: int, strides: tuple[int, ...]) -> bytes:
    """One tensor argument or output at ``offset`` of its region or block; strides in elements."""
    code, bits = DTYPES[dtype]
    count = 1
    for size in shape:
        count *= size
    padding = (0,) * (DIMS_MAX - len(shape))
    dims = (*shape, *padding, *strides, *padding)
    return _TENSOR.pack(place, code, bits, _INDEX[dtype], len(shape), offset, *dims, count * bits // 8)


def scalar(value: bool | int | float) -> bytes:
    """One scalar argument, passed by value."""
    place = BOOLEAN if isinstance(value, bool) else INTEGER if isinstance(value, int) else FLOAT
    held = struct.unpack("<Q", struct.pack("<d", value) if place == FLOAT else struct.pack("<q", int(value)))[0]
    return _TENSOR.pack(place, 0, 0, 0, 0, held, *(0,) * (2 * DIMS_MAX), 0)


def setup(
    arguments: list[bytes], outputs: list[bytes], sizes: tuple[int, int, int], handles: bytes = b""
) -> bytes:
    """The packet that opens a workload; ``sizes`` in bytes of the static, the fresh and the output region.

    ``handles``: on a CUDA device, what opens the three, one after the other.
    """
    head = _HEAD.pack(_SETUP, VERSION, len(arguments), len(outputs), *sizes, handles)
    return head + b"".join(arguments + outputs)


def go(
    call: int, count: int, bases: tuple[int, int, int], seed: int, soft_s: float, staged: tuple[int, int] = (0, 0)
) -> bytes:
    """Make ``count`` calls; ``bases``: fresh block, first output block, stride between outputs.

    ``staged``: bytes of the two blocks in the file that goes along, which the driver puts in place (0: they are there).
    """
    return _ORDER.pack(_GO, call, count, 0, *bases, seed, int(soft_s * 1e9), *staged)


def prime(call: int, count: int, bases: tuple[int, int]) -> bytes:
    """Make ``count`` calls on blocks that were used before; nothing of them is timed or judged."""
    return _ORDER.pack(_GO, call, count, 1, *bases, 0, call, 10**18, 0, 0)


def end() -> bytes:
    """Leave this workload; the answer says whether the last output changed."""
    return struct.pack("<I", _END)


def parse_answer(body: bytes) -> Answer | None:
    """An answer without its tag; None if it is none."""
    if len(body) < _ANSWER.size:
        return None
    kind, result, call, made, elapsed, head, tail, digest, own, *more = _ANSWER.unpack_from(body)
    changed, problem, output, size, event, cupti, idle, kernels, stray, detail = more
    payload = body[_ANSWER.size :]
    if kind != _DONE or size != len(payload):
        return None
    text = detail.split(b"\0", 1)[0].decode(errors="replace")
    clocks = event, cupti, idle, kernels, stray, head, tail, own, digest
    return Answer(result, call, made, elapsed, bool(changed), problem, output, text, payload, *clocks)


def split_tag(packet: bytes, count: int) -> tuple[bytes, bytes, int]:
    """Body, the bytes that are tagged (body and the running count of answers), and the tag."""
    body = packet[: -_TAG.size]
    return body, body + _TAG.pack(count), _TAG.unpack(packet[-_TAG.size :])[0] if len(packet) >= _TAG.size else 0


def layout_bytes() -> dict[str, Any]:
    """Sizes of the records, for the test that keeps both sides alike."""
    return {"Tensor": _TENSOR.size, "Setup": _HEAD.size, "Go": _ORDER.size, "Done": _ANSWER.size}
