"""Runs in the peer's environment: its sampling evaluator on draws that were made before. Knows nothing of ours.

In: a directory with ``case.json`` and ``case.pt`` (probabilities, filters, draws of every sampler). Out: a JSON line
with verdict and seconds per sampler. The evaluator's own code runs unchanged, on CPU: its timing helper is an empty
stand-in (nothing is timed), device synchronisation does nothing. ``padding_s`` is what repeating the row to the
evaluator's batch takes by itself; it is part of ``seconds``.
"""

import json
import sys
import time
import types
from pathlib import Path
from typing import Any

testing = types.ModuleType("flashinfer.testing")
testing.bench_gpu_time_with_cupti = None  # type: ignore[attr-defined]
sys.modules["flashinfer"] = types.ModuleType("flashinfer")
sys.modules["flashinfer.testing"] = testing

import torch  # noqa: E402
from flashinfer_bench.bench.evaluators import sampling as peer  # noqa: E402
from flashinfer_bench.data import Definition  # noqa: E402

torch.cuda.synchronize = lambda device=None: None


class Replay:
    """A solution that returns draws made before: first the trials of the mask, then the batches that are counted."""

    metadata = types.SimpleNamespace(destination_passing_style=False)

    def __init__(self, trials: Any, batches: Any) -> None:
        self._next = [*trials, *batches]
        self._next.reverse()

    def __call__(self, *inputs: Any) -> Any:
        return self._next.pop()


def main(home: Path) -> None:
    """Judge every sampler of the case."""
    case = json.loads((home / "case.json").read_text())
    held = torch.load(home / "case.pt")
    torch.set_num_threads(1)
    definition = Definition.model_validate(case["definition"])
    inputs = [held[name] for name in definition.inputs]
    method = peer._detect_thresholding_method(definition)
    results = {}
    for name in case["samplers"]:
        config = types.SimpleNamespace(
            sampling_validation_trials=len(held[f"{name}.trials"]), sampling_tvd_threshold=case["tvd_threshold"],
            rtol=1e-2, atol=1e-2, required_matched_ratio=None,
        )  # fmt: skip
        solution = Replay(held[f"{name}.trials"], held[f"{name}.batches"])
        start = time.process_time()
        mask = peer._compute_valid_sampling_mask(inputs[0], method, dict(zip(definition.inputs, inputs, strict=True)))
        expected = inputs[0] * mask.float()
        expected = expected / expected.sum(dim=-1, keepdim=True)
        correctness, verdict = peer.SamplingEvaluator.check_correctness(
            definition, solution, [inputs], [[expected]], config, str(home / "log"), "cpu"
        )
        seconds = time.process_time() - start
        start = time.process_time()
        inputs[0].repeat(len(held[f"{name}.batches"][0]), 1)
        padding_s = time.process_time() - start
        tvd = (correctness.extra or {}).get("tvd") if correctness else None
        results[name] = {"accepted": verdict is None, "seconds": seconds, "padding_s": padding_s, "tvd": tvd}
    print("RESULT" + json.dumps(results))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
