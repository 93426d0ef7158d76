"""Call logs of the starter data: a small continuous-batching engine is simulated and what its kernels would be asked is logged.

In: definitions (public dicts). Out: compact JSON lines per ``scale:cpu`` definition, one observed call each (the TraceRecord
form, defaults left out). Synthetic and seeded: same definitions, same bytes. Knows nothing of files, torch or candidates.

The engine: N users in a closed loop (phases of 1 to 32), a cached common prefix, prompts prefilled in chunks of a token budget
(up to four sequences a step), then decode steps over all running sequences, padded with empty rows to the sizes for which a
graph was captured. A step is one call per layer and definition; the recorder samples steps (attention: every prefill step and
every n-th decode step; kernels that see only token counts: every sixth prefill step too); the same benchmark is replayed a few
times, as nightly runs are. That is where repetition and skew come from.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Any, NamedTuple

CAPTURED_SIZES = (1, 2, 4, 8, 16, 32)
SEQUENCES_PER_PREFILL = 4
REPLAYS = 3
DENSE_PREFILL_EVERY = 6
BAD_LINES_IN = "gqa_paged_decode_h32_kv8_d64_ps16"


class Phase(NamedTuple):
    """A closed loop of ``users``, each sending prompts and reading outputs of these lengths (tokens)."""

    users: int
    requests: int
    prompts: tuple[int, ...]
    outputs: tuple[int, ...]


class Engine(NamedTuple):
    """One served model."""

    layers: int
    chunk_tokens: int
    prefix_tokens: int
    pool_tokens: int
    decode_every: int
    phases: tuple[Phase, ...]


class Step(NamedTuple):
    """One engine step: query and key/value tokens per sequence; ``ending`` sequences sample a token."""

    kind: str
    qo_lens: tuple[int, ...]
    kv_lens: tuple[int, ...]
    ending: int


@dataclass
class Sequence:
    """A request on its way: ``seen`` tokens are in the cache."""

    prompt: int
    left: int
    seen: int


@dataclass
class Batch:
    """The engine's state."""

    waiting: list[Sequence] = field(default_factory=list)
    running: list[Sequence] = field(default_factory=list)


CHAT = (
    Phase(1, 3, (200, 400), (60,)),
    Phase(4, 12, (64, 120), (40, 56)),
    Phase(2, 6, (90, 180), (48,)),
    Phase(8, 16, (33, 64), (32, 40)),
    Phase(4, 8, (64, 64, 120), (40,)),
    Phase(16, 24, (20, 33), (24, 32)),
    Phase(1, 2, (24, 48), (40,)),
    Phase(32, 40, (8, 12, 16), (16, 24)),
)
EXPERTS = (
    Phase(1, 3, (24, 200), (48,)),
    Phase(4, 12, (32, 60), (40,)),
    Phase(2, 6, (48, 90), (40,)),
    Phase(8, 16, (24, 32), (32,)),
    Phase(16, 24, (8, 16), (24,)),
    Phase(32, 32, (4, 8), (12,)),
)
ENGINES = {
    "llama-3.2-1b": Engine(16, 64, 16, 2048, 8, CHAT),
    "qwen3-0.6b": Engine(28, 64, 16, 2048, 16, CHAT),
    "tinyllama-1.1b": Engine(1, 64, 16, 2048, 1, CHAT),
    "deepseek-v3": Engine(16, 32, 8, 1024, 8, EXPERTS),
    "deepseek-v3-small": Engine(16, 32, 8, 1024, 8, EXPERTS),
}


def pick(rng: Random, options: tuple[int, ...]) -> int:
    """One option, uniformly; by ``random()`` alone, whose stream does not change between Python versions."""
    return options[int(rng.random() * len(options))]


def simulate(engine: Engine, seed: int) -> list[Step]:
    """All steps of one benchmark run, phase after phase; each phase drains before the next begins."""
    rng, steps = Random(seed), []
    for phase in engine.phases:
        batch, left = Batch(), phase.requests
        while left or batch.waiting or batch.running:
            while left and len(batch.waiting) + len(batch.running) < phase.users:
                prompt, output = pick(rng, phase.prompts), pick(rng, phase.outputs)
                batch.waiting.append(Sequence(engine.prefix_tokens + prompt, output, engine.prefix_tokens))
                left -= 1
            steps.append(prefill(engine, batch) if batch.waiting else decode(batch))
    return steps


