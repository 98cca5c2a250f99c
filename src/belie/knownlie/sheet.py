"""A data file of a pack, read so that every value still knows its line.

Knows: the YAML subset that packs use and its traps, source lines, and the fault that names file, line and field.
Does not know: what a pack must hold.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any

import yaml
from yaml.composer import ComposerError

#: Where a value stands in a file: keys of mappings and indices of lists, from the top.
Path_ = tuple[str | int, ...]

MAX_BYTES = 1_000_000


@dataclass(frozen=True, slots=True, order=True)
class PackFault:
    """One thing that is wrong with a pack: in which file, on which line (from 1), in which field, and what."""

    file: str
    line: int
    field: str
    message: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.field}: {self.message}"


@dataclass(frozen=True, slots=True)
class Sheet:
    """The plain data of one YAML file, with the lines that each value spans (first, last; both from 1)."""

    file: str
    data: Any
    spans: Mapping[Path_, tuple[int, int]]
    source: tuple[str, ...]

    def line(self, path: Path_, token: str | None = None) -> int:
        """The line of the value at ``path``, or of its nearest parent that exists.

        With ``token``, the line inside that value's span that holds the token, where one does.
        """
        while path and path not in self.spans:
            path, token = path[:-1], None
        first, last = self.spans.get(path, (1, 1))
        if token:
            for number in range(first, min(last, len(self.source)) + 1):
                if token in self.source[number - 1]:
                    return number
        return first

    def fault(self, path: Path_, message: str, token: str | None = None) -> PackFault:
        """A fault at ``path``; see :meth:`line` for ``token``."""
        return PackFault(self.file, self.line(path, token), self.field(path), message)

    def field(self, path: Path_) -> str:
        """The path as people read it; a case is named by its id: ``airline-04.record.fare_paid``."""
        if len(path) >= 2 and path[0] == "cases" and isinstance(path[1], int):
            try:
                name = self.data["cases"][path[1]]["id"]
            except (KeyError, TypeError, IndexError):
                name = None
            if isinstance(name, str):
                path = (name, *path[2:])
        text = ""
        for step in path:
            text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
        return text or "(file)"


class _Loader(yaml.SafeLoader):
    """YAML 1.2's idea of a scalar: only true/false are booleans, so ``no``, ``on``, ``12:30`` and ``017`` stay text."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            mark = self.peek_event().start_mark
            raise ComposerError(None, None, "aliases (*name) are not allowed in a pack", mark)
        return super().compose_node(parent, index)


for _tag, _pattern, _first in (
    ("bool", r"^(?:true|false)$", "tf"),
    ("null", r"^(?:~|null|)$", "~n\0"),
    ("int", r"^[-+]?(?:0|[1-9][0-9]*)$", "-+0123456789"),
    ("float", r"^[-+]?(?:0|[1-9][0-9]*)\.[0-9]+$", "-+0123456789"),
    ("timestamp", r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$", "0123456789"),
):
    _Loader.add_implicit_resolver(
        f"tag:yaml.org,2002:{_tag}", re.compile(_pattern), [c if c != "\0" else "" for c in _first]
    )


def decode(raw: bytes, file: str) -> tuple[str, list[PackFault]]:
    """The text of a pack's file: UTF-8, at most 1 MB; line ends folded."""
    if len(raw) > MAX_BYTES:
        return "", [PackFault(file, 1, "(file)", f"is larger than {MAX_BYTES:,} bytes: a pack is short texts")]
    try:
        return raw.decode("utf-8-sig").replace("\r\n", "\n"), []
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        return "", [PackFault(file, line, "(file)", "is not UTF-8: save the file as UTF-8")]


def read_sheet(text: str, file: str) -> tuple[Sheet | None, list[PackFault]]:
    """Reads YAML text. Floats become exact Decimals, ISO dates dates; everything else as in :class:`_Loader`.

    Returns (sheet, faults); the sheet is None where the text is not YAML at all. Duplicate keys, aliases, foreign
    tags and impossible dates are faults.
    """
    problems: list[_Problem] = []
    spans: dict[Path_, tuple[int, int]] = {}
    try:
        loader = _Loader(text)
        try:
            root = loader.get_single_node()
        finally:
            loader.dispose()
        if root is None:
            return None, [PackFault(file, 1, "(file)", "is empty")]
        data = _plain(root, (), spans, problems)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        what = " ".join((error.problem or "cannot be read").split())
        return None, [PackFault(file, mark.line + 1 if mark else 1, "(file)", f"is not valid YAML: {what}")]
    except yaml.YAMLError as error:
        return None, [PackFault(file, 1, "(file)", f"is not valid YAML: {' '.join(str(error).split())}")]
    except RecursionError:
        return None, [PackFault(file, 1, "(file)", "is nested too deeply")]
    sheet = Sheet(file, data, spans, tuple(text.split("\n")))
    return sheet, [PackFault(file, line, sheet.field(path), message) for path, line, message in problems]


#: What a fault says before its field can be named: path, line, message.
_Problem = tuple[Path_, int, str]
_COLLECTIONS = ("tag:yaml.org,2002:map", "tag:yaml.org,2002:seq")


def _span(first: yaml.Node, last: yaml.Node) -> tuple[int, int]:
    end = last.end_mark.line if last.end_mark.column == 0 else last.end_mark.line + 1
    return first.start_mark.line + 1, max(end, first.start_mark.line + 1)


def _plain(node: yaml.Node, path: Path_, spans: dict[Path_, tuple[int, int]], problems: list[_Problem]) -> Any:
    spans.setdefault(path, _span(node, node))
    if isinstance(node, yaml.CollectionNode) and node.tag not in _COLLECTIONS:
        message = f"the tag {node.tag} is not allowed in a pack"
        problems.append((path, node.start_mark.line + 1, message))
        return None
    if isinstance(node, yaml.MappingNode):
        mapping: dict[str, Any] = {}
        for key_node, value_node in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                problems.append((path, key_node.start_mark.line + 1, "a key must be a plain word"))
                continue
            key = str(key_node.value)
            here = (*path, key)
            if key in mapping:
                message = f"the key {key!r} stands here a second time (first on line {spans[here][0]})"
                problems.append((here, key_node.start_mark.line + 1, message))
                continue
            spans[here] = _span(key_node, value_node)
            mapping[key] = _plain(value_node, here, spans, problems)
        return mapping
    if isinstance(node, yaml.SequenceNode):
        return [_plain(child, (*path, i), spans, problems) for i, child in enumerate(node.value)]
    return _scalar(node, path, problems)


def _scalar(node: yaml.Node, path: Path_, problems: list[_Problem]) -> Any:
    raw = str(node.value)
    kind = node.tag.removeprefix("tag:yaml.org,2002:")
    try:
        match kind:
            case "str":
                return raw
            case "bool":
                return {"true": True, "false": False}[raw]
            case "null":
                return None
            case "int":
                return int(raw)
            case "float":
                return Decimal(raw)
            case "timestamp":
                return date.fromisoformat(raw)
            case _:
                message = f"the tag {node.tag} is not allowed in a pack"
    except (ValueError, KeyError, ArithmeticError):
        message = f"{raw} is not a date of the calendar" if kind == "timestamp" else f"{raw!r} is not a valid {kind}"
    problems.append((path, node.start_mark.line + 1, message))
    return None
