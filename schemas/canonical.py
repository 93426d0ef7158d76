"""Canonical bytes and content digests (RFC 8785 JSON, SHA-256).

In: plain JSON-like values. Out: bytes or ``sha256:<64 hex>``. Knows nothing of the records it names.
"""

import hashlib
import math
import re
from typing import Any

import rfc8785

DIGEST_PATTERN = r"^sha256:[0-9a-f]{64}$"


def digest_of_bytes(body: bytes) -> str:
    """Name raw bytes by their content."""
    return "sha256:" + hashlib.sha256(body).hexdigest()


def canonical_bytes(value: Any) -> bytes:
    """Serialise to RFC 8785 JSON; non-finite floats become the strings NaN, Infinity, -Infinity."""
    return rfc8785.dumps(_finite(value))


def digest_of(value: Any) -> str:
    """Name a JSON-like value by its canonical bytes."""
    return digest_of_bytes(canonical_bytes(value))


def is_digest(text: str) -> bool:
    """Tell a content digest from a label."""
    return re.fullmatch(DIGEST_PATTERN, text) is not None


def short(digest: str) -> str:
    """Twelve hex digits for people; never used as an identity."""
    return digest.removeprefix("sha256:")[:12]


def _finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")
    if isinstance(value, dict):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return value
