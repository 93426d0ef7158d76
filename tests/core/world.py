"""A made-up world for tests of rooms: small definitions, solutions without code that matters, and measured times.

``World`` answers VisitRequests like a device would, from a speed table and a seeded noise, so that whole runs of the
rooms take milliseconds. Nothing here is under test.
"""

import math
import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from fib_core.decision import profiles
from fib_core.decision.contest import VisitSettings
from schemas.definition import AxisConst, AxisVar, Definition, TensorSpec
from schemas.environment import Environment
from schemas.evaluation import Evaluation, Job, Limits, Status
from schemas.solution import BuildSpec, Solution, SourceFile
from schemas.visit import Contestant, VisitRequest
from schemas.workload import RandomInput, Workload

DEVICE = "x86-64-v3/1t"
LIMITS = Limits(visit_s=10, build_s=120, memory_bytes=1 << 31)
SETTINGS = VisitSettings(warmup_count=1, sample_count=3, input_sets=1, sampling_draws=0, limits=LIMITS)
ENVIRONMENT = Environment(
    device_class=DEVICE, device_id="cpu:0", device_name="a cpu", hostname_digest="sha256:" + "0" * 64, threads=1,
    python="3.11", libraries={"torch": "2"},
)  # fmt: skip


def gemm(name: str = "gemm_n8_k4", constraints: tuple[str, ...] = ()) -> Definition:
    return Definition(
        name=name,
        op_type="gemm",
        axes={"M": AxisVar(), "N": AxisConst(value=8), "K": AxisConst(value=4)},
        inputs={"A": TensorSpec(shape=("M", "K"), dtype="float32"), "B": TensorSpec(shape=("N", "K"), dtype="float32")},
        outputs={"C": TensorSpec(shape=("M", "N"), dtype="float32")},
        reference="def run(A, B):\n    return A @ B.T\n",
        constraints=constraints,
    )


def paged(page_size: int = 4) -> Definition:
    return Definition(
        name=f"gqa_paged_decode_h2_kv1_d8_ps{page_size}",
        op_type="gqa_paged",
        axes={
            "batch_size": AxisVar(), "num_pages": AxisVar(), "len_indptr": AxisVar(), "num_kv_indices": AxisVar(),
            "num_qo_heads": AxisConst(value=2), "num_kv_heads": AxisConst(value=1), "head_dim": AxisConst(value=8),
            "page_size": AxisConst(value=page_size),
        },
        inputs={
            "q": TensorSpec(shape=("batch_size", "num_qo_heads", "head_dim"), dtype="float32"),
            "k_cache": TensorSpec(shape=("num_pages", "page_size", "num_kv_heads", "head_dim"), dtype="float32"),
            "v_cache": TensorSpec(shape=("num_pages", "page_size", "num_kv_heads", "head_dim"), dtype="float32"),
            "kv_indptr": TensorSpec(shape=("len_indptr",), dtype="int32"),
            "kv_indices": TensorSpec(shape=("num_kv_indices",), dtype="int32"),
            "kv_last_page_len": TensorSpec(shape=("batch_size",), dtype="int32"),
            "sm_scale": TensorSpec(shape=None, dtype="float32"),
        },
        outputs={
            "output": TensorSpec(shape=("batch_size", "num_qo_heads", "head_dim"), dtype="float32"),
            "lse": TensorSpec(shape=("batch_size", "num_qo_heads"), dtype="float32"),
        },
        reference="def run(*inputs):\n    raise NotImplementedError\n",
        constraints=("len_indptr == batch_size + 1", "num_kv_indices == kv_indptr[-1].item()"),
    )  # fmt: skip


def prefill(page_size: int = 4) -> Definition:
    base = paged(page_size)
    axes = {name: axis for name, axis in base.axes.items() if name != "batch_size"} | {"total_q": AxisVar()}
    inputs = {
        name: spec.model_copy(update={"shape": ("total_q", *spec.shape[1:])}) if name == "q" and spec.shape else spec
        for name, spec in base.inputs.items()
    }
    inputs["kv_last_page_len"] = TensorSpec(shape=("len_indptr",), dtype="int32")
    inputs["qo_indptr"] = TensorSpec(shape=("len_indptr",), dtype="int32")
    return base.model_copy(
        update={
            "name": "gqa_paged_prefill_causal_h2_kv1_d8_ps4", "axes": axes, "inputs": inputs, "outputs": {},
            "constraints": ("total_q == qo_indptr[-1].item()",),
        }
    )  # fmt: skip