def prefill(engine: Engine, batch: Batch) -> Step:
    """A chunk of the oldest waiting prompts within the token budget."""
    budget, rows = engine.chunk_tokens, []
    for sequence in batch.waiting[:SEQUENCES_PER_PREFILL]:
        taken = min(budget, sequence.prompt - sequence.seen)
        if taken == 0:
            break
        sequence.seen += taken
        budget -= taken
        rows.append((taken, sequence.seen))
    done = [sequence for sequence in batch.waiting if sequence.seen == sequence.prompt]
    batch.waiting = [sequence for sequence in batch.waiting if sequence.seen < sequence.prompt]
    batch.running += done
    return Step("prefill", tuple(q for q, _ in rows), tuple(kv for _, kv in rows), len(done))


def decode(batch: Batch) -> Step:
    """One token for every running sequence; empty rows fill the batch up to a captured size."""
    for sequence in batch.running:
        sequence.seen += 1
        sequence.left -= 1
    lengths = [sequence.seen for sequence in batch.running]
    size = next(size for size in CAPTURED_SIZES if size >= len(lengths))
    batch.running = [sequence for sequence in batch.running if sequence.left > 0]
    padded = (*lengths, *[0] * (size - len(lengths)))
    return Step("decode", (1,) * size, padded, size)


def recorded(engine: Engine, prefill_every: int, seed: int) -> list[Step]:
    """What the recorder kept of one run: every n-th step of each kind."""
    every = {"prefill": prefill_every, "decode": engine.decode_every}
    seen: Counter[str] = Counter()
    kept = []
    for step in simulate(engine, seed):
        seen[step.kind] += 1
        if seen[step.kind] % every[step.kind] == 0:
            kept.append(step)
    return kept


