"""The changes to try: comparisons, constants, guards and early exits, one at a time. Most are operators of cosmic-ray.

A change of a threshold moves it by one or turns the comparison; a change of a guard removes, inverts or weakens it.
"""

from __future__ import annotations

import ast
import difflib
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import parso
from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.operators import boolean_replacer, break_continue, comparison_operator_replacement, number_replacer
from cosmic_ray.operators.operator import Operator
from cosmic_ray.operators.unary_operator_replacement import operators as list_unary_operators

Position = tuple[int, int]
# Each comparison at its boundary, and inverted. cosmic-ray also knows replacements that hardly differ, as == by `is`.
_COMPARISONS = ("Lt_LtE", "Lt_GtE", "Gt_GtE", "Gt_LtE", "LtE_Lt", "LtE_Gt", "GtE_Gt", "GtE_Lt")
_COMPARISONS += ("Eq_NotEq", "NotEq_Eq", "Is_IsNot", "IsNot_Is")


class FixCondition(Operator):
    """Take the condition of an `if`, `elif`, `x if y else z` or a comprehension as always true, or never."""

    def mutation_positions(self, node: parso.tree.NodeOrLeaf) -> Iterator[tuple[Position, Position]]:
        for condition in self._list_conditions(node):
            for _ in ("True", "False"):
                yield condition.start_pos, condition.end_pos

    def mutate(self, node: parso.tree.NodeOrLeaf, index: int) -> parso.tree.NodeOrLeaf:
        condition = self._list_conditions(node)[index // 2]
        value = parso.parse(" " + ("True", "False")[index % 2])
        node.children[node.children.index(condition)] = value
        return node

    @staticmethod
    def _list_conditions(node: parso.tree.NodeOrLeaf) -> list[parso.tree.NodeOrLeaf]:
        if node.type not in ("if_stmt", "comp_if", "test", "ternary"):
            return []
        pairs = zip(node.children, node.children[1:], strict=False)
        return [after for before, after in pairs if before.type == "keyword" and before.value in ("if", "elif")]

    @classmethod
    def examples(cls) -> tuple[()]:
        return ()


class ReplaceMembership(Operator):
    """Turn `in` into `not in`, and back."""

    def mutation_positions(self, node: parso.tree.NodeOrLeaf) -> Iterator[tuple[Position, Position]]:
        yield from ((node.children[at].start_pos, node.children[at].end_pos) for at in self._list_operators(node))

    def mutate(self, node: parso.tree.NodeOrLeaf, index: int) -> parso.tree.NodeOrLeaf:
        at = self._list_operators(node)[index]
        inverted = "in" if node.children[at].get_code().strip() != "in" else "not in"
        node.children[at] = parso.parse(f" {inverted}")
        return node

    @staticmethod
    def _list_operators(node: parso.tree.NodeOrLeaf) -> list[int]:
        if node.type != "comparison":
            return []
        operators = range(1, len(node.children), 2)
        return [at for at in operators if node.children[at].get_code().split() in (["in"], ["not", "in"])]

    @classmethod
    def examples(cls) -> tuple[()]:
        return ()


class DeleteExit(Operator):
    """Put `pass` in the place of `return`, `continue` and `break`."""

    def mutation_positions(self, node: parso.tree.NodeOrLeaf) -> Iterator[tuple[Position, Position]]:
        if node.type == "simple_stmt" and self._is_exit(node.children[0]):
            yield node.children[0].start_pos, node.children[0].end_pos

    def mutate(self, node: parso.tree.NodeOrLeaf, index: int) -> parso.tree.NodeOrLeaf:
        statement = node.children[0]
        node.children[0] = parso.parse(statement.get_first_leaf().prefix + "pass")
        return node

    @staticmethod
    def _is_exit(statement: parso.tree.NodeOrLeaf) -> bool:
        return statement.type == "return_stmt" or statement.get_code().strip() in ("return", "continue", "break")

    @classmethod
    def examples(cls) -> tuple[()]:
        return ()


OPERATORS: tuple[Operator, ...] = (
    *(getattr(comparison_operator_replacement, f"ReplaceComparisonOperator_{name}")() for name in _COMPARISONS),
    number_replacer.NumberReplacer(),
    boolean_replacer.ReplaceTrueWithFalse(),
    boolean_replacer.ReplaceFalseWithTrue(),
    boolean_replacer.ReplaceAndWithOr(),
    boolean_replacer.ReplaceOrWithAnd(),
    break_continue.ReplaceBreakWithContinue(),
    break_continue.ReplaceContinueWithBreak(),
    *(kind() for kind in list_unary_operators() if kind.__name__.endswith(("Delete_Not", "Delete_USub"))),
    FixCondition(),
    ReplaceMembership(),
    DeleteExit(),
)


@dataclass(frozen=True)
class Candidate:
    """A place and an operator: `occurrence` counts the places of this operator in the file."""

    path: str
    start: Position
    operator: Operator
    occurrence: int


@dataclass(frozen=True)
class Mutant:
    """One changed file. `path` is relative to the checkout; `before` and `after` are the lines that differ.

    `scope` is the qualified name of the function or class around the change, empty for the module.
    """

    path: str
    line: int
    scope: str
    before: str
    after: str
    source: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.before}  →  {self.after}"

    @property
    def change(self) -> tuple[str, str, str]:
        """What identifies the change when lines move: path::scope, line before, line after."""
        return f"{self.path}::{self.scope}", self.before, self.after


