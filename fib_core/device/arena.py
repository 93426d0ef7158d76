"""The referee's end of the channel to a candidate's driver: orders out, authenticated answers and two clocks in.

In: packets. Out: an :class:`Exchange` with the answer and what the referee's own clocks say about it. The key is made
here and read by native code on the other side; it passes no verdict.
"""

import secrets
import socket
import time
from collections.abc import Sequence
from dataclasses import dataclass

from fib_core.device import driver, wire
from fib_core.device.family import CpuTime

_PACKET_BYTES = 64 * 1024


class ArenaGone(EOFError):
    """The candidate's process ended, or closed its end."""


class ArenaForged(ValueError):
    """Something came that the driver did not send."""


class ArenaLate(TimeoutError):
    """No answer in time."""


@dataclass(frozen=True)
class Exchange:
    """One order and its answer, with the referee's own clock at "go" and at "done"."""

    answer: wire.Answer
    sent_ns: int
    received_ns: int

    @property
    def wall_ns(self) -> int:
        """From "go" to "done"."""
        return self.received_ns - self.sent_ns


@dataclass(frozen=True)
class Rest:
    """A moment in which the driver sleeps: CPU time so far of the process and all that it started, and the time."""

    cpu_ns: int
    at_ns: int


class Arena:
    """A conversation with the driver in process ``pid``."""

    def __init__(self, fd: int, pid: int) -> None:
        self._socket = socket.socket(fileno=fd)
        self._key = secrets.token_bytes(16)
        self._count = 0
        self._cpu = CpuTime(pid)
        self._socket.send(self._key)

    def tell(self, packet: bytes, fds: Sequence[int] = ()) -> None:
        """Send something that is not answered."""
        try:
            if fds:
                socket.send_fds(self._socket, [packet], list(fds))
            else:
                self._socket.send(packet)
        except OSError as error:
            raise ArenaGone(str(error)) from error

    def rest(self) -> Rest:
        """The kernel's count of CPU time is exact only for who sleeps: asked between an answer and the next order."""
        return Rest(self._cpu.used_ns(), time.perf_counter_ns())

    def ask(self, packet: bytes, limit_s: float, fds: Sequence[int] = ()) -> Exchange:
        """Send an order and wait for its answer."""
        sent_ns = time.perf_counter_ns()
        self.tell(packet, fds)
        body = self._receive(limit_s)
        received_ns = time.perf_counter_ns()
        return Exchange(self._parse(body), sent_ns, received_ns)

    def close(self) -> None:
        """Hang up."""
        self._socket.close()

    def _receive(self, limit_s: float) -> bytes:
        self._socket.settimeout(max(limit_s, 0.001))
        try:
            body = self._socket.recv(_PACKET_BYTES)
        except TimeoutError as error:
            raise ArenaLate(f"no answer within {limit_s:.3g} s") from error
        except OSError as error:
            raise ArenaGone(str(error)) from error
        finally:
            self._socket.settimeout(None)
        if not body:
            raise ArenaGone("the process hung up")
        return body

    def _parse(self, packet: bytes) -> wire.Answer:
        body, tagged, tag = wire.split_tag(packet, self._count)
        if driver.tag(self._key, tagged) != tag:
            raise ArenaForged("a result came that the driver did not send")
        self._count += 1
        answer = wire.parse_answer(body)
        if answer is None:
            raise ArenaForged("the driver's answer does not parse")
        return answer
