"""``belie lens``: what the inner states of open weights say before the answer."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich import box
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from belie.cli import options as o
from belie.cli.output import err, out, print_json, say, waiting
from belie.numbers import count, number, percent
from belie.respondents.base import BadInput

if TYPE_CHECKING:
    from belie.lens.fit import Told
    from belie.lens.folder import Lens
    from belie.lens.probes import Probe
    from belie.lens.result import Ablation, Reading
    from belie.respondents.local.model import Loaded

app = typer.Typer(
    help="The Jacobian lens: what the inner states of open weights say before the answer is given.",
    epilog="Example:  belie lens fit local/smollm2-135m -o lens && "
    "belie lens read local/smollm2-135m --lens lens --instrument csq",
    no_args_is_help=True,
)

_PROBES = "Probes"
Weights = Annotated[str, typer.Argument(help="Open weights: local/NAME, local/FOLDER.", metavar="MODEL")]
Fitted = Annotated[Path, typer.Option("--lens", help="Folder of a lens fitted on this model.", metavar="DIR")]
Instrument = Annotated[str, typer.Option(help="Where the probes come from: knownlie or csq.")]
Domains = Annotated[
    str | None,
    typer.Option(help="KnownLie: domains or pack folders, with commas (default: all).", rich_help_panel=_PROBES),
]
Conditions = Annotated[
    str, typer.Option(help="KnownLie: which private notes, with commas.", rich_help_panel=_PROBES, metavar="LIST")
]
Sizes = Annotated[str, typer.Option("--n", help="CSQ: chain lengths.", rich_help_panel=_PROBES)]
Chains = Annotated[int, typer.Option(help="CSQ: chains at each n; four probes a chain.", rich_help_panel=_PROBES)]
World = Annotated[str, typer.Option(help="CSQ: a world, or a path to a world file.", rich_help_panel=_PROBES)]
Seed = Annotated[int, typer.Option(help="Decides chains, resampling and random directions.", rich_help_panel=_PROBES)]
Dtype = Annotated[
    str | None,
    typer.Option(help="Number format (default: the one audits are asked in).", rich_help_panel=o.MACHINE),
]
Kept = Annotated[
    Path | None,
    typer.Option("--out", "-o", help="A run's folder, whose report then shows it, or another folder.", metavar="DIR"),
]


@app.command(epilog="Example:  belie lens fit local/smollm2-135m --texts bundled --prompts 100 -o lens")
def fit(
    model: Weights,
    out_: Annotated[Path, typer.Option("--out", "-o", help="Folder of the lens.", metavar="DIR")],
    texts: Annotated[str, typer.Option(help="Neutral texts: a file, a folder of .txt files, or bundled.")] = "bundled",
    prompts: Annotated[int, typer.Option(help="Passages that are used.")] = 100,
    tokens: Annotated[int, typer.Option(help="Tokens of each passage.")] = 128,
    contrast: Annotated[str, typer.Option(help="The words set against each other.")] = "yes/no",
    full: Annotated[bool, typer.Option("--full", help="The whole Jacobian of every layer too.")] = False,
    block: Annotated[int, typer.Option(help="With --full: rows computed and saved at a time.")] = 32,
    resume: Annotated[bool, typer.Option("--resume", help="Continue the lens in this folder, or add to it.")] = False,
    device: o.Device = None,
    threads: o.Threads = None,
    json: o.Json = False,
) -> None:
    """Fit the lens on neutral texts: how each layer's state bears on yes against no at the end."""
    from belie.lens.fit import fit as fit_lens
    from belie.lens.passages import passages

    if contrast != "yes/no":
        raise BadInput(f"--contrast takes yes/no, not {contrast!r}: both instruments ask for these words.")
    read = passages(texts)
    loaded = _open(model, device, "float32", threads, quiet=json)
    with _steps("Fitting", quiet=json) as told:
        lens = fit_lens(
            loaded, model, read, out_, count=prompts, tokens=tokens, full=full, block=block, resume=resume, told=told
        )
    if json:
        print_json(dict(lens.settings))
        return
    _show_fit(lens, out_)


