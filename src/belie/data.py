"""Data files (worlds, catalogues): YAML with a schema, read so that every error names file, line and field.

Knows: YAML, pydantic, where in the file a field stands.
Does not know: what any field means.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from belie.respondents.base import BadInput

M = TypeVar("M", bound=BaseModel)


def load_data(path: Path, schema: type[M]) -> M:
    """Read one YAML file into ``schema``.

    Raises BadInput with ``file:line: field: what is wrong``, for the first fault.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise BadInput(f"{path}: cannot be read ({error.strerror or error}).") from None
    except UnicodeDecodeError:
        raise BadInput(f"{path}: is not UTF-8 text.") from None
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
        content = yaml.safe_load(text)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise BadInput(f"{path}:{line}: not valid YAML: {error.problem}.") from None
    if not isinstance(content, dict):
        raise BadInput(f"{path}:1: expected a mapping of fields, found {type(content).__name__}.")
    try:
        return schema.model_validate(content)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or "(top)"
        raise BadInput(f"{path}:{line_of(root, first['loc'])}: {where}: {_said(first['msg'])}.") from None


def _said(message: str) -> str:
    return message.removeprefix("Value error, ").rstrip(".")


def line_of(root: yaml.Node | None, loc: Sequence[Any]) -> int:
    """The line (from 1) where the field ``loc`` stands, or that of its nearest parent in the file."""
    line, node = 1, root
    for part in loc:
        child = None
        if isinstance(node, yaml.MappingNode):
            for key, value in node.value:
                if getattr(key, "value", None) == str(part):
                    line, child = key.start_mark.line + 1, value
                    break
        elif isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
            child = node.value[part]
            line = child.start_mark.line + 1
        if child is None:
            break
        node = child
    return line


def sha256(path: Path) -> str:
    """Hex SHA-256 of a file's bytes."""
    return hashlib.sha256(path.read_bytes()).hexdigest()
