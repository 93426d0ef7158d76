"""Shape families and their sides: the unit that is never divided between train and holdout.

In: axes and length structure of a call or workload. Out: its family and, by a keyed hash alone, its side; growing
traffic moves nobody. Shared by dedup, split and coverage, so that they cannot disagree. Knows nothing of times.
"""

import hashlib
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Literal

from fib_core.workloads.axisclass import axis_class, class_key
from schemas.base import Digest
from schemas.canonical import digest_of
from schemas.snapshot import Split

HOLDOUT_SHARE = 0.20
FAMILIES_FOR_HOLDOUT = 5
LENGTHS = ("kv_lens", "qo_lens")
# Coefficient of variation of the lengths: nearly equal, mixed, dominated by a few.
_CV_BUCKETS = ((0.25, "even"), (0.75, "mixed"))

CORE = "choice=core"
"""Tag of a workload on which boxes shall rest: where a profile times only a few, it times these first."""

Side = Literal["train", "holdout"]
Sides = Mapping[str, Split]


def structure_class(structure: Mapping[str, Sequence[int]]) -> str:
    """Name of a length structure: mean class and spread per kind of length; runs or scattered for positions."""
    return ";".join(_class_of(name, structure[name]) for name in sorted(structure) if structure[name])


def family_name(axes: Mapping[str, int], structure: str) -> str:
    """Axis class and length structure."""
    return f"{class_key(axes)}|{structure}"


def family_digest(definition_digest: Digest, family: str) -> str:
    """A family's identity among those of all definitions."""
    return digest_of([definition_digest, family])


def log_size(sizes: Iterable[int]) -> float:
    """One number for the order of calls by size; zeros count nothing."""
    return math.fsum(math.log1p(size) for size in sizes)


def hashed_side(definition_digest: Digest, family: str, key: str) -> Side:
    """The side that the keyed hash alone gives a family."""
    share = _keyed_hash(key, family_digest(definition_digest, family))
    return "holdout" if share < HOLDOUT_SHARE else "train"


def sides_for(
    definition_digest: Digest, families: Collection[str], key: str, earlier: Sides | None = None
) -> dict[str, Split]:
    """Family -> side; ``earlier`` (family digest -> side) keeps known families where they are.

    Five families always leave a holdout, and any number leaves something to train on, if newcomers allow it.
    """
    known = earlier or {}
    digests = {family: family_digest(definition_digest, family) for family in families}
    hashes = {family: _keyed_hash(key, digest) for family, digest in digests.items()}
    sides: dict[str, Split] = {
        family: known.get(digests[family], hashed_side(definition_digest, family, key)) for family in families
    }
    free = sorted((family for family in families if digests[family] not in known), key=lambda item: hashes[item])
    if free and len(families) >= FAMILIES_FOR_HOLDOUT and "holdout" not in sides.values():
        sides[free[0]] = "holdout"
    if free and "train" not in sides.values():
        sides[free[-1]] = "train"
    return sides


def _class_of(name: str, seen: Sequence[int]) -> str:
    if name in ("positions", "pos_ids"):
        steps = sum(after == before + 1 for before, after in pairwise(seen))
        return f"{name}:{'runs' if 2 * steps >= len(seen) > 1 else 'scattered'}"
    mean = sum(seen) / len(seen)
    if name not in LENGTHS or mean == 0:
        return f"{name}:~{axis_class(math.ceil(mean))}"
    spread = math.sqrt(sum((value - mean) ** 2 for value in seen) / len(seen)) / mean
    bucket = next((label for limit, label in _CV_BUCKETS if spread <= limit), "skewed")
    return f"{name}:~{axis_class(math.ceil(mean))}/{bucket}"


def _keyed_hash(key: str, digest: str) -> float:
    """Uniform in [0, 1)."""
    body = hashlib.sha256(f"{key}\n{digest}".encode()).digest()
    return int.from_bytes(body[:8], "big") / 2**64
