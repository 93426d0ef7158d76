"""Objects of a published index, read and verified. In: a function from store key to bytes. Out: a :class:`PulledIndex`.

Every object is checked against the digest that named it. Knows neither stores nor caches; pydantic comes in with the
first call.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from fib_core.errors import StoreRefused
from fib_core.runtime import places

if TYPE_CHECKING:
    from schemas.definition import Definition
    from schemas.index import DispatchIndex
    from schemas.solution import Solution

Getter = Callable[[str], bytes]
_Source = TypeVar("_Source")
_Result = TypeVar("_Result")


@dataclass(frozen=True)
class PulledIndex:
    """An index with all that serving it needs: its definitions and its chosen solutions, each verified by digest."""

    index_digest: str
    index: "DispatchIndex"
    definitions: dict[str, "Definition"]
    solutions: dict[str, "Solution"]
    channel: str | None = None
    previous: str | None = None
    source: str | None = None
    cache_dir: Path = field(default_factory=places.cache_dir)
    fetched_count: int = 0
    signed_by: str | None = None


def assemble(get: Getter, index_digest: str) -> PulledIndex:
    """Read an index and everything it refers to; raises ``StoreRefused`` naming the first object that is not right."""
    from schemas.index import DispatchIndex

    key = object_key("indexes", index_digest)
    index = parsed(DispatchIndex.model_validate_json, _checked(get, key), key)
    definitions = {
        item.definition_digest: _definition(_checked(get, object_key("definitions", item.definition_digest)))
        for item in index.definitions
    }
    owners = {
        entry.solution_digest: item.definition_digest
        for item in index.definitions
        for entry in item.entries
        if entry.solution_digest
    }
    solutions = {digest: _owned_solution(get, digest, owner) for digest, owner in owners.items()}
    return PulledIndex(index_digest, index, definitions, solutions)


def object_key(kind: str, digest: str) -> str:
    """Store key of an immutable object."""
    from schemas.canonical import is_digest

    if not is_digest(digest):
        raise StoreRefused(f"{digest!r} is no digest; expected sha256: and 64 hex digits")
    return f"{kind}/{digest.removeprefix('sha256:')}.json"


def verify(key: str, body: bytes) -> None:
    """Refuse bytes that are not what their key promises."""
    kind, _, name = key.partition("/")
    found = _DIGESTS[kind](body)
    if found != "sha256:" + name.removesuffix(".json"):
        raise StoreRefused(f"{key} does not match its digest (its content has {found}): corrupt or tampered with")


def parsed(read: Callable[[_Source], _Result], source: _Source, place: str) -> _Result:
    """``read(source)``, with an unreadable source refused by name."""
    try:
        return read(source)
    except ValueError as error:
        from fib_core.publication.damage import in_words

        raise StoreRefused(f"{place} cannot be read: {in_words(error)}") from error


def _checked(get: Getter, key: str) -> bytes:
    body = get(key)
    verify(key, body)
    return body


def _owned_solution(get: Getter, digest: str, owner: str) -> "Solution":
    key = object_key("solutions", digest)
    definition_digest, solution = _solution(_checked(get, key))
    if definition_digest != owner:
        raise StoreRefused(f"{key} is a solution of {definition_digest}, but the index uses it for {owner}")
    return solution


def _definition(body: bytes) -> "Definition":
    from schemas.definition import Definition

    return parsed(Definition.model_validate_json, body, "a definition object")


def _solution(body: bytes) -> tuple[str, "Solution"]:
    from schemas.solution import Solution

    value = parsed(json.loads, body, "a solution object")
    if not isinstance(value, dict) or not isinstance(value.get("definition_digest"), str) or "solution" not in value:
        raise StoreRefused("a solution object lacks `definition_digest` or `solution`")
    return value["definition_digest"], parsed(Solution.model_validate, value["solution"], "a solution object")


def _index_digest(body: bytes) -> str:
    from schemas.canonical import digest_of_bytes

    return digest_of_bytes(body)


def _definition_digest(body: bytes) -> str:
    return _definition(body).digest


def _solution_digest(body: bytes) -> str:
    definition_digest, solution = _solution(body)
    return solution.digest_for(definition_digest)


_DIGESTS: dict[str, Callable[[bytes], str]] = {
    "indexes": _index_digest,
    "definitions": _definition_digest,
    "solutions": _solution_digest,
}
