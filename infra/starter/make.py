"""Writes the starter dataset: readable sources in ``ops_*/<op>/`` -> the public layout under ``data/``.

In: every folder ``infra/starter/ops_*/<op>/`` that holds a ``spec.py``. Out: ``data/`` with definitions, workloads, solutions,
call logs, ``incumbents.json`` and a README. Same sources, same bytes: nothing here reads a clock, a random device or the machine.
No torch in here. Run ``python infra/starter/make.py`` after any edit; ``--check`` only says whether ``data/`` is current.

An op folder (``<op>`` is the op type)::

    spec.py            the header table, a plain module with these names:
        DEFINITIONS    list of public definition dicts; ``reference`` names a file in references/ (its text goes in)
        SOLUTIONS      list of dicts, one per kernel file and style:
                         file         name in kernels/ (.py or .cc); ``files`` (list, entry first) if there are several
                         name         short name; the solution is called ``<definition>__<name>``
                         author       "baseline" for the PyTorch forms, anything else for candidates
                         definitions  list of definition names it is written out for
                         description  one line for people
                         entry        function name (default "run")
                         style        "value" (returns its outputs, default) or "dps" (output buffers appended)
                         language     default by suffix: .cc cpp, .py python; say "triton" for Triton
                         optional: supports, compile_options, dependencies, target_hardware, binding
        INCUMBENTS     {definition: [short names of baseline solutions, fastest measured first]}
        WORKLOADS      optional {definition: [{"axes": .., "inputs": ..}]} for definitions without a call log
    references/*.py    one file with ``def run(...)`` per reference
    kernels/*          the kernel sources, real files that can be compiled, linted and read

Constants: in a .py file (reference or kernel) a top-level line ``HIDDEN_SIZE = 0`` whose name is a const axis in capitals is
rewritten with that definition's value; a C++ kernel gets ``-DHIDDEN_SIZE=2048`` if its row says ``compile_options: ["-DHIDDEN_SIZE={hidden_size}"]``.

Call logs: ``calls.py`` beside this file, ``logs(definitions: dict[str, dict]) -> dict[str, Iterable[str]]`` (compact JSON lines by
definition name), written to ``calls/<op>/<definition>.jsonl.gz``.
"""

import argparse
import gzip
import importlib.util
import io
import json
import re
import shutil
import sys
import tempfile
import uuid
from pathlib import Path
from types import ModuleType
from typing import Any

HERE = Path(__file__).resolve().parent
LANGUAGE_BY_SUFFIX = {".py": "python", ".cc": "cpp"}
HARDWARE_BY_SCALE = {"scale:cpu": ["cpu"], "scale:gpu": ["cuda"]}
NAMESPACE = uuid.UUID("6f0f5a52-7c1c-5a43-9f43-52b7f9f5d8a1")
README = """# Starter data (synthetic)

Written by `infra/starter/make.py` from the sources beside it; do not edit by hand. Definitions, references, kernels, workloads and call
logs are ours. Shapes are those of public models; **traffic is synthetic**: no call in here was recorded from a real service.

- `scale:cpu` definitions have shapes of small models (Llama-3.2-1B, Qwen3-0.6B, TinyLlama) that one CPU core evaluates in milliseconds.
- `tour:left-out` keeps a definition out of the default run, to keep the first run short; name it, or set `FIB_SCALE=`, to run it.
- `scale:gpu` definitions have shapes of Llama-3.1-8B, Qwen3-30B-A3B and DeepSeek-V3 at tensor parallel 8.
- `incumbents.json`: the competent PyTorch forms of each definition, fastest measured first (`infra/starter/measure.py`).
- `calls/`: what a simulated continuous-batching engine (`infra/starter/calls.py`) asked of each `scale:cpu` definition, one line a
  call: closed loops of 1 to 32 users, chunked prefill, a cached prefix, decode batches padded with empty rows, one line per layer,
  three replays. The log of `gqa_paged_decode_h32_kv8_d64_ps16` also holds five lines that no collector should accept: one cut short,
  a negative axis, an unknown definition, a missing axis, lengths that contradict the axes.
- Among the solutions are some that are wrong on purpose. Nothing in the data says which: the pipeline has to find out.
"""


def load_module(path: Path) -> ModuleType:
    """Import one file by path under a name of its own."""
    name = "starter_" + "_".join(path.relative_to(HERE).with_suffix("").parts)
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} cannot be loaded as a module")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def op_folders() -> list[Path]:
    """Every folder with a spec.py, in a fixed order."""
    return sorted(path.parent for path in HERE.glob("ops_*/*/spec.py"))


def const_axes(definition: dict[str, Any]) -> dict[str, int]:
    """Sizes that the definition fixes."""
    return {name: axis["value"] for name, axis in definition["axes"].items() if axis["type"] == "const"}


def bind_constants(source: str, axes: dict[str, int]) -> str:
    """Rewrite top-level ``NAME = 0`` lines whose name is a const axis in capitals."""
    for name, value in axes.items():
        source = re.sub(rf"^{re.escape(name.upper())} = \d+", f"{name.upper()} = {value}", source, flags=re.MULTILINE)
    return source


# Weights and tables: the same from call to call in a server, so a kernel may prepare them once.
STATIC_INPUTS = re.compile("B|weight|cos_sin_cache|gemm[12]_weights(_scale)?|routing_bias")


def read_definition(folder: Path, row: dict[str, Any]) -> dict[str, Any]:
    """The public definition with its reference's text in place of the file name."""
    text = (folder / "references" / row["reference"]).read_text(encoding="utf-8")
    static = [name for name in row["inputs"] if STATIC_INPUTS.fullmatch(name)]
    return row | {"reference": bind_constants(text, const_axes(row))} | ({"static": static} if static else {})