def attention_call(definition: dict[str, Any], engine: Engine, step: Step) -> dict[str, Any] | None:
    """Decode kernels see decode steps, prefill kernels the others."""
    if step.kind not in definition["name"]:
        return None
    page = definition["axes"].get("page_size", {"value": 1})["value"]
    values = {
        "batch_size": len(step.kv_lens),
        "total_q": sum(step.qo_lens),
        "total_kv": sum(step.kv_lens),
        "num_pages": engine.pool_tokens // page,
        "len_indptr": len(step.kv_lens) + 1,
        "num_kv_indices": sum(-(-length // page) for length in step.kv_lens),
    }
    lengths = {"kv_lens": list(step.kv_lens)}
    if step.kind == "prefill":
        lengths = {"qo_lens": list(step.qo_lens)} | lengths
    head = definition["axes"].get("head_dim", {"value": 192})["value"]
    return {"axes": bound(definition, values), "structure": lengths, "scalars": {"sm_scale": round(head**-0.5, 9)}}


def token_call(definition: dict[str, Any], engine: Engine, step: Step) -> dict[str, Any]:
    """Kernels that see a row per token: gemm, norms, experts."""
    tokens = sum(step.qo_lens)
    call: dict[str, Any] = {"axes": bound(definition, dict.fromkeys(("M", "batch_size", "seq_len"), tokens))}
    if definition["op_type"] == "moe":
        call["scalars"] = {"local_expert_offset": 0, "routed_scaling_factor": 2.5}
    return call


def rope_call(definition: dict[str, Any], engine: Engine, step: Step) -> dict[str, Any]:
    """Positions are the places of the query tokens; a padding row stands at 0."""
    places = [
        position
        for queries, length in zip(step.qo_lens, step.kv_lens, strict=True)
        for position in range(max(length - queries, 0), max(length, 1))
    ]
    values = {"num_tokens": len(places), "num_qo_heads": 32, "num_kv_heads": 8, "max_seq_len": 1024}
    return {"axes": bound(definition, values), "structure": {"positions": places}}


def sampling_call(definition: dict[str, Any], engine: Engine, step: Step) -> dict[str, Any] | None:
    """One row per sequence that gets a token; presets of the clients by batch: greedy-ish alone, mixed when many share."""
    if step.ending == 0:
        return None
    wide = sum(step.kv_lens) % 4 == 0
    presets = {"top_k": 20 if wide else 50, "top_p": 0.95 if wide else 0.9}
    scalars = {name: value for name, value in presets.items() if name in definition["inputs"]}
    return {"axes": bound(definition, {"batch_size": step.ending}), "scalars": scalars}


def bound(definition: dict[str, Any], values: dict[str, int]) -> dict[str, int]:
    """The var axes of a definition, in its order."""
    return {name: values[name] for name, axis in definition["axes"].items() if axis["type"] == "var"}


CALLS = {"gqa_paged": attention_call, "gqa_ragged": attention_call, "mla_paged": attention_call, "rope": rope_call, "sampling": sampling_call}


def engine_of(definition: dict[str, Any]) -> tuple[str, Engine]:
    """The served model that a definition's tags name."""
    names = [tag.removeprefix("model:") for tag in definition.get("tags", ()) if tag.startswith("model:")]
    name = next((name for name in names if name in ENGINES), None)
    if name is None:
        raise ValueError(f"{definition['name']}: no engine is known for the models {names}; known: {sorted(ENGINES)}")
    return name, ENGINES[name]


def calls_of(definition: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Every logged call of one definition, in the order of the log."""
    model, engine = engine_of(definition)
    maker = CALLS.get(definition["op_type"], token_call)
    prefill_every = 1 if maker is attention_call else DENSE_PREFILL_EVERY
    steps = [call for step in recorded(engine, prefill_every, seed=7) if (call := maker(definition, engine, step)) is not None]
    for replay in range(REPLAYS):
        source = {"engine": "batching-simulator", "model": model, "run": f"replay-{replay + 1}"}
        for call in steps:
            row = {"definition": definition["name"]} | call | {"source": source}
            yield from [row] * engine.layers


def line(call: dict[str, Any]) -> str:
    """Compact JSON."""
    return json.dumps(call, separators=(",", ":"))


def broken(lines: list[str]) -> list[str]:
    """The same log after a crash and a few bugs: unusable lines in between, good ones untouched."""
    good = json.loads(lines[len(lines) // 2])
    axes = good["axes"]
    bad = [
        lines[0][: len(lines[0]) // 2],
        line(good | {"axes": axes | {"batch_size": -1}}),
        line(good | {"definition": good["definition"] + "_v0"}),
        line(good | {"axes": {name: size for name, size in axes.items() if name != "num_pages"}}),
        line(good | {"structure": {"kv_lens": [*good["structure"]["kv_lens"], 5]}}),
    ]
    places = [len(lines) * (index + 1) // (len(bad) + 1) for index in range(len(bad))]
    for place, text in sorted(zip(places, bad, strict=True), reverse=True):
        lines = [*lines[:place], text, *lines[place:]]
    return lines


def logs(definitions: dict[str, dict[str, Any]]) -> dict[str, Iterable[str]]:
    """Call logs of every ``scale:cpu`` definition, by name."""
    found: dict[str, Iterable[str]] = {}
    for name, definition in sorted(definitions.items()):
        if "scale:cpu" in definition.get("tags", ()):
            lines = [line(call) for call in calls_of(definition)]
            found[name] = broken(lines) if name == BAD_LINES_IN else lines
    return found


def distinct_points(definition: dict[str, Any]) -> list[tuple[dict[str, int], dict[str, Any], dict[str, Any]]]:
    """(axes, structure, scalars) of the distinct calls, most frequent first: what a kernel has to be right on."""
    counts = Counter(line({key: call.get(key, {}) for key in ("axes", "structure", "scalars")}) for call in calls_of(definition))
    bodies = [json.loads(text) for text, _ in counts.most_common()]
    return [(body["axes"], body["structure"], body["scalars"]) for body in bodies]
