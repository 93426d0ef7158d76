"""Definition: an operator's contract (axes, inputs, outputs, reference, constraints, numerical policy).

The public flashinfer-trace shape plus four extension keys of ours: ``mutates``, ``numerics``,
``static`` (inputs that keep their contents from call to call, such as weights; a kernel may prepare them once) and
``strided`` (inputs that callers may hand over as slices of something wider: padded rows, an offset start).
"""

import ast
from typing import Any, Literal, Self

from pydantic import Field, model_validator

from schemas.base import Natural, NonEmpty, PublicRecord, absent
from schemas.numerics import NumericalPolicy, default_rule

DType = Literal[
    "float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "float4_e2m1",
    "int64", "int32", "int16", "int8", "bool",
]  # fmt: skip


class AxisConst(PublicRecord):
    """An axis whose size is part of the contract."""

    type: Literal["const"] = "const"
    value: Natural
    description: str | None = None


class AxisVar(PublicRecord):
    """An axis whose size comes with each call."""

    type: Literal["var"] = "var"
    description: str | None = None


class TensorSpec(PublicRecord):
    """Shape by axis names and dtype; ``shape`` null is a Python scalar, ``[]`` a 0-D tensor."""

    shape: tuple[NonEmpty, ...] | None
    dtype: DType
    description: str | None = None


class Definition(PublicRecord):
    """An operator's contract. The name is a label; identity is the digest of everything that changes meaning."""

    name: NonEmpty
    op_type: NonEmpty
    axes: dict[NonEmpty, AxisConst | AxisVar]
    inputs: dict[NonEmpty, TensorSpec]
    outputs: dict[NonEmpty, TensorSpec]
    reference: NonEmpty
    tags: tuple[NonEmpty, ...] = ()
    description: str | None = None
    constraints: tuple[NonEmpty, ...] = ()
    mutates: dict[NonEmpty, NonEmpty] = {}
    numerics: NumericalPolicy | None = None
    static: tuple[NonEmpty, ...] = Field(default=(), exclude_if=absent)
    strided: tuple[NonEmpty, ...] = Field(default=(), exclude_if=absent)

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        _check_names(self)
        _check_sources(self)
        return self

    def identity(self) -> Any:
        """Everything but names for people; inputs and outputs in call order, since positional callers rely on it."""
        body = _without_descriptions(self.model_dump(mode="json", exclude_defaults=True))
        for key in ("name", "description", "tags"):
            body.pop(key, None)
        if self.numerics is not None:
            body["numerics"] = self.numerics.model_dump(mode="json")  # every figure, whatever its default becomes
        for side in ("inputs", "outputs"):
            body[side] = [[name, spec] for name, spec in body[side].items()]
        body["axes"] = {name: _axis_identity(axis) for name, axis in self.axes.items()}
        return body

    @property
    def const_axes(self) -> dict[str, int]:
        """Sizes fixed by the contract."""
        return {name: axis.value for name, axis in self.axes.items() if isinstance(axis, AxisConst)}

    @property
    def var_axes(self) -> tuple[str, ...]:
        """Names of the axes that a call must bind, in declaration order."""
        return tuple(name for name, axis in self.axes.items() if isinstance(axis, AxisVar))

    @property
    def policy(self) -> NumericalPolicy:
        """The declared numerical policy, or version 1's for these dtypes."""
        if self.numerics is not None:
            return self.numerics
        rules = {name: default_rule(name, spec.dtype, self.op_type) for name, spec in self.outputs.items()}
        return NumericalPolicy(outputs=rules)

    def shape_of(self, name: str, axes: dict[str, int]) -> tuple[int, ...] | None:
        """Concrete shape of one input or output under ``axes`` (var axes bound); None for a scalar."""
        spec = self.inputs.get(name) or self.outputs[name]
        if spec.shape is None:
            return None
        sizes = self.const_axes | axes
        return tuple(sizes[axis] for axis in spec.shape)


def _axis_identity(axis: AxisConst | AxisVar) -> list[str | int]:
    return ["const", axis.value] if isinstance(axis, AxisConst) else ["var"]


def _without_descriptions(value: Any) -> Any:
    if isinstance(value, dict):
        specs = {key: _without_descriptions(item) for key, item in value.items()}
        return {key: item for key, item in specs.items() if key != "description" or isinstance(item, dict)}
    return [_without_descriptions(item) for item in value] if isinstance(value, list) else value


def _check_names(definition: Definition) -> None:
    both = definition.inputs.keys() & definition.outputs.keys()
    if both:
        raise ValueError(f"names on both sides: {sorted(both)}; name the result apart and declare it in `mutates`")
    for name, spec in (definition.inputs | definition.outputs).items():
        unknown = set(spec.shape or ()) - definition.axes.keys()
        if unknown:
            raise ValueError(f"{name} uses undeclared axes {sorted(unknown)}")
    for source, result in definition.mutates.items():
        if source not in definition.inputs or result not in definition.outputs:
            raise ValueError(f"mutates {source} -> {result}: expected an input and an output of this definition")
    strange = set(definition.static) - definition.inputs.keys() | set(definition.static) & definition.mutates.keys()
    if strange:
        raise ValueError(f"static {sorted(strange)}: expected inputs of this definition that it does not mutate")
    if not set(definition.strided) <= definition.inputs.keys() - definition.mutates.keys():
        raise ValueError(f"strided {list(definition.strided)}: expected inputs that this definition does not mutate")


def _check_sources(definition: Definition) -> None:
    try:
        module = ast.parse(definition.reference)
    except SyntaxError as error:
        raise ValueError(f"reference does not parse: line {error.lineno}: {error.msg}") from error
    if not any(isinstance(node, ast.FunctionDef) and node.name == "run" for node in module.body):
        raise ValueError("reference has no top-level `def run`")
    for text in definition.constraints:
        try:
            ast.parse(text, mode="eval")
        except SyntaxError as error:
            raise ValueError(f"constraint {text!r} does not parse: {error.msg}") from error
