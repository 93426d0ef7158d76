"""A tiny published index for tests: two definitions, Python solutions, boxes of chosen sizes, any device class."""

import json
from pathlib import Path
from typing import Any

from fib_core.index.guard import dtype_class
from fib_core.index.staleness import POLICY_VERSION
from fib_core.runtime.device_class import cpu_class
from fib_core.runtime.present import version_here
from schemas.canonical import canonical_bytes, digest_of
from schemas.decision import KeyBox
from schemas.definition import Definition
from schemas.index import DispatchIndex, IndexedDefinition, IndexedSolution, IndexEntry, KeptKey, KeyEvidence
from schemas.publication import ChannelPointer
from schemas.solution import Solution

HERE = cpu_class(1)

# Input names are out of alphabetical order on purpose: call order is part of the contract.
SCALE = Definition.model_validate({
    "name": "scale_h4", "op_type": "rmsnorm",
    "axes": {"rows": {"type": "var"}, "h": {"type": "const", "value": 4}},
    "inputs": {"x": {"shape": ["rows", "h"], "dtype": "float32"}, "gain": {"shape": ["h"], "dtype": "float32"}},
    "outputs": {"y": {"shape": ["rows", "h"], "dtype": "float32"}},
    "reference": "def run(x, gain):\n    return x * gain\n",
})  # fmt: skip
FUSED = Definition.model_validate({
    "name": "fused_add_scale_h4", "op_type": "rmsnorm",
    "axes": {"rows": {"type": "var"}, "h": {"type": "const", "value": 4}},
    "inputs": {
        "x": {"shape": ["rows", "h"], "dtype": "float32"}, "residual": {"shape": ["rows", "h"], "dtype": "float32"},
        "gain": {"shape": ["h"], "dtype": "float32"},
    },
    "outputs": {
        "y": {"shape": ["rows", "h"], "dtype": "float32"}, "residual_out": {"shape": ["rows", "h"], "dtype": "float32"},
    },
    "mutates": {"residual": "residual_out"},
    "reference": "def run(x, residual, gain):\n    r = x + residual\n    return r * gain, r\n",
})  # fmt: skip

SCALE_VALUE = "CALLS = []\ndef run(x, gain):\n    CALLS.append(1)\n    return x * gain\n"
SCALE_DPS = "import torch\ndef run(x, gain, y):\n    torch.mul(x, gain, out=y)\n"
FUSED_VALUE = "def run(x, residual, gain):\n    residual += x\n    return residual * gain\n"
FUSED_DPS = "import torch\ndef run(x, residual, gain, y):\n    residual += x\n    torch.mul(residual, gain, out=y)\n"


def solution(definition: Definition, source: str, dps: bool = False, supports: tuple[str, ...] = ()) -> Solution:
    name = "s" + digest_of(source)[7:13]
    return Solution.model_validate({
        "name": name, "definition": definition.name, "author": "tests",
        "spec": {
            "language": "python", "target_hardware": ["cpu"], "entry_point": "k.py::run",
            "destination_passing_style": dps, "supports": list(supports),
        },
        "sources": [{"path": "k.py", "content": source}],
    })  # fmt: skip


def entry(
    definition: Definition, rows: tuple[int, int], chosen: Solution | None, device_class: str = HERE, **more: Any
) -> IndexEntry:
    guard = {"definition_digest": definition.digest, "device_class": device_class, "axes": {"rows": rows}}
    box = KeyBox.model_validate(guard | {"layout": "contiguous"})
    proved = chosen is not None
    return IndexEntry.model_validate({
        "key": f"rows={rows[1]}", "box": box,
        "solution_digest": chosen.digest_for(definition.digest) if chosen else None,
        "ratio": 1.5 if proved else None, "standard_error": 0.01 if proved else None,
        "interval": (1.4, 1.6) if proved else None, "rounds": 8, "finalist_count": 1,
        "reason": "promoted" if proved else "kept incumbent: no candidate met min_effect",
        "decision_digest": digest_of([definition.name, rows]),
    } | more)  # fmt: skip


