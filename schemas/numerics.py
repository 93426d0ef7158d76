"""The numerical policy of a Definition: what counts as right, fixed before any candidate is seen.

Version 1. A definition may carry its own ``numerics``; otherwise :func:`default_policy` derives one from dtypes.
"""

from typing import Literal

from pydantic import Field

from schemas.base import Record

POLICY_VERSION = 1
INCUMBENT_ERROR_FACTOR = 4.0  # a candidate may err this many times as far as the honest incumbent, plus one ulp

RuleKind = Literal["elementwise", "lse", "low_precision", "samples", "exact"]

# atol = rtol per output dtype; atol is scaled by the root mean square of the reference.
_TOLERANCE = {"float32": 1e-5, "float16": 1e-3, "bfloat16": 1e-2}


class OutputRule(Record):
    """How one output is compared with the reference.

    ``elementwise``/``lse``: every element ``|a-r| <= atol * scale + rtol * |r|`` (scale = RMS of the reference; 1 for
    ``lse``). ``low_precision``: matched share, tail quantile, maximum, Frobenius error and row/column clustering.
    ``samples``: mask and distribution. ``exact``: equality (integers and booleans).
    """

    kind: RuleKind
    atol: float = Field(ge=0, allow_inf_nan=False)
    rtol: float = Field(ge=0, allow_inf_nan=False)
    legal_nonfinite: tuple[Literal["-inf", "inf", "nan"], ...] = ()
    lse_base: Literal["2", "e"] | None = None
    matched_ratio_min: float = 1.0
    tail_quantile: float = 0.999
    tail_factor: float = 4.0
    max_factor: float = 10.0
    frobenius_max: float = 0.02
    cluster_ratio_max: float = 0.20


class NumericalPolicy(Record):
    """One rule per output, under a version that every Job cites."""

    version: int = POLICY_VERSION
    outputs: dict[str, OutputRule]
    incumbent_error_factor: float = INCUMBENT_ERROR_FACTOR


def default_rule(output: str, dtype: str, op_type: str) -> OutputRule:
    """Derive version 1's rule for one output from its name, dtype and op type."""
    if op_type == "sampling":
        return OutputRule(kind="samples", atol=0, rtol=0)
    if output == "lse":
        return OutputRule(kind="lse", atol=1e-3, rtol=1e-3, legal_nonfinite=("-inf",), lse_base="2")
    if op_type == "moe" or dtype.startswith("float8"):
        return OutputRule(kind="low_precision", atol=1e-2, rtol=1e-2, matched_ratio_min=0.99)
    if dtype in _TOLERANCE:
        return OutputRule(kind="elementwise", atol=_TOLERANCE[dtype], rtol=_TOLERANCE[dtype])
    return OutputRule(kind="exact", atol=0, rtol=0)
