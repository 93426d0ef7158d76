"""A file of the CPU corpus on a CUDA device: the same text, with what it allocates and what it burns moved there.

In: Python source. Out: Python source. Three changes, all on the syntax tree: a factory call without a device gets one;
a round trip through numpy leaves and enters the device; a loop that burns host time until a deadline becomes a kernel
that burns device time for as long (a device's clock does not count what the host does before it launches).
"""

import ast

FACTORIES = {"arange", "empty", "full", "ones", "rand", "randint", "randn", "tensor", "zeros"}
CYCLES_PER_S = 2.1e9  # above the highest clock of the devices that this runs on: at least the time that was meant
_DEVICE = "cuda"


def ported(source: str) -> str:
    """The source for the device."""
    tree = _Porting().visit(ast.parse(source))
    return ast.unparse(ast.fix_missing_locations(tree)) + "\n"


class _Porting(ast.NodeTransformer):
    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        function = node.func
        if not isinstance(function, ast.Attribute):
            return node
        if _is_torch(function.value):
            return self._of_torch(node, function.attr)
        if function.attr == "numpy" and not node.args:
            function.value = _method(function.value, "cpu")
        return node

    def visit_While(self, node: ast.While) -> ast.AST:
        """``while clock() < end: pass`` burns; the kernel gets what is left until the end."""
        test = node.test
        if not (len(node.body) == 1 and isinstance(node.body[0], ast.Pass) and isinstance(test, ast.Compare)):
            self.generic_visit(node)
            return node
        left = ast.BinOp(left=test.comparators[0], op=ast.Sub(), right=test.left)
        burn = ast.parse(f"__import__('torch').cuda._sleep(max(1, int(LEFT * {CYCLES_PER_S})))").body[0]
        return _Filling(left).visit(burn)

    def _of_torch(self, node: ast.Call, name: str) -> ast.AST:
        if name in FACTORIES or name == "Generator":
            if all(keyword.arg != "device" for keyword in node.keywords):
                node.keywords.append(ast.keyword("device", ast.Constant(_DEVICE)))
        elif name == "from_numpy":
            return _method(node, "to", ast.Constant(_DEVICE))
        return node


class _Filling(ast.NodeTransformer):
    def __init__(self, value: ast.expr) -> None:
        self.value = value

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self.value if node.id == "LEFT" else node


def _is_torch(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "torch"


def _method(value: ast.expr, name: str, *args: ast.expr) -> ast.Call:
    return ast.Call(func=ast.Attribute(value=value, attr=name, ctx=ast.Load()), args=list(args), keywords=[])
