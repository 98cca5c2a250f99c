"""Says whether a pack may be used for a measurement, and if not, every reason why.

Knows: which checks there are, and the command that prints what they find.
Does not know: the checks themselves (pack_reader, soundness, wording).

    python -m belie.knownlie.validator PACK...
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from belie.knownlie import soundness, wording
from belie.knownlie.pack import FILES, Domain, builtin_packs
from belie.knownlie.pack_reader import read_domain, read_pack
from belie.knownlie.sheet import PackFault

__all__ = ["Findings", "PackFault", "examine", "main", "validate", "warnings"]


@dataclass(frozen=True, slots=True)
class Findings:
    """What was found: ``faults`` make a pack unusable, ``warnings`` are for its author to judge."""

    faults: tuple[PackFault, ...]
    warnings: tuple[PackFault, ...] = ()


def examine(path: Path) -> Findings:
    """Checks a pack: its form, then (where the form lets a pack be built) its truth and its texts. Never raises."""
    path = Path(path)
    reading = read_pack(path)
    faults, warned = list(reading.faults), []
    pack = reading.pack
    if pack is not None:
        faults += soundness.faults(pack, reading)
        faults += wording.faults(pack, reading, _other_domains(pack.id))
        if not faults:
            warned += soundness.warnings(pack, reading)
            warned += wording.warnings(pack, reading)
        if path.resolve().name != pack.id:
            warned.append(PackFault(FILES[0], 1, "id", f"is {pack.id}, but the folder is called {path.resolve().name}"))
        for extra in sorted(path.iterdir()):
            if extra.name not in FILES:
                warned.append(PackFault(extra.name, 1, "(file)", "is not a file of a pack: it is ignored"))
    return Findings(_ordered(faults), _ordered(warned))


def validate(path: Path) -> list[PackFault]:
    """Every fault of a pack, in the order of its files and lines; empty where it may be used."""
    return list(examine(path).faults)


def warnings(path: Path) -> list[PackFault]:
    """Softer remarks; most are only looked for once a pack has no fault."""
    return list(examine(path).warnings)


def _ordered(faults: list[PackFault]) -> tuple[PackFault, ...]:
    place = {name: i for i, name in enumerate(FILES)}
    return tuple(sorted(dict.fromkeys(faults), key=lambda fault: (place.get(fault.file, -1), fault.line)))


def _other_domains(id: str) -> dict[str, Domain]:
    domains = {name: read_domain(path) for name, path in builtin_packs().items() if name != id}
    return {name: domain for name, domain in domains.items() if domain is not None}


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints ``file:line: field: message`` for each fault. Returns 0 where every pack is sound, else 2."""
    paths = [Path(argument) for argument in (sys.argv[1:] if arguments is None else arguments)]
    if not paths:
        print("Name at least one pack: python -m belie.knownlie.validator PACK_FOLDER", file=sys.stderr)
        return 2
    bad = False
    for path in paths:
        findings = examine(path)
        bad = bad or bool(findings.faults)
        for warning in findings.warnings:
            print(f"{warning} (warning)")
        for fault in findings.faults:
            print(fault)
        counts = f"{len(findings.faults)} faults, {len(findings.warnings)} warnings"
        print(f"{path}: {'not usable' if findings.faults else 'sound'}, {counts}", file=sys.stderr)
    return 2 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
