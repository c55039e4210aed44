"""Find out to which table each page belongs: down from the roots, and by the look of their rows below damaged pages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from triage.store.salvage.btree import (
    INNER_INDEX,
    INNER_TABLE,
    LEAF_INDEX,
    LEAF_TABLE,
    BtreePage,
    Cell,
    DamagedPageError,
    decode_record,
    parse_page,
    read_payload,
)
from triage.store.salvage.page_file import PageFile
from triage.store.salvage.shapes import Column, Shape

SCHEMA = Shape(
    "sqlite_master",
    "sqlite_master",
    (
        Column("type", "TEXT", False),
        Column("name", "TEXT", False),
        Column("tbl_name", "TEXT", False),
        Column("rootpage", "INTEGER", True),
        Column("sql", "TEXT", True),
    ),
    True,
)
Key = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class DamagedPage:
    """A page that cannot be used. The keys of its rows are above `low` and at most `high`; None is no bound.

    `number` is 0 for a root whose page is not known. `is_leaf` is False if other pages may have been below it.
    """

    number: int
    low: Key | None = None
    high: Key | None = None
    is_leaf: bool = False


@dataclass(slots=True)
class Tree:
    """The sound pages of one table or index, in order, and its damaged ones."""

    shape: Shape
    pages: list[int] = field(default_factory=list)
    damaged: list[DamagedPage] = field(default_factory=list)

    def may_miss_pages(self) -> bool:
        """Whether sound pages may be below a damaged one."""
        return any(not page.is_leaf for page in self.damaged)


class PageWalk:
    """Which page belongs to which table or index."""

    def __init__(self, file: PageFile, shapes: Mapping[str, Shape]) -> None:
        self._file = file
        self._owned: set[int] = set()
        self.free = file.free_pages()
        self._owned |= self.free or set()
        self.ambiguous: list[tuple[int, tuple[str, ...]]] = []
        roots = self._find_roots(shapes)
        self.trees = {name: self._walk(shape, roots.get(name, 0)) for name, shape in shapes.items()}
        self._assign_lost_pages()

    def rows_of(self, shape: Shape, page: BtreePage) -> Iterator[tuple[Cell, dict[str, object] | None]]:
        """Yield each cell with its row; None for one whose overflow pages are damaged. Raises DamagedPageError."""
        for cell in page.cells:
            if page.kind == INNER_TABLE:
                return
            try:
                values = decode_record(read_payload(cell, self._file.page))
                yield cell, dict(shape.read_row(cell.rowid, values))
            except DamagedPageError:
                if not cell.overflow:
                    raise
                yield cell, None

    def parse(self, number: int) -> BtreePage:
        """Parse a page. Raises DamagedPageError."""
        return parse_page(self._file.page(number), number)

    def _find_roots(self, shapes: Mapping[str, Shape]) -> dict[str, int]:
        """Return the root page of each table and index, by name: from the schema, or from pages that look like it."""
        tree = self._walk(SCHEMA, 1)
        numbers = list(tree.pages)
        if tree.damaged:
            numbers += [number for number in self._lost_pages() if self._is_page_of(SCHEMA, number)]
        roots: dict[str, int] = {}
        for number in numbers:
            self._owned.add(number)
            for _, row in self.rows_of(SCHEMA, self.parse(number)):
                if row is not None and row["name"] in shapes and isinstance(row["rootpage"], int):
                    roots.setdefault(str(row["name"]), row["rootpage"])
        return roots

    def _walk(self, shape: Shape, root: int) -> Tree:
        tree = Tree(shape)
        if self._visit(tree, root, None, None) is None:
            tree.damaged.append(DamagedPage(root))
        return tree

    def _visit(self, tree: Tree, number: int, low: Key | None, high: Key | None) -> int | None:
        """Add a page and those below it. Returns its kind, or None if it cannot be a page of this tree."""
        if number in self._owned or not self._is_page_of(tree.shape, number, low, high):
            return None
        self._owned.add(number)
        page = self.parse(number)
        damaged: list[DamagedPage] = []
        kinds = set()
        for place, child in enumerate(page.children()):
            upper = self._key(tree.shape, page.cells[place]) if place < len(page.cells) else high
            kind = self._visit(tree, child, low, upper)
            kinds.add(kind)
            if kind is None:
                damaged.append(DamagedPage(child, low, upper))
            low = upper
            if page.kind == INNER_INDEX and place == 0:
                tree.pages.append(number)
        is_leaf = bool(kinds & {LEAF_TABLE, LEAF_INDEX})  # all pages of one level are leaves, or none
        tree.damaged += [DamagedPage(item.number, item.low, item.high, is_leaf) for item in damaged]
        if not page.last_child:
            tree.pages.append(number)
        return page.kind

    def _key(self, shape: Shape, cell: Cell) -> Key | None:
        if shape.has_rowids:
            return (cell.rowid,)
        try:
            return tuple(decode_record(read_payload(cell, self._file.page))[:2])
        except DamagedPageError:
            return None

    def _is_page_of(self, shape: Shape, number: int, low: Key | None = None, high: Key | None = None) -> bool:
        """Whether a page is sound and all its rows can be rows of this table or index, between these bounds."""
        try:
            page = self.parse(number)
            if page.kind not in ((INNER_TABLE, LEAF_TABLE) if shape.has_rowids else (INNER_INDEX, LEAF_INDEX)):
                return False
            for _ in self.rows_of(shape, page):
                pass
        except DamagedPageError:
            return False
        if not shape.has_rowids or not page.cells:
            return True
        first, last = page.cells[0].rowid, page.cells[-1].rowid
        return not (low and first <= low[0]) and not (high and last > high[0])  # type: ignore[operator]

    def _lost_pages(self) -> Iterator[int]:
        return (number for number in range(1, self._file.count + 1) if number not in self._owned)

    def _assign_lost_pages(self) -> None:
        """Give pages that no sound page points to, to the only table they can belong to."""
        trees = [tree for tree in self.trees.values() if tree.may_miss_pages()]
        for number in self._lost_pages() if trees else ():
            fitting = [tree for tree in trees if self._is_page_of(tree.shape, number)]
            try:
                has_rows = bool(fitting) and self.parse(number).kind != INNER_TABLE and bool(self.parse(number).cells)
            except DamagedPageError:
                continue
            fitting = [tree for tree in fitting if tree.shape.is_unmistakable] or fitting
            if len(fitting) == 1 and has_rows:
                fitting[0].pages.append(number)
            elif has_rows and any(not tree.shape.is_index for tree in fitting):
                self.ambiguous.append((number, tuple(sorted(tree.shape.name for tree in fitting))))