def list_candidates(root: Path, path: Path) -> list[Candidate]:
    """List all changes of a file that are not in annotations, decorators or blocks for type checkers."""
    source = path.read_text(encoding="utf-8")
    nodes = list(ast_nodes(get_ast(source)))
    ignored = list_ignored_ranges(ast.parse(source))
    name = path.relative_to(root).as_posix()
    candidates = []
    for operator in OPERATORS:
        starts = [start for node in nodes for start, _ in operator.mutation_positions(node)]
        candidates += [
            Candidate(name, start, operator, occurrence)
            for occurrence, start in enumerate(starts)
            if not any(first <= start < last for first, last in ignored)
        ]
    return candidates


def list_ignored_ranges(tree: ast.AST) -> list[tuple[Position, Position]]:
    """List where a change does nothing when the program runs: (first, last) as (line, column)."""
    nodes: list[ast.AST] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            nodes.append(node)
        nodes += getattr(node, "decorator_list", ())
        nodes += [item for item in (getattr(node, "annotation", None), getattr(node, "returns", None)) if item]
    return [((node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset)) for node in nodes]  # type: ignore[attr-defined]


def name_scope(tree: ast.AST, line: int) -> str:
    """Return the qualified name of the innermost function or class around a line."""
    scopes = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        and node.lineno <= line <= (node.end_lineno or 0)
    ]
    return ".".join(node.name for node in sorted(scopes, key=lambda node: node.lineno))


def make_mutant(root: Path, candidate: Candidate) -> Mutant | None:
    """Apply the change. Return None if the result is no Python or means the same."""
    source = (root / candidate.path).read_text(encoding="utf-8")
    mutated = mutate_code(source, candidate.operator, candidate.occurrence)
    tree = ast.parse(source)
    try:
        if mutated is None or ast.dump(ast.parse(mutated)) == ast.dump(tree):
            return None
    except SyntaxError:
        return None
    difference = list(difflib.ndiff(source.splitlines(), mutated.splitlines()))
    before, after = (
        " ".join(line[2:].strip() for line in difference if line.startswith(mark)) for mark in ("- ", "+ ")
    )
    line = candidate.start[0]
    return Mutant(candidate.path, line, name_scope(tree, line), before, after, mutated)


def sample_mutants(root: Path, code: Path, number: int, seed: int) -> list[Mutant]:
    """Draw `number` mutants of the modules below `code`, each place once before any place twice. Ordered by place."""
    candidates = [item for path in sorted(code.rglob("*.py")) for item in list_candidates(root, path)]
    random.Random(f"{seed} {code.name}").shuffle(candidates)
    places: Counter[tuple[str, Position]] = Counter()
    turns: list[int] = []
    for candidate in candidates:
        turns.append(places[candidate.path, candidate.start])
        places[candidate.path, candidate.start] += 1
    drawn: dict[tuple[str, int, str, str], Mutant] = {}
    for _, candidate in sorted(zip(turns, candidates, strict=True), key=lambda pair: pair[0]):
        if len(drawn) == number:
            break
        mutant = make_mutant(root, candidate)
        if mutant is not None:
            drawn.setdefault((mutant.path, mutant.line, mutant.before, mutant.after), mutant)
    return sorted(drawn.values(), key=lambda mutant: (mutant.path, mutant.line, mutant.after))
