"""One definition's way from a call to its outputs. In: a call and the caller's own function. Out: the outputs.

A covered call runs the chosen solution; every other call runs the caller's function with the very arguments that came
in, and is counted with its reason. Nothing that a solution does wrong reaches the caller while it can still be undone.
"""

import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fib_core.runtime.devices import Devices
from fib_core.runtime.notices import once
from fib_core.runtime.serving import Build, Outputs, Returns, Slot
from fib_core.runtime.signature import Call, Misfit, Signature
from fib_core.runtime.table import OTHER_DEVICE, Table

if TYPE_CHECKING:
    from fib_core.runtime.pulled import PulledIndex

Function = Callable[..., Any]
# Points remembered per definition; a decode loop meets a new number of pages at every step.
_MEMO_LIMIT = 4096


class Unserved:
    """A definition that this process serves with the caller's function only, and why."""

    def __init__(self, reason: str, detail: str) -> None:
        self._reason, self._detail = reason, detail
        self._lock, self._count = threading.Lock(), 0

    def serve(
        self, args: Sequence[Any], kwargs: Mapping[str, Any], fallback: Function, claim: str | None, returns: Returns
    ) -> Any:
        """Count and fall back."""
        with self._lock:
            self._count += 1
        return fallback(*args, **kwargs)

    def stats(self) -> dict[str, Any]:
        """Same shape as :meth:`Route.stats`."""
        misses = {self._reason: self._count} if self._count else {}
        return {"definition_digest": None, "hit": 0, "incumbent": 0, "miss": misses, "entries": {}, "why": self._detail}


class Route:
    """One definition's way from a call to its outputs."""

    def __init__(self, name: str, table: Table, pulled: "PulledIndex", build: Build, build_dir: Path) -> None:
        self._name, self._table, self._build, self._build_dir = name, table, build, build_dir
        self._signature, outputs = Signature(table.definition), Outputs(table.definition)
        self._in_place, self._class_of = outputs.has_mutated, Devices().class_of
        self._slots = {
            id(entry): Slot(entry, pulled.solutions.get(entry.solution_digest or ""), outputs)
            for entry in table.every
        }
        self._found: dict[tuple[str, tuple[int, ...]], Slot | Misfit] = {}
        self._lock, self._misses = threading.Lock(), Counter[str]()

    def serve(
        self, args: Sequence[Any], kwargs: Mapping[str, Any], fallback: Function, claim: str | None, returns: Returns
    ) -> Any:
        """The outputs of one call, by the solution that covers it or by ``fallback``."""
        call = self._signature.read(args, kwargs)
        target = call if isinstance(call, Misfit) else self._target(call, claim)
        if isinstance(call, Call) and isinstance(target, Slot):
            done, result = self._attempt(target, call, returns)
            if done:
                return result
        elif isinstance(target, Misfit):
            with self._lock:
                self._misses[target.reason] += 1
        return fallback(*args, **kwargs)

    def prepare(self) -> dict[str, str]:
        """Build every solution of this definition now, so that no call has to wait; key -> state."""
        slots = list(self._slots.values())
        for slot in slots:
            if not self._table.why_stale(slot.entry):
                slot.prepare(self._build, self._build_dir)
                self._tell(slot)
        return {key: counts["state"] for key, counts in self._by_key(slots).items()}

    def stats(self) -> dict[str, Any]:
        """Counts since the index was chosen, in total, by reason of a miss and by entry."""
        with self._lock:
            slots = list(self._slots.values())
            return {
                "definition_digest": self._table.indexed.definition_digest,
                "hit": sum(slot.hit_count for slot in slots),
                "incumbent": sum(slot.incumbent_count for slot in slots),
                "miss": dict(self._misses),
                "entries": self._by_key(slots),
            }

    def _by_key(self, slots: Sequence[Slot]) -> dict[str, dict[str, Any]]:
        """Counts and state per key; a key whose points lie apart has several entries, counted together."""
        found: dict[str, dict[str, Any]] = {}
        for slot in slots:
            counts = found.setdefault(slot.entry.key, {"hit": 0, "incumbent": 0, "state": ""})
            counts["hit"] += slot.hit_count
            counts["incumbent"] += slot.incumbent_count
            counts["state"] = _worse(counts["state"], self._state(slot))
            if slot.solution is None:
                counts["why"] = slot.entry.reason
        return found

    def _state(self, slot: Slot) -> str:
        stale = self._table.why_stale(slot.entry)
        return f"stale: {'; '.join(item.detail for item in stale)}" if stale else slot.state

    def _target(self, call: Call, claim: str | None) -> Slot | Misfit:
        if claim is not None and claim != self._table.indexed.incumbent_digest:
            return Misfit("other_incumbent", "")
        key = (self._class_of(call.device), call.sizes)
        found = self._found.get(key)
        if found is None:
            found = self._look_up(*key)
            if len(self._found) >= _MEMO_LIMIT:
                self._found.clear()
            self._found[key] = found
        return found

    def _look_up(self, device_class: str, sizes: tuple[int, ...]) -> Slot | Misfit:
        if self._signature.unusable:
            once(f"{self._name}: {self._signature.unusable}; its calls run your own function")
            return Misfit("unusable_definition", self._signature.unusable)
        match = self._table.find(dict(zip(self._signature.var_axes, sizes, strict=True)), device_class)
        if match.entry is None:
            if match.reason == OTHER_DEVICE:
                once(f"{self._name}: {match.detail}; its calls run your own function{_thread_hint(device_class)}")
            return Misfit(match.reason, match.detail)
        return self._slots[id(match.entry)]

    def _attempt(self, slot: Slot, call: Call, returns: Returns) -> tuple[bool, Any]:
        """(True, outputs), or (False, None) where the caller's function has to answer; counted either way."""
        if slot.solution is None:
            with self._lock:
                slot.incumbent_count += 1
            return False, None
        if not slot.is_ready and not slot.prepare(self._build, self._build_dir):
            self._tell(slot)
            with self._lock:
                self._misses["solution_failed" if slot.failure else "building"] += 1
            return False, None
        try:
            result = slot.run(call, returns)
        except Exception as error:
            with self._lock:
                self._misses["solution_failed"] += 1
            slot.fail(f"raised {type(error).__name__}: {error}")
            self._tell(slot)
            if self._in_place:
                # The caller's tensors may be half changed: running anything on them would hide a wrong result.
                raise
            return False, None
        with self._lock:
            slot.hit_count += 1
        return True, result

    def _tell(self, slot: Slot) -> None:
        name = slot.solution.name if slot.solution else "?"
        if slot.failure:
            once(f"{self._name} [{slot.entry.key}]: solution {name} {slot.failure}; this entry is off in this process")


def _worse(one: str, other: str) -> str:
    """The state that a person should hear of, when a key has two."""
    usual = ("", "ready", "incumbent", "unused")
    return max(one, other, key=lambda state: usual.index(state) if state in usual else len(usual))


def _thread_hint(device_class: str) -> str:
    return " (set torch.set_num_threads to the measured number of threads)" if device_class.endswith("t") else ""