def index(
    *parts: tuple[Definition, list[tuple[tuple[int, int], Solution | None]]], device_class: str = HERE, note: str = "1"
) -> tuple[DispatchIndex, dict[str, tuple[Definition, Solution]]]:
    """An index and its solutions by digest, from (definition, [(rows interval, solution or None)])."""
    owned = {
        chosen.digest_for(definition.digest): (definition, chosen)
        for definition, boxes in parts for _, chosen in boxes if chosen
    }  # fmt: skip
    record = DispatchIndex(
        snapshot_digest=digest_of(note), profile="quick", device_class=device_class, library_versions={"note": note},
        definitions=tuple(
            IndexedDefinition(
                name=definition.name, op_type=definition.op_type, definition_digest=definition.digest,
                incumbent_digest=digest_of("incumbent " + definition.name), incumbent_name="torch_plain",
                default_reason="no key covers the call",
                entries=tuple(entry(definition, rows, chosen, device_class) for rows, chosen in boxes),
            )
            for definition, boxes in parts
        ),
        solutions=tuple(
            IndexedSolution(name=s.name, author=s.author, solution_digest=digest, object_key=key("solutions", digest))
            for digest, (_, s) in owned.items()
        ),
    )  # fmt: skip
    return record, owned


def evidence(definition: Definition, found: IndexEntry, **more: Any) -> KeyEvidence:
    """Evidence of one key, measured with what is installed here."""
    policy = {
        "version": POLICY_VERSION, "cache": "warm", "launch": "eager", "timer": "monotonic", "mode": "isolated",
        "profile": "quick", "rules": digest_of("rules"),
    }  # fmt: skip
    return KeyEvidence.model_validate({
        "key": found.key, "decision_digest": found.decision_digest, "contest_digest": digest_of("contest " + found.key),
        "campaign": 0, "snapshot_digest": digest_of("1"), "ratio": found.ratio, "interval": found.interval,
        "standard_error": found.standard_error, "rounds": found.rounds, "finalist_count": found.finalist_count,
        "samples_digest": digest_of([definition.name, found.key]), "device_ids": ("cpu0",), "drivers": (),
        "library_versions": {"torch": version_here("torch")}, "policy": policy, "structures": (), "distributions": (),
    } | more)  # fmt: skip


Made = tuple[DispatchIndex, dict[str, tuple[Definition, Solution]]]


def modern(made: Made, **more: Any) -> Made:
    """The same index in the present shape: promotions with evidence, what kept the incumbent listed apart."""
    record, owned = made
    contracts = {item.digest: item for item in (SCALE, FUSED)}
    blocks = []
    for block in record.definitions:
        contract = contracts[block.definition_digest]
        entries, kept = [], []
        for old in block.entries:
            box = old.box.model_copy(update={"dtype": dtype_class(contract)})
            proof = evidence(contract, old, **more)
            if old.solution_digest:
                entries.append(old.model_copy(update={"box": box, "evidence": (proof,)}))
            else:
                kept.append(KeptKey(
                    key=old.key, box=box, verdict="kept_incumbent", reason=old.reason,
                    decision_digest=old.decision_digest, evidence=proof,
                ))  # fmt: skip
        update = {"entries": tuple(entries), "kept": tuple(kept), "dropped_count": len(kept)}
        blocks.append(block.model_copy(update=update))
    return record.model_copy(update={"definitions": tuple(blocks)}), owned


def publish(
    store: Any,
    made: tuple[DispatchIndex, dict[str, tuple[Definition, Solution]]],
    definitions: tuple[Definition, ...] = (SCALE, FUSED),
    channel: str = "quick",
) -> str:
    """Write everything into ``store`` as a publisher does; returns the index digest."""
    record, owned = made
    wanted = {item.definition_digest for item in record.definitions}
    for definition in definitions:
        if definition.digest in wanted:
            store.put_once(key("definitions", definition.digest), json.dumps(definition.public_json()).encode())
    for digest, (definition, chosen) in owned.items():
        body = {"definition_digest": definition.digest, "solution": chosen.public_json()}
        store.put_once(key("solutions", digest), canonical_bytes(body))
    store.put_once(key("indexes", record.digest), canonical_bytes(record.model_dump(mode="json")))
    return point(store, record.digest, channel)


def point(store: Any, digest: str, channel: str = "quick") -> str:
    """Move the channel, as a publisher does."""
    name = f"channels/{channel}.json"
    old = store.get(name) if name in list(store.keys("channels/")) else None
    previous = json.loads(old.body)["index_digest"] if old else None
    pointer = ChannelPointer(index_digest=digest, previous=previous, published_at="2026-01-01T00:00:00Z")
    store.swap(name, canonical_bytes(pointer.model_dump(mode="json")), old.etag if old else None)
    return digest


def key(kind: str, digest: str) -> str:
    return f"{kind}/{digest.removeprefix('sha256:')}.json"


def build(chosen: Solution, digest: str, folder: Path) -> Any:
    """A builder without a compiler: execute the source, return the entry point."""
    scope: dict[str, Any] = {}
    exec(chosen.sources[0].content, scope)
    return scope[chosen.entry_symbol]
