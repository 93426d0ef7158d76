"""The same kernel under other names: what a verdict may not depend on (identifiers, comments, layout, author)."""

import ast
import re

from schemas.solution import Solution, SourceFile

_CPP_TYPES = "float|double|int|int64_t|uint16_t|uint32_t|void|TensorView|struct|Panel"
_CPP_DECLARED = re.compile(rf"\b(?:{_CPP_TYPES})\b[\s*&]*\b([A-Za-z_]\w*)")
_CPP_WORD = re.compile(r"\b[A-Za-z_]\w*\b")
_CPP_KEPT = {"const", "volatile", "size", "data_ptr", "numel"}


def renamed(solution: Solution) -> Solution:
    """Another solution that behaves the same."""
    language = solution.spec.language
    suffix = ".cc" if language == "cpp" else ".py"
    (source,) = solution.sources
    content, entry = (rename_cpp if language == "cpp" else rename_python)(source.content, solution.entry_symbol)
    spec = solution.spec.model_copy(update={"entry_point": f"other{suffix}::{entry}"})
    return solution.model_copy(
        update={
            "name": "candidate-17",
            "author": "somebody",
            "description": None,
            "spec": spec,
            "sources": (SourceFile(path=f"other{suffix}", content=content),),
        }
    )


def rename_python(source: str, entry: str) -> tuple[str, str]:
    """Reprinted from its syntax tree: no comments, no docstrings, every own name replaced."""
    tree = ast.parse(source)
    names = _python_names(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            node.id = names.get(node.id, node.id)
        elif isinstance(node, ast.arg):
            node.arg = names.get(node.arg, node.arg)
        elif isinstance(node, ast.FunctionDef):
            node.name = names.get(node.name, node.name)
            node.body = [child for child in node.body if not _is_text(child)] or [ast.Pass()]
    return ast.unparse(tree), names[entry]


def _python_names(tree: ast.Module) -> dict[str, str]:
    own: dict[str, str] = {}
    for node in ast.walk(tree):
        found = None
        if isinstance(node, ast.FunctionDef):
            found = node.name
        elif isinstance(node, ast.arg):
            found = node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found = node.id
        if found is not None:
            own.setdefault(found, f"value_{len(own)}")
    return own


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def rename_cpp(source: str, entry: str) -> tuple[str, str]:
    """No comments, tabs for spaces, a blank line after each line, every declared name replaced."""
    bare = re.sub(r"//[^\n]*", "", source)
    declared = [name for name in _CPP_DECLARED.findall(bare) if name not in _CPP_KEPT]
    names = {name: f"item_{number}" for number, name in enumerate(dict.fromkeys(declared))}
    lines = []
    for line in bare.splitlines():
        code = line if line.startswith("#") else _CPP_WORD.sub(lambda hit: names.get(hit[0], hit[0]), line)
        lines.append("\t\t" + code.strip() if code.startswith(" ") else code)
    return "// rewritten\n" + "\n\n".join(lines) + "\n", names[entry]
