"""Small changes to a source file: operators, comparisons, constants, conditions, arguments, dropped statements."""

import ast
import copy
import difflib
from collections.abc import Iterator
from typing import NamedTuple

OPERATORS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.And: ast.Or, ast.Or: ast.And,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult, ast.Pow: ast.Mult, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
}  # fmt: skip
# Swapping their arguments changes nothing, or nothing but an error that no test can miss.
COMMUTATIVE = ("max", "min", "isinstance", "torch.maximum", "torch.minimum", "torch.broadcast_shapes", "torch.equal")
# Neither types nor text are changed: no test is to notice a word.
SKIPPED = ("annotation", "returns", "decorator_list", "bases", "keywords_of_class", "type_params")


class Mutant(NamedTuple):
    """A file with one change."""

    path: str
    line: int
    kind: str
    before: str
    after: str
    source: str

    @property
    def name(self) -> str:
        """The change in words that stay the same when lines move."""
        return f"{self.path}: {self.kind}: {self.before} → {self.after}"

    def diff(self, original: str) -> str:
        """The changed lines."""
        lines = difflib.unified_diff(
            original.splitlines(), self.source.splitlines(), self.path, self.path, "", "", 0, ""
        )
        return "\n".join(lines)


def mutants_of(path: str, source: str) -> list[Mutant]:
    """Every mutant of a file, in the order of its lines."""
    found = []
    for node in walk(ast.parse(source)):
        for kind, other in changes(node):
            before, after = ast.unparse(node), other if isinstance(other, str) else ast.unparse(other)
            changed = splice(source, node, after)
            if before != after and compiles(changed):
                found.append(Mutant(path, node.lineno, kind, *first_difference(source, changed), changed))
    return found


def walk(node: ast.AST) -> Iterator[ast.expr | ast.stmt]:
    """Expressions and statements that do something: not types, not f-strings, not what only a type checker reads."""
    if isinstance(node, ast.JoinedStr) or (isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"):
        return
    if isinstance(node, ast.Raise | ast.Import | ast.ImportFrom):
        yield from [node] if isinstance(node, ast.Raise) else []
        return  # what an error says is told by tests word for word, number by number
    if isinstance(node, ast.expr | ast.stmt):
        yield node
    for name, value in ast.iter_fields(node):
        if name in SKIPPED or (isinstance(node, ast.Subscript) and _is_type(node)):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from walk(child)


def _is_type(node: ast.Subscript) -> bool:
    """Whether this is a type such as Float[Tensor, "query key"]."""
    return isinstance(node.value, ast.Name) and node.value.id[:1].isupper()


def changes(node: ast.AST) -> Iterator[tuple[str, ast.AST | str]]:
    """What may become of a node."""
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in OPERATORS:
        yield "comparison", _changed(node, ops=[OPERATORS[type(node.ops[0])]()])
    elif isinstance(node, ast.BinOp | ast.BoolOp | ast.AugAssign) and type(node.op) in OPERATORS:
        yield "operator", _changed(node, op=OPERATORS[type(node.op)]())
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.USub | ast.Invert):
        yield "sign", node.operand
    elif isinstance(node, ast.Constant):
        yield from _constants(node)
    elif isinstance(node, ast.IfExp):
        yield "branches", _changed(node, body=node.orelse, orelse=node.body)
    elif isinstance(node, ast.Call) and len(node.args) > 1 and _ordered(node):
        yield "arguments", _changed(node, args=[node.args[1], node.args[0], *node.args[2:]])
    if isinstance(node, ast.If | ast.While):
        yield "condition", _header(node)
    if isinstance(node, ast.Raise | ast.AugAssign) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)):
        yield "dropped", "pass"


def _ordered(node: ast.Call) -> bool:
    """Whether the order of the first two arguments should matter."""
    return ast.unparse(node.func) not in COMMUTATIVE and not any(isinstance(a, ast.Starred) for a in node.args)


def _changed(node: ast.AST, **fields: object) -> ast.AST:
    other = copy.copy(node)
    for name, value in fields.items():
        setattr(other, name, value)
    return other


def _constants(node: ast.Constant) -> Iterator[tuple[str, ast.AST]]:
    if isinstance(node.value, bool):
        yield "constant", ast.Constant(not node.value)
    elif isinstance(node.value, int):
        yield "constant", ast.Constant(node.value + 1)
    elif isinstance(node.value, float):
        yield "constant", ast.Constant(node.value * 2 or 1.0)


def _header(node: ast.If | ast.While) -> ast.AST:
    """The statement with its condition the other way round."""
    test = node.test.operand if isinstance(node.test, ast.UnaryOp) else ast.UnaryOp(ast.Not(), node.test)
    return _changed(node, test=test)


def splice(source: str, node: ast.expr | ast.stmt, text: str) -> str:
    """The source with the text of a node replaced; offsets of ast count bytes."""
    lines = source.encode().split(b"\n")
    start, end = node.lineno - 1, (node.end_lineno or node.lineno) - 1
    head, tail = lines[start][: node.col_offset], lines[end][node.end_col_offset :]
    indent = b"\n" + b" " * node.col_offset if isinstance(node, ast.stmt) else b" "
    body = indent.join(text.encode().split(b"\n"))
    return b"\n".join([*lines[:start], head + body + tail, *lines[end + 1 :]]).decode()


def compiles(source: str) -> bool:
    """Whether this is Python still."""
    try:
        compile(source, "mutant", "exec")
    except SyntaxError:
        return False
    return True


def first_difference(before: str, after: str) -> tuple[str, str]:
    """The first line that differs, in both."""
    pairs = zip(before.splitlines(), after.splitlines(), strict=False)
    first, second = next(pair for pair in pairs if pair[0] != pair[1])
    return first.strip(), second.strip()