@app.command(epilog="Example:  belie lens read local/smollm2-135m --lens lens --instrument knownlie --domains refund")
def read(
    model: Weights,
    lens: Fitted,
    instrument: Instrument,
    domains: Domains = None,
    conditions: Conditions = "none,incentive,instructed",
    n: Sizes = "3,5,10",
    chains: Chains = 25,
    world: World = "contacts",
    seed: Seed = 0,
    keep: Kept = None,
    dtype: Dtype = None,
    device: o.Device = None,
    threads: o.Threads = None,
    json: o.Json = False,
) -> None:
    """Read states through the lens: do they tell owed from not owed, in which layers, in each condition?"""
    from belie.lens.anatomy import anatomy
    from belie.lens.folder import load_lens
    from belie.lens.reading import read as read_states
    from belie.lens.states import Reader
    from belie.lens.written import to_json

    _known_instrument(instrument)
    _check_run(keep, model)
    fitted = load_lens(lens)
    probes, told_of = _probes(instrument, domains, conditions, n, chains, world, seed)
    loaded = _open(model, device, dtype, threads, quiet=json)
    settings = _settings(loaded, model, fitted, told_of)
    with _steps("Reading", quiet=json) as told:
        states = Reader(loaded, anatomy(loaded.model)).states(probes, told)
    with waiting("Comparing …", quiet=json):
        reading = read_states(instrument, model, probes, states, fitted, settings, seed=seed)  # type: ignore[arg-type]
    content = to_json(reading)
    _keep(keep, f"lens-{instrument}.json", content, json)
    if json:
        print_json(content)
        return
    _show_reading(reading)


@app.command(epilog="Example:  belie lens ablate local/smollm2-135m --lens lens --instrument csq --layers 10-20")
def ablate(
    model: Weights,
    lens: Fitted,
    instrument: Instrument,
    layers: Annotated[
        str | None, typer.Option(help="The band of layers, such as 10-20 (default: the middle third).", metavar="BAND")
    ] = None,
    where: Annotated[str, typer.Option(help="Take it out at all positions, or at the last.")] = "all",
    random: Annotated[int, typer.Option(help="Random directions of either control, 10 or more.")] = 10,
    domains: Domains = None,
    conditions: Conditions = "none,incentive,instructed",
    n: Sizes = "3,5",
    chains: Chains = 10,
    world: World = "contacts",
    seed: Seed = 0,
    keep: Kept = None,
    dtype: Dtype = None,
    device: o.Device = None,
    threads: o.Threads = None,
    json: o.Json = False,
) -> None:
    """Take the contrast out of a band of layers: what becomes of the answers, against random directions?"""
    from belie.lens import ablation
    from belie.lens.anatomy import anatomy
    from belie.lens.folder import load_lens
    from belie.lens.states import Reader
    from belie.lens.written import ablation_to_json

    _known_instrument(instrument)
    if where not in ("all", "last"):
        raise BadInput(f"--where takes all or last, not {where!r}.")
    _check_run(keep, model)
    fitted = load_lens(lens)
    band = ablation.band_of(layers or f"{fitted.layers // 3}-{2 * fitted.layers // 3}", fitted.layers)
    probes, told_of = _probes(instrument, domains, conditions, n, chains, world, seed)
    loaded = _open(model, device, dtype, threads, quiet=json)
    settings = _settings(loaded, model, fitted, told_of)
    parts = anatomy(loaded.model)
    with _steps("Ablating", quiet=json) as told:
        done = ablation.ablate(
            instrument, model, Reader(loaded, parts), parts, fitted, probes, band, settings,
            where=where, randoms=random, seed=seed, told=told,  # type: ignore[arg-type]
        )  # fmt: skip
    content = ablation_to_json(done)
    _keep(keep, f"lens-ablation-{instrument}.json", content, json)
    if json:
        print_json(content)
        return
    _show_ablation(done)


def _known_instrument(name: str) -> None:
    if name not in ("knownlie", "csq"):
        raise BadInput(f"--instrument takes knownlie or csq, not {name!r}.")


