"""A dataset small enough to run end to end in seconds: one definition, five shape families, four solutions."""

import json
from pathlib import Path

NAME = "double_n"
SIZES = {600: 40, 3000: 30, 7000: 20, 15000: 10, 50000: 5, 90000: 3}
DEFINITION = {
    "name": NAME,
    "op_type": "elementwise",
    "axes": {"n": {"type": "var"}},
    "inputs": {"x": {"shape": ["n"], "dtype": "float32"}},
    "outputs": {"y": {"shape": ["n"], "dtype": "float32"}},
    "reference": "def run(x):\n    return x * 2\n",
}
# The incumbent works on purpose: what the fast one wins by must be far above any noise of a loaded machine.
SOLUTIONS = {
    "laborious": ("baseline", "y = x\n    for _ in range(40):\n        y = x + x\n    return y"),
    "direct": ("someone", "return x * 2"),
    "twin": ("someone", "y = x\n    for _ in range(41):\n        y = x + x\n    return y"),
    "wrong": ("someone", "return x * 2.001"),
}


def write(root: Path, solutions: tuple[str, ...] = tuple(SOLUTIONS)) -> Path:
    """Write the dataset under ``root``; call logs hold the bad lines of two kinds too."""
    _json(root / f"definitions/elementwise/{NAME}.json", DEFINITION)
    for name in solutions:
        author, body = SOLUTIONS[name]
        _json(root / f"solutions/{author}/elementwise/{NAME}/{name}.json", _solution(name, author, body))
    lines = [json.dumps({"definition": NAME, "axes": {"n": n}}) for n, count in SIZES.items() for _ in range(count)]
    lines += ['{"definition": "double_n", "axes": {"n": -1}}', '{"definition": "double_n", "ax']
    log = root / f"calls/elementwise/{NAME}.jsonl"
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_text("\n".join(lines) + "\n")
    return root


def _solution(name: str, author: str, body: str) -> dict[str, object]:
    return {
        "name": name,
        "definition": NAME,
        "author": author,
        "spec": {
            "language": "python",
            "target_hardware": ["cpu"],
            "entry_point": "main.py::run",
            "destination_passing_style": False,
        },
        "sources": [{"path": "main.py", "content": f"def run(x):\n    {body}\n"}],
    }


def _json(path: Path, body: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(body, indent=2))
