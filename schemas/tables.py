"""Table contracts (pandera on polars): what many records look like as rows, with the rules that span columns and rows.

Column names are the records' field names; nested fields are JSON text. Derived columns say so. Rows come from
``schemas.rows`` as plain dicts; :func:`validated` gives back a frame and the rejected rows with their reasons.
"""

import pandera.polars as pa
import polars as pl
from pandera.polars import DataFrameModel, Field, PolarsData

from schemas.canonical import DIGEST_PATTERN
from schemas.table_check import RejectedRow, columns_of, validated

__all__ = [
    "CallTable", "DecisionTable", "EvaluationTable", "IndexEntryTable", "RejectedRow", "WorkloadTable", "columns_of",
    "validated",
]  # fmt: skip

class _Table(DataFrameModel):
    class Config:
        """Extra columns are refused."""

        strict = True


class CallTable(_Table):
    """One accepted call-log line (TraceRecord) with its place."""

    definition: str = Field(str_length={"min_value": 1})
    axes: str = Field(str_startswith="{", description="JSON: axis -> size")
    structure: str = Field(str_startswith="{", description="JSON: name -> lengths in tokens")
    scalars: str = Field(str_startswith="{", description="JSON: name -> value")
    layout: str = Field(str_startswith="{")
    values: str = Field(str_startswith="{")
    source: str = Field(str_startswith="{")


class WorkloadTable(_Table):
    """One placed workload of a snapshot; ``workload_digest`` is derived."""

    definition_digest: str = Field(str_matches=DIGEST_PATTERN)
    workload_digest: str = Field(str_matches=DIGEST_PATTERN, description="derived")
    axes: str = Field(str_startswith="{")
    inputs: str = Field(str_startswith="{")
    blob_digests: str = Field(str_startswith="{")
    structure_class: str
    uuid: str = Field(nullable=True)
    call_count: int = Field(ge=1, nullable=True)
    tags: str = Field(str_startswith="[")
    split: str = Field(isin=["train", "holdout", "stress"])
    family: str = Field(str_length={"min_value": 1})
    weight: float = Field(ge=0, description="share of the definition's calls; 1 without call logs; 0 for stress")

    class Config:
        """What makes a row unique."""

        unique = ["definition_digest", "workload_digest"]

    @pa.dataframe_check(name="weight is finite")
    @classmethod
    def _finite(cls, data: PolarsData) -> pl.LazyFrame:
        return data.lazyframe.select(pl.col("weight").is_finite())

    @pa.dataframe_check(name="stress weighs nothing")
    @classmethod
    def _stress(cls, data: PolarsData) -> pl.LazyFrame:
        return data.lazyframe.select((pl.col("split") != "stress") | (pl.col("weight") == 0))

    @pa.dataframe_check(name="a family lies on one side")
    @classmethod
    def _one_side(cls, data: PolarsData) -> pl.LazyFrame:
        traffic = pl.when(pl.col("split") != "stress").then(pl.col("split"))
        sides = traffic.drop_nulls().n_unique().over("definition_digest", "family")
        return data.lazyframe.select((pl.col("split") == "stress") | (sides == 1))


class EvaluationTable(_Table):
    """One verdict: the Job's fields, then the Evaluation's; ``evaluation_digest`` and ``median_us`` are derived."""

    evaluation_digest: str = Field(str_matches=DIGEST_PATTERN, description="derived")
    definition_digest: str = Field(str_matches=DIGEST_PATTERN)
    workload_digest: str = Field(str_matches=DIGEST_PATTERN)
    solution_digest: str = Field(str_matches=DIGEST_PATTERN)
    policy_version: int = Field(ge=1)
    stage: str = Field(isin=["screen", "confirm"])
    round: int = Field(ge=0)
    device_class: str = Field(str_length={"min_value": 1})
    mode: str = Field(isin=["isolated", "persistent"])
    timer: str = Field(isin=["perf_counter", "monotonic", "cuda_event", "cupti"])
    effort: str = Field(str_length={"min_value": 1})
    role: str = Field(isin=["candidate", "incumbent", "control"])
    campaign: int = Field(ge=0)
    driver: str
    timing_version: int = Field(ge=1)
    status: str = Field(
        isin=["PASSED", "INCORRECT_SHAPE", "INCORRECT_DTYPE", "INCORRECT_NUMERICAL", "RUNTIME_ERROR", "COMPILE_ERROR",
              "TIMEOUT", "CHEATED", "INVALID"]
    )  # fmt: skip
    rule: str = Field(nullable=True)
    reason: str
    errors: str = Field(str_startswith="{")
    samples_us: str = Field(str_startswith="[", description="JSON: every sample, in call order")
    median_us: float = Field(gt=0, nullable=True, description="derived")
    convention: str = Field(isin=["value_returning", "destination_passing"])
    seed: str
    started_at: str = Field(str_length={"min_value": 1})
    log: str

    class Config:
        """What makes a row unique."""

        unique = [
            "solution_digest", "workload_digest", "stage", "round", "role", "campaign", "driver",
            "timing_version", "device_class", "effort",
        ]  # fmt: skip

    @pa.dataframe_check(name="median_us is finite")
    @classmethod
    def _finite(cls, data: PolarsData) -> pl.LazyFrame:
        return data.lazyframe.select(pl.col("median_us").is_finite().fill_null(True))

    @pa.dataframe_check(name="a median needs samples, and samples a median")
    @classmethod
    def _median(cls, data: PolarsData) -> pl.LazyFrame:
        return data.lazyframe.select((pl.col("samples_us") == "[]") == pl.col("median_us").is_null())

    @pa.dataframe_check(name="a verdict other than PASSED says why")
    @classmethod
    def _says_why(cls, data: PolarsData) -> pl.LazyFrame:
        return data.lazyframe.select((pl.col("status") == "PASSED") | (pl.col("reason") != ""))