def _open(model: str, device: str | None, dtype: str | None, threads: int | None, *, quiet: bool) -> Loaded:
    if not model.startswith("local/"):
        raise BadInput(f"The lens looks inside open weights: local/NAME or local/FOLDER, not {model!r}.")
    if threads is not None and threads < 1:
        raise BadInput(f"--threads {threads}: it must be 1 or more.")
    try:
        from belie.models import resolve
        from belie.respondents.local.model import find_device, find_dtype, load
    except ModuleNotFoundError as missing:
        raise BadInput(f"The lens needs {missing.name}: install belie with its extra, belie[local].") from missing
    import torch

    if threads is not None:
        torch.set_num_threads(threads)
    place = find_device(device)
    with waiting(f"Loading {model} …", quiet=quiet):
        return load(resolve(model), place, find_dtype(dtype, place))


def _probes(
    instrument: str, domains: str | None, conditions: str, n: str, chains: int, world: str, seed: int
) -> tuple[list[Probe], dict[str, Any]]:
    """The probes and what the result says of them."""
    from belie.csq.questions import QUESTIONS_VERSION
    from belie.csq.world import load_world, world_hash
    from belie.knownlie.records import CONDITIONS
    from belie.lens import probes as made

    if instrument == "csq":
        design = o.design_of(world, 2, False, "0", seed, None, n, chains)
        told: dict[str, Any] = {"sizes": list(design.sizes), "chains": chains, "world": load_world(world).name}
        told |= {"world_sha256": world_hash(world), "questions_version": QUESTIONS_VERSION, "seed": seed}
        return made.csq_probes(design), told
    names = [name.strip() for name in conditions.split(",")]
    unknown = [name for name in names if name not in CONDITIONS]
    if unknown or len(set(names)) != len(names):
        raise BadInput(f"--conditions takes some of {','.join(CONDITIONS)}, each once; not {conditions!r}.")
    packs = made.packs_of(None if domains is None else [name.strip() for name in domains.split(",")])
    told = {"packs": {pack.id: pack.hash for pack in packs}, "prompts_sha256": made.prompts_hash(), "seed": seed}
    return made.knownlie_probes(packs, names), told  # type: ignore[arg-type]


def _settings(loaded: Loaded, model: str, lens: Lens, probes: dict[str, Any]) -> dict[str, Any]:
    """What a result rests on. Raises BadInput where the lens was fitted on other weights."""
    from importlib.metadata import version

    from belie.lens import LENS_VERSION
    from belie.respondents.local.model import weights_sha256

    weights = weights_sha256(loaded.folder)
    if lens.settings["weights_sha256"] != weights:
        raise BadInput(
            f"This lens was fitted on {lens.settings['model']}, whose weights are not those of {model}: fit one on it."
        )
    kept = ("texts", "texts_sha256", "prompts", "tokens", "full", "contrast", "halves_cosine", "torch", "transformers")
    return {
        "lens_version": LENS_VERSION,
        "belie": version("belie"),
        "weights_sha256": weights,
        "dtype": str(loaded.model.dtype).removeprefix("torch."),
        "lens": {name: lens.settings.get(name) for name in kept},
        "probes": probes,
    }


def _check_run(folder: Path | None, model: str) -> None:
    """Raises BadInput where the result would go into another model's run."""
    from belie.runs import RunFolder

    if folder is None or not (folder / "manifest.json").exists():
        return
    respondent = RunFolder.open(folder).manifest.respondent
    if respondent != model:
        raise BadInput(f"{folder} is a run of {respondent}, not of {model}: name another folder.")


def _keep(folder: Path | None, name: str, content: dict[str, Any], quiet: bool) -> None:
    from json import dumps

    from belie.runs import files

    if folder is None:
        return
    files.make_folder(folder)
    files.replace(folder / name, (dumps(content, ensure_ascii=False, allow_nan=False) + "\n").encode())
    if not quiet:
        say(f"Kept in {folder / name}.")


