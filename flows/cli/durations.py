"""How long a run may take, as people write it, and what came of it: where its index went, further campaigns.

In: ``90s``, ``10m``, ``1h``, a bare number of seconds. Out: seconds. Knows nothing of flows.
"""

import re
from typing import Any

from fib_core.errors import ContractError

_SECONDS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0}


def duration_s(text: str) -> float:
    """Seconds; raises ContractError for anything that is not a positive number with s, m or h."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([smh]?)", text.strip())
    seconds = float(found[1]) * _SECONDS[found[2]] if found else 0.0
    if seconds <= 0:
        raise ContractError(f"--for {text!r} is no duration; write 90s, 10m or 1h")
    return seconds


def published(summary: dict[str, Any]) -> list[str]:
    """Where the index went; or that it went nowhere, and why."""
    index, reason = summary["index_digest"], summary["not_published"]
    if reason is None:
        return [f"index        {index} in channel {summary['channel']} ({summary['profile']})"]
    return [f"index        {index} ({summary['profile']})", f"not published: {reason}"]


def further(summary: dict[str, Any]) -> list[str]:
    """Lines about campaigns after the first; none where none was asked for."""
    campaigns = summary.get("campaigns")
    if campaigns is None:
        return []
    counts = ", ".join(f"{count} {verdict}" for verdict, count in sorted(campaigns["verdicts"].items()))
    lines = [
        f"campaigns    {len(campaigns['finished'])} of {len(campaigns['asked'])} finished; "
        f"after the first: {counts or 'no decision'}"
    ]
    if summary.get("stopped"):
        lines.append(f"stopped      at {summary['stopped_at']}; start the same command again to go on")
    return lines
