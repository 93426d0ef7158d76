"""Which tokens a filtered row may yield, and with which probability.

In: probabilities and filters. Out: smallest legal probabilities, exact filtered rows. Pure; fp64 throughout. Top-k
keeps ``0 < k < vocab`` tokens, then top-p keeps the shortest prefix whose mass exceeds ``p`` of what is left.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from fib_core.errors import UnsupportedInput

# What an fp32 prefix sum over a large vocabulary can be off by, relative to top-p: one after the other, 202,048 sorted
# probabilities were off by up to 3.6e-4. The mask grants it; the distribution test asks on which side of it the sampler
# stands (see ``supports``).
MASK_SLACK = 1e-3


@dataclass(frozen=True)
class Rows:
    """Probabilities [batch, vocab] in fp64 with their filters [batch], None where the definition has none."""

    probs: Any
    top_k: Any | None
    top_p: Any | None

    @classmethod
    def of(cls, inputs: dict[str, Any]) -> "Rows":
        """From a sampling definition's inputs; only the tensors probs, top_k and top_p are understood."""
        known = ("probs", "top_k", "top_p")
        unknown = [name for name, value in inputs.items() if name not in known or not isinstance(value, torch.Tensor)]
        if unknown or "probs" not in inputs:
            raise UnsupportedInput(f"a sampling definition takes probs, top_k, top_p; cannot read {', '.join(unknown)}")
        return cls(inputs["probs"].to(torch.float64), inputs.get("top_k"), inputs.get("top_p"))

    def only(self, row: int) -> "Rows":
        """One row as a batch of one."""
        filters = [None if f is None else f.reshape(-1)[row : row + 1] for f in (self.top_k, self.top_p)]
        return Rows(self.probs[row : row + 1], *filters)


@dataclass(frozen=True)
class Support:
    """A filtered row: ``ids`` of its tokens, likeliest first, with their ``weights`` (fp64, sum 1).

    The last ``tied`` of them are tokens among which the sampler chooses: more tokens of the boundary's probability than
    the filter has room for. They share their joint mass evenly here; no test may tell them apart.
    """

    ids: Any
    weights: Any
    tied: int
    vocab: int


def thresholds(rows: Rows, slack: float) -> Any:
    """Smallest legal probability of each row, [batch]; ties with it are legal."""
    ordered = _descending(rows)[0]
    return ordered.gather(1, _kept(rows, ordered, [slack])[0][:, None] - 1)[:, 0]


def boundaries(rows: Rows, slack: float) -> tuple[Any, Any]:
    """:func:`thresholds`, and the mass that each row keeps exactly; both [batch]."""
    ordered = _descending(rows)[0]
    exact, granted = _kept(rows, ordered, [0.0, slack])
    masses = ordered.cumsum(dim=1).gather(1, exact[:, None] - 1)[:, 0]
    return ordered.gather(1, granted[:, None] - 1)[:, 0], masses


def supports(rows: Rows, row: int, draws: int, slack: float = MASK_SLACK) -> list[Support]:
    """The exact filtered row first, then what rounding in a prefix sum may turn it into, if ``draws`` could tell."""
    one = rows.only(row)
    ordered, ids = _descending(one)
    slacks = [0.0] if one.top_p is None else [0.0, -slack, slack]
    exact, *others = dict.fromkeys(int(kept[0]) for kept in _kept(one, ordered, slacks))
    told = [n for n in others if float(ordered[0, min(n, exact) : max(n, exact)].sum()) * draws > 1]
    return [_support(one.probs[0], ordered[0], ids[0], kept) for kept in [exact, *told]]


def support(rows: Rows, row: int) -> Support:
    """The exact filtered row."""
    return supports(rows, row, 0)[0]


def _support(probs: Any, ordered: Any, ids: Any, kept: int) -> Support:
    limit = float(ordered[kept - 1])
    above = int((ordered[:kept] > limit).sum())
    at_limit = (probs == limit).nonzero()[:, 0] if limit > 0 else ids[:0]
    room, tied = kept - above, len(at_limit)
    shared = torch.full((tied,), limit * room / max(tied, 1), dtype=torch.float64)
    weights = torch.cat([ordered[:above], shared])
    choice = tied if room < tied else 0
    return Support(torch.cat([ids[:above], at_limit]), weights / weights.sum(), choice, len(probs))


def _descending(rows: Rows) -> tuple[Any, Any]:
    """Probabilities in falling order with their tokens; only as far as a small top-k looks."""
    vocab = rows.probs.shape[1]
    if rows.top_k is not None:
        most = int(_asked(rows).max())
        if most <= vocab // 16:
            found = rows.probs.topk(most, dim=1)
            return found.values, found.indices
    ordered = rows.probs.sort(dim=1, descending=True)
    return ordered.values, ordered.indices


def _asked(rows: Rows) -> Any:
    """How many tokens top-k keeps, [batch]."""
    batch, vocab = rows.probs.shape
    if rows.top_k is None:
        return torch.full((batch,), vocab)
    asked = rows.top_k.to(torch.int64).reshape(-1).expand(batch)
    return torch.where((asked > 0) & (asked < vocab), asked, vocab)


def _kept(rows: Rows, ordered: Any, slacks: Sequence[float]) -> list[Any]:
    """How many tokens stay, [batch], for each relative slack on the mass that top-p compares with."""
    kept = _asked(rows)
    if rows.top_p is None:
        return [kept for _ in slacks]
    mass = ordered.cumsum(dim=1)
    mass = mass / mass.gather(1, kept[:, None] - 1)
    asked = rows.top_p.to(torch.float64).reshape(-1, 1).expand(len(mass), 1)
    inside = [torch.searchsorted(mass, asked * (1 + slack), right=True)[:, 0] for slack in slacks]
    inside = [torch.where(asked[:, 0] > 0, count, 0) for count in inside]
    return [torch.minimum(kept, count + 1) for count in inside]

