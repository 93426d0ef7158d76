"""A small continuous-batching engine, simulated: which steps a served model would take under closed loops of users.

In: an engine (model facts and phases of load) and a seed. Out: steps with query and key/value lengths per sequence. Knows nothing
of definitions, kernels, files or torch. Same seed, same steps.
"""

from collections import Counter
from dataclasses import dataclass, field
from random import Random
from typing import NamedTuple

CAPTURED_SIZES = (1, 2, 4, 8, 16, 32)
SEQUENCES_PER_PREFILL = 4


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
