"""Workload: one representative input recipe with its call count.

``PublicWorkload`` is the flashinfer-trace row; ``Workload`` binds it to a definition digest and to its blobs.
"""

from typing import Annotated, Any, Literal

from pydantic import Field

from schemas.base import Digest, Natural, NonEmpty, PublicRecord, Record, unset


class RandomInput(PublicRecord):
    """Fresh values from the harness; ``distribution`` (ours) names one of device/inputs, absent = standard normal.

    ``layout`` (ours) "padded": rows further apart than they are wide, the first not at the start of its memory.
    """

    type: Literal["random"]
    distribution: str | None = None
    layout: Literal["padded"] | None = Field(default=None, exclude_if=unset)


class ScalarInput(PublicRecord):
    """A Python scalar passed as it is."""

    type: Literal["scalar"]
    value: bool | int | float


class SafetensorsInput(PublicRecord):
    """A captured tensor, path relative to the dataset root."""

    type: Literal["safetensors"]
    path: NonEmpty
    tensor_key: NonEmpty


class StructuredInput(PublicRecord):
    """Ours: an integer array rebuilt by ``GENERATORS[generator](**params)`` of ``fib_core.workloads.structure``.

    Exported as a blob.
    """

    type: Literal["structured"]
    generator: NonEmpty
    params: dict[str, Any]


InputRecipe = Annotated[
    RandomInput | ScalarInput | SafetensorsInput | StructuredInput, Field(discriminator="type")
]


class PublicWorkload(PublicRecord):
    """Axes, recipes and uuid exactly as the public row has them."""

    axes: dict[NonEmpty, Natural]
    inputs: dict[NonEmpty, InputRecipe]
    uuid: NonEmpty | None = None


class Workload(Record):
    """A recipe bound to its contract; ``uuid``, ``call_count`` and ``tags`` are facts about it, not its identity."""

    definition_digest: Digest
    axes: dict[NonEmpty, Natural]
    inputs: dict[NonEmpty, InputRecipe]
    blob_digests: dict[NonEmpty, Digest] = {}
    structure_class: str = ""
    uuid: NonEmpty | None = None
    call_count: int | None = Field(default=None, ge=1)
    tags: tuple[str, ...] = ()

    def identity(self) -> Any:
        """Definition, axes, recipes, blobs. A blob recipe counts by content, so moving a file changes nothing."""
        recipes = {name: recipe.model_dump(mode="json", exclude_defaults=True) for name, recipe in self.inputs.items()}
        for name, digest in self.blob_digests.items():
            recipes[name] = {"type": "blob", "digest": digest, "tensor_key": recipes[name]["tensor_key"]}
        return {"definition": self.definition_digest, "axes": self.axes, "inputs": recipes}
