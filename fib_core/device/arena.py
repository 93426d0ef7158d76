"""The referee's end of the channel to a candidate's driver: orders out, authenticated answers and two clocks in.

In: packets. Out: an :class:`Exchange` with the answer and what the referee's own clocks say about it. The key is made
here and read by native code on the other side; it passes no verdict.
"""

import secrets
import socket
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fib_core.device import driver, wire

_PACKET_BYTES = 64 * 1024


class ArenaGone(EOFError):
    """The candidate's process ended, or closed its end."""


class ArenaForged(ValueError):
    """Something came that the driver did not send."""


class ArenaLate(TimeoutError):
    """No answer in time."""


@dataclass(frozen=True)
class Exchange:
    """One order and its answer: wall time from "go" to "done", CPU time that the process used meanwhile."""

    answer: wire.Answer
    wall_ns: int
    cpu_ns: int


@dataclass(frozen=True)
class Pause:
    """Between an answer and the next order: CPU time of the process and its children, and wall time.

    The driver sleeps in a pause, so whatever works then is the candidate's.
    """

    background_ns: int
    wall_ns: int


class Arena:
    """A conversation with the driver in process ``pid``."""

    def __init__(self, fd: int, pid: int) -> None:
        self._socket = socket.socket(fileno=fd)
        self._key = secrets.token_bytes(16)
        self._count = 0
        self._pid = pid
        self._clock = (~pid << 3) | 2  # the kernel's name for the CPU clock of another process
        self._left_ns = time.perf_counter_ns()
        self._background_ns = 0
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

    def settle(self) -> None:
        """Whatever was used up to now (imports, start-up) is nobody's call."""
        self._background_ns = self._cpu_ns() + _children_ns(self._pid)
        self._left_ns = time.perf_counter_ns()

    def pause(self) -> Pause:
        """What went on in the process since its last answer; asked before the next order."""
        worked = self._cpu_ns() + _children_ns(self._pid) - self._background_ns
        return Pause(max(0, worked), time.perf_counter_ns() - self._left_ns)

    def ask(self, packet: bytes, limit_s: float) -> Exchange:
        """Send an order and wait for its answer."""
        cpu = self._cpu_ns()
        started = time.perf_counter_ns()
        self.tell(packet)
        body = self._receive(limit_s)
        ended = time.perf_counter_ns()
        cpu = self._cpu_ns() - cpu
        return Exchange(self._parse(body), ended - started, cpu)

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

    def _cpu_ns(self) -> int:
        try:
            return time.clock_gettime_ns(self._clock)
        except OSError:
            return 0  # it is gone; the socket says so


def _children_ns(pid: int) -> int:
    """CPU time of the living children of ``pid``'s main thread, as the kernel counted it; 0 where it does not tell."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        return sum(int(Path(f"/proc/{child}/schedstat").read_text().split()[0]) for child in children)
    except (OSError, ValueError, IndexError):
        return 0
