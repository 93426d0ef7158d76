"""Serve calls by an index. In: a definition's name or digest. Out: its route. Knows nothing of the process."""

import threading
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fib_core.runtime.notices import once
from fib_core.runtime.present import present_for, version_here
from fib_core.runtime.routes import Function, Route, Unserved
from fib_core.runtime.serving import Build
from fib_core.runtime.table import Table

if TYPE_CHECKING:
    from fib_core.runtime.pulled import PulledIndex

# What shapes a kernel's speed besides its own sources.
_LIBRARIES = ("torch", "triton", "apache-tvm-ffi")


class Dispatcher:
    """All routes of one index (or of none, with the reason); routes are made when they are first asked for."""

    def __init__(
        self, pulled: "PulledIndex | None", build: Build | None = None, why: tuple[str, str] = ("", "")
    ) -> None:
        self.pulled, self._why, self._build = pulled, why, build or _default_build
        self._differences = _library_differences(pulled.index.library_versions) if pulled else {}
        self._present = present_for(pulled.index) if pulled else None
        self._routes: dict[str, Route | Unserved] = {}
        self._lock = threading.Lock()

    def route(self, definition: str) -> Route | Unserved:
        """The route of a definition, by name or digest."""
        route = self._routes.get(definition)
        if route is None:
            with self._lock:
                route = self._routes.get(definition) or self._made(definition)
                self._routes[definition] = route
        return route

    def prepare(self) -> dict[str, dict[str, str]]:
        """Build every chosen solution now; definition -> key -> state."""
        names = [item.definition_digest for item in self.pulled.index.definitions] if self.pulled else []
        routes = {name: self.route(name) for name in names}
        return {name: route.prepare() for name, route in routes.items() if isinstance(route, Route)}

    def stats(self) -> dict[str, Any]:
        """Counters per definition, as it was asked for."""
        with self._lock:
            routes = dict(self._routes)
        digest = self.pulled.index_digest if self.pulled else None
        return {
            "index_digest": digest,
            "library_differences": self._differences,
            "definitions": {name: route.stats() for name, route in routes.items()},
        }

    def _made(self, definition: str) -> Route | Unserved:
        if self.pulled is None:
            return Unserved(*self._why)
        index = self.pulled.index
        found = [item for item in index.definitions if definition in (item.name, item.definition_digest)]
        if len(found) != 1:
            near = get_close_matches(definition, [item.name for item in index.definitions], 3)
            hint = f" (close: {', '.join(near)})" if near else ""
            reason = "ambiguous_name" if found else "unknown_definition"
            once(f"the index has {len(found)} definitions {definition!r}{hint}; its calls run your own function")
            return Unserved(reason, f"{len(found)} definitions of this name{hint}")
        item = found[0]
        contract = self.pulled.definitions[item.definition_digest]
        table = Table(item, contract, self.pulled.solutions, self._present, index.library_versions)
        for entry in item.entries:
            for stale in table.why_stale(entry):
                once(f"{item.name} [{entry.key}] is stale: {stale.detail}; its calls run your own function")
        return Route(item.name, table, self.pulled, self._build, self.pulled.cache_dir / "build")


def _library_differences(measured: Mapping[str, str]) -> dict[str, list[str]]:
    """Libraries whose version is not the measured one: name -> [measured, here]. Served all the same, but said."""
    found = {}
    for name in sorted(measured.keys() & set(_LIBRARIES)):
        here = version_here(name)
        if here != measured[name]:
            found[name] = [measured[name], here]
    if found:
        words = ", ".join(f"{name} {was} (here {here})" for name, (was, here) in found.items())
        once(f"the index was measured with {words}; its ratios may not hold here, run the pipeline again")
    return found


def _default_build(solution: Any, digest: str, cache_dir: Path) -> Function:
    from fib_core.builders import load

    built: Function = load(solution, digest, cache_dir)
    return built
