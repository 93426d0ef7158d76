"""The same file under other names, comments and layout. What a source says about itself is no ground for a verdict.

Python is reprinted from its syntax tree with every own name replaced; C++ loses its comments and its line structure.
Names that others look up (attributes, keywords of foreign functions, exported symbols' prefixes) stay.
"""

import ast
import re

_CPP_NAME = re.compile(r"(?<![\w.>:\"])([A-Za-z_]\w*)\b(?!\s*::)")
_CPP_DECLARED = re.compile(
    r"\b(?:void|bool|char|int|int\d+_t|uint\d+_t|uintptr_t|size_t|float|double|auto|DLTensor|Clock|Order|Board|mutex"
    r"|condition_variable|vector<double>|timespec|TVMFFIAny|sched_param)\b[\s*&]*\b([A-Za-z_]\w*)"
)
_CPP_KEPT = {"const", "volatile", "unsigned", "signed"}


def disguised_cpp(source: str, entry: str) -> tuple[str, str]:
    """No comments, two statements a line, every local and static name replaced, the export under another symbol."""
    lines = [re.sub(r"//.*", "", line).strip() for line in source.splitlines()]
    code = [line for line in lines if line and not line.startswith("#")]
    members = set(re.findall(r"(?:\.|->)\s*([A-Za-z_]\w*)", source))
    # What is a member anywhere, an initialiser's field included, keeps its name everywhere.
    own = [n for n in _CPP_DECLARED.findall("\n".join(code)) if n not in members | _CPP_KEPT and "__" not in n]
    names = {name: f"item_{number}" for number, name in enumerate(dict.fromkeys(own))}
    text = " ".join(code).replace(f"__tvm_ffi_{entry}", "__tvm_ffi_other")
    text = _CPP_NAME.sub(lambda hit: names.get(hit[1], hit[1]), text)
    includes = [line for line in lines if line.startswith("#")]
    return "\n".join(includes) + "\n\n" + text.replace("; ", ";\n\t\t") + "\n", "other"


def disguised_python(source: str, entry: str) -> tuple[str, str]:
    """Every variable, parameter, function and class of the file's own gets another name; docstrings are gone."""
    tree = ast.parse(source)
    names = _own_names(tree)
    renamed = _Renaming(names).visit(tree)
    return "# tidy\n\n" + ast.unparse(ast.fix_missing_locations(renamed)).replace("\n\n", "\n") + "\n", names[entry]


def _own_names(tree: ast.Module) -> dict[str, str]:
    found: list[str] = []
    methods = {id(item) for node in ast.walk(tree) if isinstance(node, ast.ClassDef) for item in node.body}
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found += [] if id(node) in methods else [node.name]
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and id(node) not in methods:
            found.append(node.id)
        elif isinstance(node, ast.arg):
            found.append(node.arg)
        elif isinstance(node, ast.ExceptHandler) and node.name:
            found.append(node.name)
    members = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    called = {node.arg for node in ast.walk(tree) if isinstance(node, ast.keyword) and node.arg}
    kept = (members | called) - _functions(tree)
    return {name: f"value_{number}" for number, name in enumerate(dict.fromkeys(found)) if name not in kept}


def _functions(tree: ast.Module) -> set[str]:
    """Top-level functions and what is assigned there under the entry's name: never reached as attributes."""
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)} | {"run"}


class _Renaming(ast.NodeTransformer):
    def __init__(self, names: dict[str, str]) -> None:
        self.names = names

    def visit_Name(self, node: ast.Name) -> ast.Name:
        node.id = self.names.get(node.id, node.id)
        return node

    def visit_arg(self, node: ast.arg) -> ast.arg:
        node.arg = self.names.get(node.arg, node.arg)
        self.generic_visit(node)
        return node

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> ast.ExceptHandler:
        node.name = self.names.get(node.name, node.name) if node.name else None
        self.generic_visit(node)
        return node

    def visit_Global(self, node: ast.Global) -> ast.Global:
        node.names = [self.names.get(name, name) for name in node.names]
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        return self._bare(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.ClassDef:
        return self._bare(node)

    def visit_Module(self, node: ast.Module) -> ast.Module:
        node.body = _without_text(node.body)
        self.generic_visit(node)
        return node

    def _bare(self, node):  # type: ignore[no-untyped-def]
        node.name = self.names.get(node.name, node.name)
        node.body = _without_text(node.body)
        self.generic_visit(node)
        return node


def _without_text(body: list[ast.stmt]) -> list[ast.stmt]:
    texts = [item for item in body if isinstance(item, ast.Expr) and isinstance(item.value, ast.Constant)]
    return [item for item in body if item not in texts or item.value.value is Ellipsis] or [ast.Pass()]  # type: ignore[attr-defined]