def rope() -> Definition:
    return Definition(
        name="rope_d8",
        op_type="rope",
        axes={
            "num_tokens": AxisVar(), "num_qo_heads": AxisConst(value=2), "num_kv_heads": AxisConst(value=1),
            "head_size": AxisConst(value=8), "rotary_dim": AxisConst(value=8), "max_seq_len": AxisVar(),
        },
        inputs={
            "q": TensorSpec(shape=("num_tokens", "num_qo_heads", "head_size"), dtype="float32"),
            "cos_sin_cache": TensorSpec(shape=("max_seq_len", "rotary_dim"), dtype="float32"),
            "positions": TensorSpec(shape=("num_tokens",), dtype="int64"),
        },
        outputs={"q_out": TensorSpec(shape=("num_tokens", "num_qo_heads", "head_size"), dtype="float32")},
        reference="def run(q, cos_sin_cache, positions):\n    return q\n",
    )  # fmt: skip


def sampling() -> Definition:
    return Definition(
        name="top_k_top_p_sampling_from_probs_v100",
        op_type="sampling",
        axes={"batch_size": AxisVar(), "vocab_size": AxisConst(value=100)},
        inputs={
            "probs": TensorSpec(shape=("batch_size", "vocab_size"), dtype="float32"),
            "top_k": TensorSpec(shape=("batch_size",), dtype="int32"),
            "top_p": TensorSpec(shape=("batch_size",), dtype="float32"),
        },
        outputs={"samples": TensorSpec(shape=("batch_size",), dtype="int64")},
        reference="def run(probs, top_k, top_p):\n    return top_k\n",
    )


def solution(name: str, definition: Definition, author: str = "lab", supports: tuple[str, ...] = ()) -> Solution:
    return Solution(
        name=name,
        definition=definition.name,
        author=author,
        spec=BuildSpec(language="python", target_hardware=("cpu",), entry_point="main.py::run", supports=supports),
        sources=(SourceFile(path="main.py", content=f"# {name}\ndef run(*tensors): ...\n"),),
    )


def dense(definition: Definition, size: int, count: int | None = 1, tags: tuple[str, ...] = ()) -> Workload:
    return Workload(
        definition_digest=definition.digest,
        axes=dict.fromkeys(definition.var_axes, size),
        inputs={name: RandomInput(type="random") for name in definition.inputs},
        call_count=count,
        tags=tags,
    )


Verdict = Callable[[str, Workload], Status]


@dataclass
class World:
    """``speed`` maps a solution's name to its time per element in microseconds; everything else passes."""

    speed: dict[str, float]
    noise: float = 0.02
    seed: int = 0
    verdict: Verdict = lambda name, workload: Status.PASSED
    control_gain: float = 1.0
    per_workload: dict[tuple[str, str], float] = field(default_factory=dict)
    survivors: Callable[[Workload], tuple[str, ...]] = lambda workload: ()

    def visit(self, request: VisitRequest) -> list[Evaluation]:
        """Evaluations in contestant-major order; noise is common to a round, then private to each process."""
        rng = random.Random(f"{self.seed}/{request.round}/{request.stage}")
        drift = math.exp(rng.gauss(0, self.noise))
        found = []
        for entrant in request.contestants:
            process = math.exp(rng.gauss(0, self.noise))
            for workload in request.workloads:
                time = self._time(entrant, workload) * drift * process
                found.append(self._evaluation(request, entrant, workload, time))
        return found

    def visits(self, requests: Iterable[VisitRequest]) -> list[Evaluation]:
        return [evaluation for request in requests for evaluation in self.visit(request)]

    def _time(self, entrant: Contestant, workload: Workload) -> float:
        size = 10 + sum(workload.axes.values())
        name = entrant.solution.name
        time = size * self.per_workload.get((name, workload.digest), self.speed[name])
        return time / self.control_gain if entrant.role == "control" else time

    def _evaluation(self, request: VisitRequest, entrant: Contestant, workload: Workload, time: float) -> Evaluation:
        status = self.verdict(entrant.solution.name, workload)
        job = Job(
            definition_digest=request.definition.digest, workload_digest=workload.digest,
            solution_digest=entrant.solution_digest, policy_version=1, stage=request.stage, round=request.round,
            device_class=DEVICE, library_versions={}, mode="isolated", timer="perf_counter", effort="w1-s3-i2-d0",
            role=entrant.role,
        )  # fmt: skip
        return Evaluation(
            job=job, status=status, reason="" if status is Status.PASSED else "made up",
            samples_us=(time, time * 1.01, time * 0.99) if status is Status.PASSED else (),
            convention="destination_passing", cache_policy="warm", input_sets=1, environment=ENVIRONMENT,
            limits=request.limits, seed=request.seed, started_at="2026-01-01T00:00:00Z", log="line\n" * 3,
            survivors=self.survivors(workload) if request.stage == "screen" else None,
        )  # fmt: skip


QUICK = replace(profiles.QUICK, timed_limit=6)
"""The quick profile with the contract's most timed workloads, so that scenarios do not hang on how short a tour is."""
