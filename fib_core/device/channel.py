"""Framed JSON over a Unix socket, with open files handed along.

In and out: JSON-like dictionaries and file descriptors. Knows no message; both ends of every conversation use it. The
peer may be hostile (a candidate), so lengths are bounded and a half-sent message ends in :class:`ChannelClosed`.
"""

import json
import os
import socket
import struct
from collections.abc import Sequence
from typing import Any

_HEADER = struct.Struct(">Q")
_MAX_BYTES = 256 * 2**20
_MAX_FDS = 250


class ChannelClosed(EOFError):
    """The peer is gone, or it does not speak this protocol (any more)."""


class Channel:
    """One end of a conversation. ``stall_s`` bounds the wait inside a message, never the wait for one."""

    def __init__(self, sock: socket.socket, stall_s: float | None = None) -> None:
        self._socket = sock
        self._socket.settimeout(stall_s)

    @classmethod
    def from_fd(cls, fd: int) -> "Channel":
        """Adopt an inherited descriptor."""
        return cls(socket.socket(fileno=fd))

    @classmethod
    def pair(cls, stall_s: float) -> tuple["Channel", socket.socket]:
        """Our end, and the raw end to hand to a child (close it after handing it over)."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        return cls(ours, stall_s), theirs

    def fileno(self) -> int:
        """For poll."""
        return self._socket.fileno()

    def send(self, message: dict[str, Any], fds: Sequence[int] = ()) -> None:
        """Send one message; the descriptors stay open here."""
        if len(fds) > _MAX_FDS:
            raise ValueError(f"{len(fds)} descriptors in one message; at most {_MAX_FDS} can travel")
        body = json.dumps(message).encode()
        try:
            socket.send_fds(self._socket, [_HEADER.pack(len(body))], list(fds))
            self._socket.sendall(body)
        except OSError as error:
            raise ChannelClosed(f"cannot send: {error}") from error

    def receive(self) -> tuple[dict[str, Any], list[int]]:
        """Block for one message; the caller owns (and closes) the descriptors."""
        try:
            header, fds, _, _ = socket.recv_fds(self._socket, _HEADER.size, _MAX_FDS, socket.MSG_CMSG_CLOEXEC)
            body = self._body(header)
        except OSError as error:
            raise ChannelClosed(f"cannot receive: {error}") from error
        try:
            message = json.loads(body)
        except ValueError as error:
            close_all(fds)
            raise ChannelClosed("the peer sent something that is not JSON") from error
        if not isinstance(message, dict):
            close_all(fds)
            raise ChannelClosed("the peer sent something that is not an object")
        return message, fds

    def close(self) -> None:
        """Hang up."""
        self._socket.close()

    def _body(self, header: bytes) -> bytes:
        if len(header) < _HEADER.size:
            raise ChannelClosed("the peer hung up")
        (size,) = _HEADER.unpack(header)
        if size > _MAX_BYTES:
            raise ChannelClosed(f"the peer announced {size} bytes")
        chunks = bytearray()
        while len(chunks) < size:
            chunk = self._socket.recv(min(size - len(chunks), 2**20))
            if not chunk:
                raise ChannelClosed("the peer hung up inside a message")
            chunks += chunk
        return bytes(chunks)


def close_all(fds: Sequence[int]) -> None:
    """Close descriptors that were received or created for one exchange."""
    for fd in fds:
        os.close(fd)