def read_solution(folder: Path, row: dict[str, Any], definition: dict[str, Any]) -> dict[str, Any]:
    """The public solution of one header row for one definition."""
    files = row.get("files") or [row["file"]]
    axes = const_axes(definition)
    sources = []
    for name in files:
        text = (folder / "kernels" / name).read_text(encoding="utf-8")
        sources.append({"path": name, "content": bind_constants(text, axes) if name.endswith(".py") else text})
    language = row.get("language") or LANGUAGE_BY_SUFFIX[Path(files[0]).suffix]
    scale = next((tag for tag in definition.get("tags", ()) if tag in HARDWARE_BY_SCALE), "scale:cpu")
    spec: dict[str, Any] = {
        "language": language,
        "target_hardware": row.get("target_hardware") or HARDWARE_BY_SCALE[scale],
        "entry_point": f"{files[0]}::{row.get('entry', 'run')}",
        "dependencies": row.get("dependencies") or ["torch"],
        "destination_passing_style": row.get("style", "value") == "dps",
    }
    if language in ("cpp", "cuda"):
        spec["binding"] = row.get("binding", "tvm-ffi")
    if "compile_options" in row:
        spec["compile_options"] = [option.format(**axes) for option in row["compile_options"]]
    if "supports" in row:
        spec["supports"] = row["supports"]
    return {
        "name": f"{definition['name']}__{row['name']}",
        "definition": definition["name"],
        "author": row["author"],
        "spec": spec,
        "sources": sources,
        "description": row["description"],
    }


def workload_line(definition: str, row: dict[str, Any]) -> str:
    """One public workload row; its uuid is derived from its content."""
    body = json.dumps(row, sort_keys=True)
    workload = row | {"uuid": str(uuid.uuid5(NAMESPACE, definition + body))}
    line = {"definition": definition, "workload": workload, "solution": None, "evaluation": None}
    return json.dumps(line, separators=(",", ":"), ensure_ascii=False)


def pretty(value: Any) -> str:
    """JSON as people diff it."""
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def gzipped(lines: list[str]) -> bytes:
    """Compressed without a time or a name in the header."""
    buffer = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", fileobj=buffer, compresslevel=9, mtime=0) as stream:
        stream.write("".join(line + "\n" for line in lines).encode())
    return buffer.getvalue()


def op_files(folder: Path) -> tuple[dict[str, bytes], dict[str, dict[str, Any]], dict[str, list[str]]]:
    """(files by relative path, definitions by name, incumbents) of one op folder."""
    spec = load_module(folder / "spec.py")
    op = folder.name
    files: dict[str, bytes] = {}
    definitions = {row["name"]: read_definition(folder, row) for row in spec.DEFINITIONS}
    for name, definition in definitions.items():
        files[f"definitions/{op}/{name}.json"] = pretty(definition).encode()
    for row in spec.SOLUTIONS:
        for name in row["definitions"]:
            solution = read_solution(folder, row, definitions[name])
            path = f"solutions/{row['author']}/{op}/{name}/{solution['name']}.json"
            if path in files:
                raise ValueError(f"two solutions are called {solution['name']}")
            files[path] = pretty(solution).encode()
    for name, rows in getattr(spec, "WORKLOADS", {}).items():
        files[f"workloads/{op}/{name}.jsonl"] = "".join(workload_line(name, row) + "\n" for row in rows).encode()
    incumbents = {name: [f"{name}__{short}" for short in shorts] for name, shorts in spec.INCUMBENTS.items()}
    return files, definitions, incumbents


def dataset() -> dict[str, bytes]:
    """Every file of the dataset by its path relative to the root."""
    files: dict[str, bytes] = {"README.md": README.encode()}
    definitions: dict[str, dict[str, Any]] = {}
    incumbents: dict[str, list[str]] = {}
    for folder in op_folders():
        op, found, leads = op_files(folder)
        files |= op
        definitions |= found
        incumbents |= leads
    if (HERE / "calls.py").is_file():
        for name, lines in load_module(HERE / "calls.py").logs(definitions).items():
            files[f"calls/{definitions[name]['op_type']}/{name}.jsonl.gz"] = gzipped(list(lines))
    files["incumbents.json"] = pretty(dict(sorted(incumbents.items()))).encode()
    return files


def write(root: Path) -> dict[str, bytes]:
    """Replace ``root`` by the dataset; whole or not at all."""
    files = dataset()
    with tempfile.TemporaryDirectory(dir=root.parent) as scratch:
        fresh = Path(scratch) / root.name
        for path, body in files.items():
            target = fresh / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(body)
        if root.exists():
            shutil.rmtree(root)
        fresh.replace(root)
    return files


def plain(path: str, body: bytes) -> bytes:
    """What a file says: compressed bytes differ between zlib builds, their contents do not."""
    return gzip.decompress(body) if path.endswith(".gz") else body


def content(path: Path) -> bytes:
    """The same for a file on disk."""
    return plain(path.name, path.read_bytes())


def differences(root: Path) -> list[str]:
    """Relative paths that are missing, extra or different under ``root``."""
    files = dataset()
    present = {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}
    changed = {path for path in present & files.keys() if content(root / path) != plain(path, files[path])}
    return sorted((present ^ files.keys()) | changed)


def main() -> int:
    """Write ``data/`` (or only compare with ``--check``)."""
    parser = argparse.ArgumentParser(description="write or check the starter dataset")
    parser.add_argument("--root", type=Path, default=HERE / "data")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    if options.check:
        stale = differences(options.root)
        for path in stale:
            print(f"differs: {path}")
        return 1 if stale else 0
    files = write(options.root)
    print(f"{options.root}: {len(files)} files, {sum(map(len, files.values())) / 1e6:.2f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