class DecisionTable(_Table):
    """One Decision; ``decision_digest``, ``ratio`` and ``p_holm`` (of the promoted solution) are derived."""

    decision_digest: str = Field(str_matches=DIGEST_PATTERN, description="derived")
    snapshot_digest: str = Field(str_matches=DIGEST_PATTERN)
    definition_digest: str = Field(str_matches=DIGEST_PATTERN)
    definition: str = Field(str_length={"min_value": 1})
    key: str = Field(str_length={"min_value": 1})
    box: str = Field(str_startswith="{")
    profile: str = Field(isin=["quick", "full"])
    verdict: str = Field(isin=["promoted", "kept_incumbent", "not_enough_rounds", "invalid"])
    solution_digest: str = Field(str_matches=DIGEST_PATTERN, nullable=True)
    incumbent_digest: str = Field(str_matches=DIGEST_PATTERN, nullable=True)
    failed: str = Field(str_startswith="[")
    reason: str = Field(str_length={"min_value": 1})
    finalists: str = Field(str_startswith="[")
    rounds: int = Field(ge=0)
    alpha: float = Field(gt=0, lt=1)
    min_effect: float = Field(gt=0)
    estimates: str = Field(str_startswith="[")
    control: str = Field(nullable=True)
    workloads: str = Field(str_startswith="[")
    evaluations: str = Field(str_startswith="[")
    campaign: int = Field(ge=0)
    causes: str = Field(str_startswith="[", description="JSON: the machine's faults")
    ratio: float = Field(gt=0, nullable=True, description="derived")
    p_holm: float = Field(ge=0, le=1, nullable=True, description="derived")

    class Config:
        """What makes a row unique."""

        unique = ["definition_digest", "key", "campaign"]

    @pa.dataframe_check(name="the machine's faults make a decision invalid")
    @classmethod
    def _faults(cls, data: PolarsData) -> pl.LazyFrame:
        return data.lazyframe.select((pl.col("causes") == "[]") | (pl.col("verdict") == "invalid"))

    @pa.dataframe_check(name="a solution is named exactly where one is promoted")
    @classmethod
    def _named(cls, data: PolarsData) -> pl.LazyFrame:
        return data.lazyframe.select((pl.col("verdict") == "promoted") == pl.col("solution_digest").is_not_null())

    @pa.dataframe_check(name="a promotion meets its minimum effect and its alpha")
    @classmethod
    def _earned(cls, data: PolarsData) -> pl.LazyFrame:
        earned = (pl.col("ratio") >= 1 + pl.col("min_effect")) & (pl.col("p_holm") < pl.col("alpha"))
        earned = earned & pl.col("ratio").is_finite() & (pl.col("failed") == "[]")
        return data.lazyframe.select((pl.col("verdict") != "promoted") | earned.fill_null(False))


class IndexEntryTable(_Table):
    """One entry of a DispatchIndex; ``definition_digest`` is its block's, ``low`` and ``high`` unfold ``interval``."""

    definition_digest: str = Field(str_matches=DIGEST_PATTERN)
    key: str = Field(str_length={"min_value": 1})
    box: str = Field(str_startswith="{")
    solution_digest: str = Field(str_matches=DIGEST_PATTERN, nullable=True)
    ratio: float = Field(gt=0, nullable=True)
    standard_error: float = Field(ge=0, nullable=True)
    low: float = Field(gt=0, nullable=True, description="derived")
    high: float = Field(gt=0, nullable=True, description="derived")
    rounds: int = Field(ge=0)
    finalist_count: int = Field(ge=0)
    reason: str = Field(str_length={"min_value": 1})
    decision_digest: str = Field(str_matches=DIGEST_PATTERN)

    class Config:
        """What makes a row unique: a key whose points lie apart has several boxes."""

        unique = ["definition_digest", "key", "box"]

    @pa.dataframe_check(name="an entry with a solution carries its finite evidence")
    @classmethod
    def _evidence(cls, data: PolarsData) -> pl.LazyFrame:
        finite = pl.all_horizontal(pl.col(name).is_finite() for name in ("ratio", "standard_error", "low", "high"))
        ordered = (pl.col("low") <= pl.col("ratio")) & (pl.col("ratio") <= pl.col("high"))
        return data.lazyframe.select(pl.col("solution_digest").is_null() | (finite & ordered).fill_null(False))
