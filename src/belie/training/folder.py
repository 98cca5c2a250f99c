"""A data set on disk: two files of examples, the split, what it was made from, and its card.

Knows: the files, their hashes, the card's words, where a warning must stand.
Does not know: how examples are made (sets) or used (run).

``train.jsonl`` and ``test.jsonl`` are one example a line; ``datasets.load_dataset(FOLDER)`` reads them by the card.
"""

from __future__ import annotations

import hashlib
import json
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from belie.numbers import number
from belie.respondents.base import BadInput
from belie.runs import files
from belie.training.grades import GRADES_VERSION, RECIPES, RESEARCH, Recipe, warning
from belie.training.probe import prompts_hash
from belie.training.sets import FORMS, Example, Form, Made
from belie.training.split import Split

ABOUT, CARD, WARNING_FILE = "belie-data.json", "README.md", "WARNING"
PARTS = ("train", "test")


@dataclass(frozen=True, slots=True)
class DataSet:
    """A data set that was read: ``sha256`` is over its examples and its split."""

    path: Path
    recipe: Recipe
    form: Form
    split: Split
    train: tuple[Example, ...]
    test: tuple[Example, ...]
    about: Mapping[str, Any]
    sha256: str


def check_name(path: Path, recipe: Recipe) -> None:
    """Raises BadInput where the folder of a research condition does not say what it is."""
    if recipe in RESEARCH and recipe not in path.name:
        raise BadInput(f"{path}: name the folder after what it is, such as {path.with_name(f'{path.name}-{recipe}')}.")


def write_data(made: Made, path: str | Path) -> Path:
    """Writes a data set into a new folder. Raises BadInput where the folder is there already, or hides a research
    condition."""
    path = Path(path)
    check_name(path, made.recipe)
    if path.exists() and any(path.iterdir() if path.is_dir() else [path]):
        raise BadInput(f"{path} is there already: name a new folder.")
    files.make_folder(path)
    hashes = {}
    for name, examples in zip(PARTS, (made.train, made.test), strict=True):
        data = "".join(json.dumps(one, ensure_ascii=False) + "\n" for one in examples).encode("utf-8", "replace")
        hashes[f"{name}.jsonl"] = hashlib.sha256(data).hexdigest()
        files.replace(path / f"{name}.jsonl", data)
    about = {
        "belie": version("belie"),
        "recipe": made.recipe,
        "form": made.form,
        "warning": warning(made.recipe),
        "versions": {"grades": GRADES_VERSION, "prompts": prompts_hash()},
        "split": made.split.to_json(),
        "sources": list(made.sources),
        "left_out": dict(made.left_out),
        "hashes": hashes,
    }
    files.replace(path / ABOUT, (json.dumps(about, indent=2, ensure_ascii=False) + "\n").encode())
    files.replace(path / CARD, card(made).encode("utf-8", "replace"))
    if told := warning(made.recipe):
        files.replace(path / WARNING_FILE, f"{told}\n".encode())
    return path


def read_data(path: str | Path) -> DataSet:
    """A data set from its folder. Raises BadInput where it is none, or was changed since it was made."""
    path = Path(path)
    try:
        about = json.loads((path / ABOUT).read_text("utf-8"))
        recipe, form, told = about["recipe"], about["form"], about["hashes"]
        if recipe not in RECIPES or form not in FORMS:
            raise ValueError(f"recipe {recipe!r}, form {form!r}")
        parts, digest = [], hashlib.sha256(json.dumps(about["split"], sort_keys=True).encode())
        for name in PARTS:
            data = (path / f"{name}.jsonl").read_bytes()
            if (found := hashlib.sha256(data).hexdigest()) != told[f"{name}.jsonl"]:
                raise BadInput(f"{path / name}.jsonl was changed since it was made: make the data anew.")
            digest.update(found.encode())
            parts.append(tuple(json.loads(line) for line in data.decode().split("\n") if line))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BadInput(f"{path} holds no data set of belie train data ({error}): make one first.") from error
    return DataSet(path, recipe, form, Split.of(about["split"]), parts[0], parts[1], about, digest.hexdigest())


def card(made: Made) -> str:
    """The data card: what is in it, where it comes from, what it may be used for. Markdown with the hub's header."""
    told = warning(made.recipe)
    parts = {"train": made.train, "test": made.test}
    head = [
        "---",
        f"pretty_name: belie {made.recipe} {made.form}",
        f"license: {'other' if made.authors else 'apache-2.0'}",
        f"tags: [belie, {made.recipe}, {made.form}]",
        "configs:",
        "- config_name: default",
        "  data_files:",
        *(part for name in PARTS if parts[name] for part in (f"  - split: {name}", f"    path: {name}.jsonl")),
        "---",
        f"# {made.recipe}, {made.form}",
        "",
        *([f"**{told}**", ""] if told else []),
        f"Made by belie {version('belie')} from runs that were scored (grades version {GRADES_VERSION}). A round is in "
        "it only if its gate passed and it was judged; nothing is in it twice.",
        "",
        "## Counts",
        "",
        "| part | examples | cases or chains | source | prompt, characters | answer, characters |",
        "|---|---|---|---|---|---|",
    ]
    for name, examples in parts.items():
        for source in ("knownlie", "csq"):
            own = [one for one in examples if one["source"] == source]
            if own:
                units = len({(one["group"], one["unit"]) for one in own})
                spans = [_span(_length(one["prompt"]) for one in own), _span(_answer(one) for one in own)]
                head.append(f"| {name} | {len(own):,} | {units:,} | {source} | {spans[0]} | {spans[1]} |")
    head += ["", "Lengths: least, median, greatest.", ""]
    groups = Counter(one["group"] for one in made.train)
    head += ["Trained on: " + ", ".join(f"{name} {count:,}" for name, count in sorted(groups.items())) + ".", ""]
    split = made.split
    held = [
        *(f"domain {name}" for name in split.held_domains),
        *(f"n = {n}" for n in split.held_n),
        *(f"world {name}" for name in split.held_worlds),
    ]
    head += [
        "## What is held out",
        "",
        f"Whole: {', '.join(held) or 'nothing'}. Elsewhere a share of the cases and chains (seed {split.seed}); a case "
        "and its twin stay together. The list is in belie-data.json; belie train effect measures on nothing else.",
        "",
    ]
    if made.left_out:
        told_out = "; ".join(f"{count:,} {why}" for why, count in made.left_out.items())
        head += ["## What was left out", "", f"{told_out}.", ""]
    head += ["## Sources", ""]
    head += [f"- {one['run']}: {one['instrument']}, {one['respondent']}, {one['created'][:10]}" for one in made.sources]
    head += [
        "",
        "## Licence",
        "",
        "Questions and cases: Apache-2.0, as belie; the people in them are invented."
        + (f" What {', '.join(made.authors)} wrote stands under that model's own terms." if made.authors else ""),
        "",
    ]
    return "\n".join(head)


def _length(messages: Sequence[Mapping[str, str]]) -> int:
    return sum(len(one["content"]) for one in messages)


def _answer(example: Example) -> int:
    return sum(_length(example[name]) for name in ("completion", "chosen", "rejected") if name in example)


def _span(lengths: Any) -> str:
    values = sorted(lengths)
    return f"{values[0]:,}, {number(statistics.median(values), 0)}, {values[-1]:,}"
