"""Find the raise statements and checks in the sources of installed packages, and write what they would print.

Sources are parsed, never imported or copied: names in a message are replaced by plausible values.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PACKAGES = (
    "torch/distributed",
    "torch/utils/data",
    "accelerate",
    "deepspeed",
    "lightning",
    "transformers",
    "ray",
)
# They end a loop or the program on purpose.
CONTROL_FLOW = frozenset(("StopIteration", "StopAsyncIteration", "GeneratorExit", "SystemExit", "KeyboardInterrupt"))
SHORTEST = 8  # letters of a message that says something
# What stands in a message for an expression, by the words of the expression: the first that fits decides.
VALUES = (
    (r"dtype", "torch.float32"),
    (r"shape", "torch.Size([4, 8])"),
    (r"type|class|cls", "<class 'list'>"),
    (r"device", "cuda:0"),
    (r"path|file|dir|folder", "/data/run/weights.bin"),
    (r"url|address|host|endpoint", "node-2:29500"),
    (r"version", "2.1.0"),
    (r"rank|size|num|count|len|idx|index|dim|step|total|max|min|id$|port|pid|timeout|seconds", "8"),
    (r"join|list|keys|names|args", "alpha, beta"),
    (r"^e$|exc|err", "the inner reason"),
)
_PERCENT = re.compile(r"%(?:\(\w+\))?[-+ #0]*\d*(?:\.\d+)?[a-zA-Z]")
_BRACES = re.compile(r"\{[^{}]*\}")


@dataclass(frozen=True, slots=True)
class RaiseStatement:
    """A statement that raises: `file` relative to the packages, the qualified `type`, and the filled-in message."""

    file: str
    line: int
    function: str
    code: str
    type: str
    message: str

    @property
    def lines(self) -> list[str]:
        """What Python prints of the exception itself."""
        return f"{self.type}: {self.message}".splitlines()

    @property
    def headline(self) -> str:
        """The line that says what happened: the first, or the next where the message begins on its own line."""
        first, *rest = self.lines
        following = [line.strip() for line in rest if line.strip()]
        return following[0] if first.strip() == f"{self.type}:" and following else first.strip()

    def traceback(self) -> list[str]:
        """The traceback of a training script in which this statement was reached."""
        return [
            "Traceback (most recent call last):",
            '  File "/workspace/train.py", line 112, in <module>',
            "    main(parse_args())",
            '  File "/workspace/train.py", line 87, in main',
            "    trainer.run(batches)",
            f'  File "/opt/conda/lib/python3.11/site-packages/{self.file}", line {self.line}, in {self.function}',
            f"    {self.code}",
            *self.lines,
        ]


def find_statements(site: Path, packages: tuple[str, ...] = PACKAGES) -> list[RaiseStatement]:
    """Return the statements of the packages that lie in this directory, each message once, in the order of files."""
    by_message: dict[tuple[str, str], RaiseStatement] = {}
    for package in packages:
        for path in sorted((site / package).rglob("*.py")):
            try:
                text = path.read_text("utf-8")
                tree = ast.parse(text)
            except (SyntaxError, UnicodeDecodeError):
                continue  # a template, or a file for another version of Python
            for statement in _of_file(tree, path.relative_to(site).as_posix(), text.splitlines()):
                by_message.setdefault((statement.type, statement.message), statement)
    return list(by_message.values())


def _of_file(tree: ast.Module, file: str, lines: list[str]) -> Iterator[RaiseStatement]:
    for function, node in _with_functions(tree, "<module>"):
        name, message = _raised(node)
        if message is None or sum(map(str.isalpha, message)) < SHORTEST:
            continue
        kind = name if hasattr(builtins, name) else f"{file.removesuffix('.py').replace('/', '.')}.{name}"
        yield RaiseStatement(file, node.lineno, function, lines[node.lineno - 1].strip(), kind, message)


def _with_functions(node: ast.AST, function: str) -> Iterator[tuple[str, ast.stmt]]:
    """Yield every statement that may raise, with the name of the function around it."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.Raise, ast.Assert)):
            yield function, child
        inner = child.name if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)) else function
        yield from _with_functions(child, inner)


def _raised(node: ast.stmt) -> tuple[str, str | None]:
    """Return the name of the exception and its message; None where the message is not written there."""
    if isinstance(node, ast.Assert):
        return "AssertionError", _render(node.msg) if node.msg is not None else None
    call = node.exc if isinstance(node, ast.Raise) else None
    if not isinstance(call, ast.Call) or len(call.args) != 1 or call.keywords:
        return "", None
    name = ast.unparse(call.func).rpartition(".")[2]
    if not name[:1].isupper() or name in CONTROL_FLOW:
        return "", None
    return name, _render(call.args[0])


def _render(node: ast.expr) -> str | None:
    """Return the text of a message with its holes filled, None where it is no text."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.JoinedStr):
        return "".join(_render(part) or "" for part in node.values)
    if isinstance(node, ast.FormattedValue):
        return _value_of(node.value)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = _render(node.left), _render(node.right)
        return (
            None
            if left is None and right is None
            else (left or _value_of(node.left)) + (right or _value_of(node.right))
        )
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
        left = _render(node.left)
        return None if left is None else _PERCENT.sub("8", left)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "format":
        left = _render(node.func.value)
        return None if left is None else _BRACES.sub("alpha", left)
    return None


def _value_of(node: ast.expr) -> str:
    if isinstance(node, ast.Constant):
        return str(node.value)
    text = ast.unparse(node).lower()
    return next((value for expression, value in VALUES if re.search(expression, text)), "alpha")
