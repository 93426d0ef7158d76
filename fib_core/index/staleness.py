"""Does the evidence of an entry still hold? In: its facts and what is known of the present. Out: reasons, or none.

Pure. Each entry, each key even, is asked alone: one stale entry never takes the others with it. What is not known of
the present makes nothing stale: a laptop that explains a GPU's index has no driver to compare with.
"""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from schemas.base import Digest
from schemas.canonical import short
from schemas.index import IndexEntry, KeyEvidence

POLICY_VERSION = 3
"""Version of how times are taken and decisions made. Raise it when earlier confirmations stop counting.

1: the inputs of a call on the host lay in place before the order. 2: the driver puts them there. 3: rows have scales,
and a device that is idle at the end of a call is counted.
"""

Cause = Literal["solution", "definition", "library", "driver", "policy"]


class Stale(NamedTuple):
    """One reason: a cause to count by, a sentence to read."""

    cause: Cause
    detail: str


@dataclass(frozen=True)
class Present:
    """What holds now. None: not known, or not this caller's to judge. Libraries that are absent here judge nothing."""

    libraries: Mapping[str, str] = field(default_factory=dict)
    driver: str | None = None
    policy_version: int | None = None
    rules: Digest | None = None
    definitions: Collection[Digest] | None = None
    solutions: Collection[Digest] | None = None


def major(version: str) -> str:
    """``2`` of ``2.13.0+cpu``; of a 0.x version ``0.x``, since there the second figure may break things."""
    parts = re.split(r"[.+\-]", version.strip())
    return ".".join(parts[:2]) if parts[0] == "0" else parts[0]


def entry_reasons(entry: IndexEntry, present: Present, measured_with: Mapping[str, str]) -> tuple[Stale, ...]:
    """Why ``entry`` is stale; empty if it stands. One stale key spoils the entry, which covers it.

    ``measured_with``: the index's own libraries, which speak for entries of old indexes.
    """
    found = list(identity_reasons(entry.box.definition_digest, entry.solution_digest, present))
    if not entry.evidence:
        found += _libraries(measured_with, present)
    for item in entry.evidence:
        found += key_reasons(item, present)
    return tuple(dict.fromkeys(found))


def key_reasons(evidence: KeyEvidence, present: Present) -> tuple[Stale, ...]:
    """Why one key's measurement no longer tells about the present."""
    return (*_libraries(evidence.library_versions, present), *_driver(evidence, present), *_policy(evidence, present))


def identity_reasons(definition: Digest, solution: Digest | None, present: Present) -> tuple[Stale, ...]:
    """Why what was measured is no longer what would run; ``solution`` None is the caller's own function."""
    found = []
    if present.definitions is not None and definition not in present.definitions:
        found.append(Stale("definition", f"the definition is no longer {definition}"))
    if present.solutions is not None and solution is not None and solution not in present.solutions:
        found.append(Stale("solution", f"no solution has the bytes of {solution} any more"))
    return tuple(found)


def _libraries(measured: Mapping[str, str], present: Present) -> list[Stale]:
    both = sorted(measured.keys() & present.libraries.keys())
    return [
        Stale("library", f"measured with {name} {measured[name]}, now {present.libraries[name]}")
        for name in both
        if major(measured[name]) != major(present.libraries[name])
    ]


def _driver(evidence: KeyEvidence, present: Present) -> list[Stale]:
    now = present.driver
    if now is None:
        return []
    other = [was for was in evidence.drivers if major(was) != major(now)]
    return [Stale("driver", f"measured with driver {was}, now {now}") for was in other]


def _policy(evidence: KeyEvidence, present: Present) -> list[Stale]:
    was, now = evidence.policy, present.policy_version
    found = [] if now in (None, was.version) else [Stale("policy", f"policy version {was.version} then, now {now}")]
    if present.rules not in (None, was.rules):
        found.append(Stale("policy", f"decided by the rule {short(was.rules)}, now {short(str(present.rules))}"))
    return found
