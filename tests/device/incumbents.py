"""Incumbents of the bundled dataset with two small workloads each, as the device tests bring them before the worker."""

import json
from pathlib import Path

from fib_core.workloads.points import small_valid_set
from fib_core.workloads.structure import recipes_for
from schemas.definition import Definition
from schemas.solution import Solution
from schemas.workload import Workload

STARTER = Path(__file__).parents[2] / "infra" / "starter" / "data"
INCUMBENTS = (
    "gemm_n512_k2048", "fused_add_rmsnorm_h1024", "rmsnorm_h1024", "rope_with_cos_sin_cache_neox_style_d64_rd64",
    "top_k_sampling_from_probs_v32000", "gqa_paged_decode_h16_kv8_d128_ps1", "mla_paged_decode_h16_ckv512_kpe64_ps1",
)  # fmt: skip


def starter(name: str) -> tuple[Definition, Solution, list[Workload]]:
    (path,) = STARTER.glob(f"definitions/*/{name}.json")
    target = Definition.model_validate_json(path.read_text())
    label = json.loads((STARTER / "incumbents.json").read_text())[name][0]
    (found,) = STARTER.glob(f"solutions/*/*/**/{label}.json")
    workloads = [
        Workload(
            definition_digest=target.digest,
            axes=point.axes,
            inputs=recipes_for(target, point.axes, point.structure, point.scalars),
        )
        for point in small_valid_set(target, 2)
    ]
    return target, Solution.model_validate_json(found.read_text()), workloads
