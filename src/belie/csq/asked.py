"""What a run asked: from its questions to its manifest, and back.

Knows: what of a design, a respondent and the way of asking goes into a manifest, and what must not have changed since.
Does not know: how a run is asked or scored (run).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

from belie.csq.answers import PARSER_VERSION
from belie.csq.protocol import Followups
from belie.csq.questions import QUESTIONS_VERSION, Design, Variant, item_from_id
from belie.csq.scores import SCORES_VERSION
from belie.csq.stopping import StopOn, Wanted
from belie.csq.treatments import load_treatments, treatments_hash
from belie.csq.verdict import Unit
from belie.csq.world import load_world, world_hash
from belie.items import Item
from belie.pairs.file import PairSet, read_pairs
from belie.respondents.base import BadInput, Respondent
from belie.runs import Manifest

#: Raised whenever a CSQ run of the same options could ask or score otherwise. Written into every result.
TASK_VERSION = f"{QUESTIONS_VERSION}.{PARSER_VERSION}.{SCORES_VERSION}"

#: Options of a respondent that cannot change an answer: a run may continue with others.
FREE = frozenset(
    {"base_url", "concurrency", "timeout", "max_time", "max_cost", "price", "batch_tokens", "threads", "device"}
)
#: Options of a run that stops at a wanted half-width: they, and how many chains it came to, may change as it goes on.
STOPPING = frozenset({"half_width", "stop_on", "max_items", "rounds"})


@dataclass(frozen=True, slots=True)
class Asking:
    """How a design is put: ``draws`` answers an item (1 for an exact respondent), which follow-ups."""

    draws: int = 1
    followups: Followups = "wrong"
    options: Mapping[str, Any] = field(default_factory=dict)


def manifest_for(
    respondent: Respondent, design: Design | PairSet, asking: Asking, wanted: Wanted | None = None
) -> Manifest:
    """The manifest of a new run. ``asking.options`` are the respondent's own.

    With ``wanted`` the design holds the chains of the rounds decided so far (at first the pilot, see `pilot`).
    Raises BadInput where the design can only be asked in words and the respondent answers in probabilities.
    """
    if respondent.exact and isinstance(design, Design) and design.variant.sampled:
        raise BadInput(
            f"{respondent.name} answers in probabilities of the first token, but with order {design.variant.order} and "
            f"style {design.variant.style} answers can only be drawn: ask it with --sample."
        )
    told = _told(design)
    options = {
        **told.options,
        "exact": respondent.exact,
        "draws": asking.draws,
        "followups": asking.followups,
        **asking.options,
    }
    free = FREE
    if wanted is not None:
        free = FREE | STOPPING | {"chains"}
        options |= {"half_width": wanted.half_width, "stop_on": wanted.stop_on, "max_items": wanted.max_items}
    weights = respondent.provenance().get("weights_sha256")
    return Manifest(
        instrument="csq",
        respondent=respondent.name,
        options=options,
        binding=tuple(sorted(set(options) - free)),
        seeds={"design": told.options["seed"]},
        versions={"task": TASK_VERSION, "parser": PARSER_VERSION, "scores": SCORES_VERSION, **told.versions},
        hashes=told.hashes | ({"weights": weights} if weights else {}),
    )


class _Told(NamedTuple):
    """What a design decides of a manifest."""

    options: dict[str, Any]
    versions: dict[str, Any]
    hashes: dict[str, str]


def _told(design: Design | PairSet) -> _Told:
    if isinstance(design, PairSet):
        return _Told(design.options(), design.versions(), design.hashes())
    options = {
        **asdict(design.variant),
        "sizes": list(design.sizes),
        "chains": design.chains if isinstance(design.chains, int) else list(design.chains),
        "seed": design.seed,
    }
    world = design.variant.world
    versions = {"questions": QUESTIONS_VERSION, "world": load_world(world).name}
    hashes = {"world": world_hash(world)}
    if design.variant.worded:
        versions["treatments"] = load_treatments().version
        hashes["treatments"] = treatments_hash(world)
    return _Told(options, versions, hashes)


def check_variant(stored: Manifest, asked: Manifest) -> None:
    """Raises BadInput where a run would go on in another treatment, order or style than it was asked in; a run that is
    older than these was asked in the usual ones."""
    before, now = (asdict(Variant.of(one.options)) for one in (stored, asked))
    names = [name for name in ("treatment", "treated", "order", "style") if before[name] != now[name]]
    if names:
        raise BadInput(
            "The run was started with other questions, so its answers would not belong together: "
            f"{'; '.join(f'{name} was {before[name]}, now {now[name]}' for name in names)}. Use the same options, or "
            "start a new run."
        )


def design_of(manifest: Manifest) -> Design:
    """The chains a run asked, from its manifest. Raises BadInput where this Belie makes other questions."""
    if manifest.instrument != "csq":
        raise BadInput(f"This is a {manifest.instrument} run; a csq run is needed.")
    if manifest.options.get("pairs") is not None:
        raise BadInput(f"This run asked the pairs of {manifest.options['pairs']}; a run over chains is needed.")
    if manifest.versions.get("questions") != QUESTIONS_VERSION:
        raise BadInput(
            f"The run was asked with questions version {manifest.versions.get('questions')}; this Belie makes version "
            f"{QUESTIONS_VERSION}. Install belie {manifest.belie} to score it."
        )
    options = manifest.options
    variant = Variant.of(options)
    chains = options["chains"] if isinstance(options["chains"], int) else tuple(options["chains"])
    design = Design(variant, tuple(options["sizes"]), chains, options["seed"])
    told, have = manifest.versions.get("world"), load_world(variant.world).name
    if told != have or manifest.hashes.get("world") != world_hash(variant.world):
        raise BadInput(
            f"The run was asked in world {told}, and the world file {variant.world} has changed since"
            f"{'' if told == have else f' (it is {have} now)'}: restore it, or install the Belie that made the run."
        )
    if variant.worded and manifest.hashes.get("treatments") != treatments_hash(variant.world):
        raise BadInput(
            f"The run was asked with version {manifest.versions.get('treatments')} of the treatments, and their texts "
            "or the world's claim have changed since: restore them, or install the Belie that made the run."
        )
    return design


def asked_of(manifest: Manifest) -> Design | PairSet:
    """The questions of a run, whichever they are. Raises BadInput as `design_of`."""
    return design_of(manifest) if manifest.options.get("pairs") is None else _pairs_of(manifest)


def _pairs_of(manifest: Manifest) -> PairSet:
    """The pairs that a run asked. Raises BadInput where their file is gone or is another."""
    pairs = read_pairs(manifest.options["pairs"], manifest.options.get("limit"), manifest.options["seed"])
    for name, now in {"questions": pairs.versions()["questions"], "world": pairs.name}.items():
        if manifest.versions.get(name) != now:
            raise BadInput(
                f"The run asked {manifest.versions.get(name)}, and {pairs.path} makes {now} now: restore it."
            )
    if manifest.hashes.get("world") != pairs.hashes()["world"]:
        raise BadInput(f"{pairs.path} has changed since the run asked its questions: restore it.")
    return pairs


def unit_of(manifest: Manifest) -> Unit:
    """What a run's questions are about."""
    return "chains" if manifest.options.get("pairs") is None else "pairs"


def item_of(manifest: Manifest) -> Callable[[str], Item]:
    """Rebuilds the items of a run from their ids."""
    if manifest.options.get("pairs") is not None:
        return {item.id: item for item in _pairs_of(manifest).items()}.__getitem__
    world = manifest.options["world"]
    custom = world if world.endswith((".yaml", ".yml")) else None
    return lambda item_id: item_from_id(item_id, custom)


def wanted_of(options: Mapping[str, Any]) -> Wanted | None:
    """The wanted half-width of a run, from its manifest's options; None where it asks a fixed design."""
    if options.get("half_width") is None:
        return None
    stop_on: StopOn = options.get("stop_on") or "overall"
    return Wanted(options["half_width"], stop_on, options.get("max_items"))
