"""What a server calls: choose an index once, then ``apply``. In: the caller's own functions. Out: the same results.

State of the process: the dispatcher in use. Environment, read when the first call or choice is made: ``FIB_APPLY=0``
switches everything off, ``FIB_CACHE`` names the cache, ``FIB_INDEX`` pins an index digest or names a pulled channel.
"""

import functools
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fib_core.errors import FibError
from fib_core.runtime import index_client
from fib_core.runtime.notices import once

if TYPE_CHECKING:
    from fib_core.runtime.dispatcher import Dispatcher
    from fib_core.runtime.pulled import PulledIndex
    from fib_core.runtime.serving import Build, Returns

_lock = threading.RLock()


class _Process:
    dispatcher: "Dispatcher | None" = None


def apply(
    definition: str,
    args: Sequence[Any] | None = None,
    kwargs: Mapping[str, Any] | None = None,
    *,
    fallback: Callable[..., Any] | None = None,
    incumbent: str | None = None,
    returns: "Returns" = "all",
) -> Any:
    """Run the kernel that the index chose for this call, or your own function.

    As a decorator, ``@apply("rmsnorm_h2048")`` on your function; as a call, ``apply("rmsnorm_h2048", args, kwargs,
    fallback=your_function)``. ``definition`` is a name or a digest. Arguments are the definition's inputs, in its order
    or by its names.

    Result: the definition's outputs in its order, one bare, several as a tuple. An output that the definition keeps in
    an input (``mutates``) is your own tensor, changed in place as you would expect; ``returns="fresh"`` leaves those
    out, for functions that change their argument and return nothing for it. Your function must return the same, since
    it answers whenever no entry covers the call: then it gets exactly the arguments that came in.

    ``incumbent`` claims that your function is the solution of that digest. If the index measured another incumbent, its
    evidence says nothing about yours and your function runs. Without a claim `fib explain` says what was measured.
    A solution that raises is switched off in this process and your function answers, unless the definition changes an
    input in place: then the exception is yours, because the input may be half changed.
    """
    if args is None and kwargs is None:
        if fallback is None:
            return functools.partial(_decorate, definition, incumbent=incumbent, returns=returns)
        return _decorate(definition, fallback, incumbent=incumbent, returns=returns)
    if fallback is None:
        raise TypeError("apply(definition, args, kwargs) needs fallback=, your function for calls without an entry")
    return _current().route(definition).serve(args or (), kwargs or {}, fallback, incumbent, returns)


def load(
    cache_dir: str | Path | None = None, channel: str | None = None, index_digest: str | None = None
) -> "PulledIndex":
    """Choose a pulled index from the local cache for this process; raises if there is none or it is damaged."""
    pulled = index_client.load(cache_dir, channel, index_digest)
    use(pulled)
    return pulled


def use(index: "PulledIndex | None", build: "Build | None" = None) -> None:
    """Choose an index for this process (None: none). Counters start anew. ``build`` replaces the solution builder."""
    from fib_core.runtime.dispatcher import Dispatcher

    with _lock:
        if not _enabled():
            _Process.dispatcher = Dispatcher(None, why=("disabled", "FIB_APPLY=0"))
        elif index is None:
            _Process.dispatcher = Dispatcher(None, why=("no_index", "none chosen"))
        else:
            _Process.dispatcher = Dispatcher(index, build)


def prepare() -> dict[str, dict[str, str]]:
    """Build every chosen solution now, before traffic; definition digest -> key -> state."""
    return _current().prepare()


def stats() -> dict[str, Any]:
    """Hits, kept incumbents and misses by reason, per definition and entry, since the index was chosen."""
    return _current().stats()


def reset() -> None:
    """Forget the chosen index; the next call reads the environment again."""
    with _lock:
        _Process.dispatcher = None


def _decorate(
    definition: str, function: Callable[..., Any], *, incumbent: str | None, returns: "Returns"
) -> Callable[..., Any]:
    chosen: tuple[Dispatcher | None, Any] = (None, None)

    @functools.wraps(function)
    def served(*args: Any, **kwargs: Any) -> Any:
        nonlocal chosen
        dispatcher, route = chosen
        if dispatcher is None or dispatcher is not _Process.dispatcher:
            dispatcher = _current()
            route = dispatcher.route(definition)
            chosen = (dispatcher, route)
        return route.serve(args, kwargs, function, incumbent, returns)

    return served


def _current() -> "Dispatcher":
    dispatcher = _Process.dispatcher
    return _first_choice() if dispatcher is None else dispatcher


def _first_choice() -> "Dispatcher":
    """What the environment says; a server without a usable index serves its own functions and says so once."""
    from fib_core.runtime.dispatcher import Dispatcher

    with _lock:
        if _Process.dispatcher is None:
            try:
                use(_from_environment() if _enabled() else None)
            except FibError as error:
                once(f"no index is in use: {error}; every call runs your own function")
                _Process.dispatcher = Dispatcher(None, why=("no_index", str(error)))
        assert _Process.dispatcher is not None
        return _Process.dispatcher


def _from_environment() -> "PulledIndex":
    wanted = os.environ.get("FIB_INDEX") or None
    if wanted and wanted.startswith("sha256:"):
        return index_client.load(index_digest=wanted)
    return index_client.load(channel=wanted)


def _enabled() -> bool:
    return os.environ.get("FIB_APPLY", "1") not in {"0", "false", "off"}