@contextmanager
def _steps(label: str, *, quiet: bool) -> Iterator[Told]:
    """Progress of prompts or probes: a bar on a terminal, a line every ten seconds elsewhere."""
    shown = time.monotonic()

    def line(done: int, total: int, what: str) -> None:
        nonlocal shown
        if not quiet and time.monotonic() - shown > 10:
            shown = time.monotonic()
            say(f"{label}: {done:,} of {total:,} {what}")

    if quiet or not err.is_terminal:
        yield line
        return
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=err) as bar:
        tasks: dict[str, Any] = {}

        def move(done: int, total: int, what: str) -> None:
            if what not in tasks:
                tasks[what] = bar.add_task(f"{label} ({what})", total=total)
            bar.update(tasks[what], completed=done, total=total)

        yield move


def _show_fit(lens: Lens, folder: Path) -> None:
    told = lens.settings
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    heads = ["layer", "halves of the prompts", *(("halves, full J", "full J and product") if lens.full else ())]
    for head in heads:
        table.add_column(head, justify="right")
    columns = [told["halves_cosine"]]
    if lens.full:
        columns += [told["full_halves_cosine"], told["product_cosine"]]
    step = max(1, lens.layers // 10)
    for layer in [*range(0, lens.layers, step), lens.layers]:
        table.add_row(str(layer), *(number(column[layer], 4) for column in columns))
    out.print(
        Text(
            f"{told['model']}: contrast {told['contrast']} at layers 0 to {lens.layers}, from {told['prompts']} "
            f"prompts ({count(told['tokens_used'])} tokens). Cosines by layer; 1 is agreement:"
        )
    )
    out.print(table)
    say(f"Read through it: belie lens read {told['model']} --lens {folder} --instrument csq")


def _show_reading(reading: Reading) -> None:
    from belie.lens import words

    for question in dict.fromkeys(curve.question for curve in reading.curves):
        table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
        for head in ("condition", "place", "lens", "signal at layers", "logit lens", "linear probe", "cases"):
            table.add_column(head, overflow="fold")
        places = dict.fromkeys((c.condition, c.place) for c in reading.curves if c.question == question)
        for condition, place in places:
            lens, logit, probe = (reading.curve(question, condition, place, m) for m in ("lens", "logit lens", "probe"))
            layers = words.spans([i for i, seen in enumerate(lens.separation.signal) if seen])
            cells = [words.peak_words(curve) for curve in (lens, logit, probe)]
            found = f"{lens.separation.positives} / {lens.separation.negatives}"
            names = (words.condition_name(condition), words.PLACES[place])
            table.add_row(*names, cells[0], layers or "none", cells[1], cells[2], found)
        out.print(Text(f"AUROC, {words.asked(reading.instrument, question)}, the layer furthest from chance (0.5):"))
        out.print(table)
    answers = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for head in ("condition", "probes", "right", "says Yes where true", "where false", "mass on Yes and No"):
        answers.add_column(head, justify="left" if head == "condition" else "right")
    for one in reading.behaviour:
        shares = (one.right, one.yes_if_yes, one.yes_if_no, one.covered)
        answers.add_row(words.condition_name(one.condition), count(one.probes), *(percent(value) for value in shares))
    out.print(Text("What it then answers:"))
    out.print(answers)
    for sentence in words.verdicts(reading):
        out.print(Text(sentence))


def _show_ablation(done: Ablation) -> None:
    from belie.lens import words

    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for head in ("condition", "of the answers", "before", "after", "change", "random removed", "random moved", "p"):
        table.add_column(head, justify="left" if head in ("condition", "of the answers") else "right", overflow="fold")
    for effect in done.effects:
        spread = []
        for name in ("removed", "moved"):
            low, high = min(effect.random[name]), max(effect.random[name])
            spread.append(f"{number(100 * low, 1, signed=True)} … {number(100 * high, 1, signed=True)}")
        table.add_row(
            words.condition_name(effect.condition), words.MEASURES[effect.measure], percent(effect.before),
            percent(effect.after), words.effect_words(effect), *spread,
            ", ".join(number(p, 2) for p in effect.p.values()),
        )  # fmt: skip
    out.print(
        Text(
            f"Contrast taken out at layers {done.band[0]} to {done.band[1]}, "
            f"{'every position' if done.where == 'all' else 'the last position'}, {done.probes} probes:"
        )
    )
    out.print(table)
    for sentence in words.ablation_verdicts(done):
        out.print(Text(sentence))
