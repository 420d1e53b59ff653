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
# Types and text are not changed: no test has to notice a word.
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
        """Return the change in words that stay the same when lines move."""
        return f"{self.path}: {self.kind}: {self.before} → {self.after}"

    def diff(self, original: str) -> str:
        """Return the changed lines as a diff."""
        lines = difflib.unified_diff(
            original.splitlines(), self.source.splitlines(), self.path, self.path, "", "", 0, ""
        )
        return "\n".join(lines)


def list_mutants(path: str, source: str) -> list[Mutant]:
    """Return every mutant of a file, in the order of its lines."""
    mutants = []
    for node in walk(ast.parse(source)):
        for kind, other in list_changes(node):
            before, after = ast.unparse(node), other if isinstance(other, str) else ast.unparse(other)
            changed = splice(source, node, after)
            if before != after and compiles(changed):
                mutants.append(Mutant(path, node.lineno, kind, *find_first_difference(source, changed), changed))
    return mutants


def walk(node: ast.AST) -> Iterator[ast.expr | ast.stmt]:
    """Yield expressions and statements that do something: not types, f-strings or blocks for type checkers."""
    if isinstance(node, ast.JoinedStr) or (isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"):
        return
    if isinstance(node, ast.Raise | ast.Import | ast.ImportFrom):
        yield from [node] if isinstance(node, ast.Raise) else []
        return  # tests compare messages of errors word for word
    if isinstance(node, ast.expr | ast.stmt):
        yield node
    for name, value in ast.iter_fields(node):
        if name in SKIPPED or (isinstance(node, ast.Subscript) and _is_type(node)):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from walk(child)


def _is_type(node: ast.Subscript) -> bool:
    """Return whether this is a type such as Float[Tensor, "query key"]."""
    return isinstance(node.value, ast.Name) and node.value.id[:1].isupper()


def list_changes(node: ast.AST) -> Iterator[tuple[str, ast.AST | str]]:
    """Yield the changes of a node: the kind, and the new node or text."""
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in OPERATORS:
        yield "comparison", _replace_fields(node, ops=[OPERATORS[type(node.ops[0])]()])
    elif isinstance(node, ast.BinOp | ast.BoolOp | ast.AugAssign) and type(node.op) in OPERATORS:
        yield "operator", _replace_fields(node, op=OPERATORS[type(node.op)]())
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.USub | ast.Invert):
        yield "sign", node.operand
    elif isinstance(node, ast.Constant):
        yield from _change_constant(node)
    elif isinstance(node, ast.IfExp):
        yield "branches", _replace_fields(node, body=node.orelse, orelse=node.body)
    elif isinstance(node, ast.Call) and len(node.args) > 1 and _has_ordered_arguments(node):
        yield "arguments", _replace_fields(node, args=[node.args[1], node.args[0], *node.args[2:]])
    if isinstance(node, ast.If | ast.While):
        yield "condition", _negate_condition(node)
    if isinstance(node, ast.Raise | ast.AugAssign) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)):
        yield "dropped", "pass"


def _has_ordered_arguments(node: ast.Call) -> bool:
    """Return whether the order of the first two arguments should matter."""
    return ast.unparse(node.func) not in COMMUTATIVE and not any(isinstance(a, ast.Starred) for a in node.args)


def _replace_fields(node: ast.AST, **fields: object) -> ast.AST:
    other = copy.copy(node)
    for name, value in fields.items():
        setattr(other, name, value)
    return other


def _change_constant(node: ast.Constant) -> Iterator[tuple[str, ast.AST]]:
    if isinstance(node.value, bool):
        yield "constant", ast.Constant(not node.value)
    elif isinstance(node.value, int):
        yield "constant", ast.Constant(node.value + 1)
    elif isinstance(node.value, float):
        yield "constant", ast.Constant(node.value * 2 or 1.0)


def _negate_condition(node: ast.If | ast.While) -> ast.AST:
    """Return the statement with its condition negated."""
    test = node.test.operand if isinstance(node.test, ast.UnaryOp) else ast.UnaryOp(ast.Not(), node.test)
    return _replace_fields(node, test=test)


def splice(source: str, node: ast.expr | ast.stmt, text: str) -> str:
    """Return the source with the text of a node replaced; offsets of ast count bytes."""
    lines = source.encode().split(b"\n")
    start, end = node.lineno - 1, (node.end_lineno or node.lineno) - 1
    head, tail = lines[start][: node.col_offset], lines[end][node.end_col_offset :]
    indent = b"\n" + b" " * node.col_offset if isinstance(node, ast.stmt) else b" "
    body = indent.join(text.encode().split(b"\n"))
    return b"\n".join([*lines[:start], head + body + tail, *lines[end + 1 :]]).decode()


def compiles(source: str) -> bool:
    """Return whether the source still is Python."""
    try:
        compile(source, "mutant", "exec")
    except SyntaxError:
        return False
    return True


def find_first_difference(before: str, after: str) -> tuple[str, str]:
    """Return the first line that differs, in both versions."""
    pairs = zip(before.splitlines(), after.splitlines(), strict=False)
    first, second = next(pair for pair in pairs if pair[0] != pair[1])
    return first.strip(), second.strip()
