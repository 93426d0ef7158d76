"""Snapshot: a frozen dataset; every later number cites its digest."""

from typing import Any, Literal

from pydantic import Field

from schemas.base import Digest, NonEmpty, Record
from schemas.definition import Definition
from schemas.workload import Workload

Split = Literal["train", "holdout", "stress"]


class Placed(Record):
    """A workload on its side of the split. ``weight`` is its share of the definition's traffic; stress has none (0)."""

    workload: Workload
    split: Split
    family: NonEmpty
    weight: float = Field(ge=0, allow_inf_nan=False)


class Snapshot(Record):
    """Definitions, placed workloads, declared incumbents (definition digest -> solution digests), weights' origin."""

    schema_version: Literal["1"] = "1"
    definitions: tuple[Definition, ...]
    workloads: tuple[Placed, ...]
    incumbents: dict[Digest, tuple[Digest, ...]]
    weights: Literal["call_counts", "none"]
    split_key: NonEmpty
    policy_version: int

    def identity(self) -> Any:
        """Every field, and the digests of the definitions: sorted JSON alone would not notice reordered inputs."""
        return self.model_dump(mode="json") | {"definition_digests": [item.digest for item in self.definitions]}
