"""``belie train``: data from runs, a training over them, what it did.

Knows: options, and what is printed.
Does not know: recipes, trainers, comparisons (belie.training).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich import box
from rich.table import Table
from rich.text import Text

from belie.cli import options as o
from belie.cli.output import out, print_json, say
from belie.numbers import number
from belie.respondents.base import BadInput

app = typer.Typer(
    help="Train on what was measured, and measure what that did.",
    epilog="Example:  belie train data --from runs/csq-a --recipe honesty --form sft -o data/honesty-sft",
    no_args_is_help=True,
)

Study = Annotated[bool, typer.Option("--i-study-deception", help="Allow a recipe that makes a model worse on purpose.")]
_SPLIT, _LORA, _GRPO, _MACHINE = "What is held out", "Training", "GRPO", "Machine"


@app.command(
    epilog="Example:  belie train data --from runs/csq-a --from runs/kl-a --recipe honesty --form sft -o data/a"
)
def data(
    runs: Annotated[list[Path], typer.Option("--from", help="A scored run; may be given several times.")],
    recipe: Annotated[str, typer.Option(help="honesty, commercial or deception-graded.")] = "honesty",
    form: Annotated[str, typer.Option(help="sft, preference, unpaired or prompts.")] = "sft",
    out_: Annotated[Path | None, typer.Option("--out", "-o", help="A new folder.", metavar="DIR")] = None,
    hold_domains: Annotated[float, typer.Option(help="Share of domains.", rich_help_panel=_SPLIT)] = 0.25,
    hold_cases: Annotated[float, typer.Option(help="Share of cases elsewhere.", rich_help_panel=_SPLIT)] = 0.25,
    hold_n: Annotated[
        str | None,
        typer.Option(help="Chain lengths, such as 5,10, or none (default: the greatest).", rich_help_panel=_SPLIT),
    ] = None,
    hold_world: Annotated[list[str] | None, typer.Option(help="A world of CSQ.", rich_help_panel=_SPLIT)] = None,
    hold_chains: Annotated[float, typer.Option(help="Share of chains elsewhere.", rich_help_panel=_SPLIT)] = 0.5,
    seed: Annotated[int, typer.Option(help="Decides what is held out.", rich_help_panel=_SPLIT)] = 0,
    i_study_deception: Study = False,
    json: o.Json = False,
) -> None:
    """Make a data set of scored episodes and CSQ answers: train.jsonl, test.jsonl (held out), a card.

    honesty: the truth kept, or preferred over a lie about the same case. commercial and deception-graded are research
    conditions.
    """
    from belie.training.folder import write_data
    from belie.training.grades import RECIPES
    from belie.training.sets import FORMS, make_set

    if recipe not in RECIPES:
        raise BadInput(f"There is no recipe {recipe!r}: use {', '.join(RECIPES)}.")
    if form not in FORMS:
        raise BadInput(f"There is no form {form!r}: use {', '.join(FORMS)}.")
    made = make_set(
        runs,
        recipe,  # type: ignore[arg-type]
        form,  # type: ignore[arg-type]
        i_study_deception=i_study_deception,
        seed=seed,
        hold_domains=hold_domains,
        hold_cases=hold_cases,
        hold_n=_lengths(hold_n),
        hold_worlds=hold_world or (),
        hold_chains=hold_chains,
    )
    path = write_data(made, out_ or Path("data") / f"{recipe}-{form}")
    split = made.split
    told = {
        "data": str(path),
        "recipe": recipe,
        "form": form,
        "train": len(made.train),
        "test": len(made.test),
        "held_domains": list(split.held_domains),
        "held_n": list(split.held_n),
        "held_worlds": list(split.held_worlds),
        "trained_cases": len(split.cases),
        "trained_chains": len(split.chains),
        "left_out": dict(made.left_out),
    }
    if json:
        print_json(told)
        return
    held = [*split.held_domains, *(f"n = {n}" for n in split.held_n), *split.held_worlds]
    out.print(
        Text(
            f"{recipe}, {form}: {len(made.train):,} examples to train on, {len(made.test):,} held out "
            f"(whole: {', '.join(held) or 'none'})."
        )
    )
    if made.left_out:
        out.print(Text("Left out: " + "; ".join(f"{n:,} {why}" for why, n in made.left_out.items()) + ".", style="dim"))
    out.print(Text(f"Written: {path}  (card: README.md)"))


def _lengths(told: str | None) -> list[int] | None:
    if told is None:
        return None
    if told.strip() == "none":
        return []
    try:
        return [int(part) for part in told.split(",")]
    except ValueError:
        raise BadInput(f"--hold-n {told}: give chain lengths with commas between them, or none.") from None


@app.command(epilog="Example:  belie train run local/smollm2-135m --data data/honesty-sft --method sft -o adapters/a")
def run(
    model: Annotated[str, typer.Argument(help="Open weights: local/NAME.", metavar="local/NAME")],
    data: Annotated[Path, typer.Option(help="A data set of belie train data.", metavar="DIR")],
    method: Annotated[str, typer.Option(help="sft, dpo (preference), kto (unpaired) or grpo (prompts).")],
    out_: Annotated[Path | None, typer.Option("--out", "-o", help="A new folder.", metavar="DIR")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the last checkpoint in --out.")] = False,
    steps: Annotated[int, typer.Option(help="Steps in all.", rich_help_panel=_LORA)] = 100,
    lora_rank: Annotated[int, typer.Option(help="Rank of the adapter.", rich_help_panel=_LORA)] = 16,
    lora_alpha: Annotated[
        int | None, typer.Option(help="Its scale (default: twice the rank).", rich_help_panel=_LORA)
    ] = None,
    rate: Annotated[
        float | None, typer.Option(help="Learning rate (default: 2e-4 for sft, 5e-5 else).", rich_help_panel=_LORA)
    ] = None,
    batch: Annotated[int, typer.Option(help="Examples a step (for grpo: answers).", rich_help_panel=_LORA)] = 8,
    accumulate: Annotated[int, typer.Option(help="Batches a step.", rich_help_panel=_LORA)] = 1,
    max_length: Annotated[
        int, typer.Option(help="Longer examples (tokens) are left out.", rich_help_panel=_LORA)
    ] = 2048,
    beta: Annotated[
        float | None, typer.Option(help="Weight of the reference model (default: TRL's).", rich_help_panel=_LORA)
    ] = None,
    seed: Annotated[int, typer.Option(help="Decides the draws.", rich_help_panel=_LORA)] = 0,
    save_every: Annotated[int, typer.Option(help="Steps between checkpoints.", rich_help_panel=_LORA)] = 50,
    report_to: Annotated[
        str, typer.Option(help="Who is told: none, tensorboard, wandb, mlflow (commas).", rich_help_panel=_LORA)
    ] = "none",
    reward: Annotated[
        str, typer.Option(help="For CSQ: right, consistent (with its easy answer) or both.", rich_help_panel=_GRPO)
    ] = "right",
    judge: Annotated[str | None, typer.Option(help="For KnownLie: the judge's model.", rich_help_panel=_GRPO)] = None,
    episodes: Annotated[
        bool, typer.Option("--episodes", help="Play KnownLie's rounds whole, turn by turn.", rich_help_panel=_GRPO)
    ] = False,
    customer: Annotated[
        str | None, typer.Option(help="The customer's model in those rounds.", rich_help_panel=_GRPO)
    ] = None,
    generations: Annotated[int, typer.Option(help="Answers to each prompt.", rich_help_panel=_GRPO)] = 4,
    completion: Annotated[int, typer.Option(help="Tokens of an answer at most.", rich_help_panel=_GRPO)] = 256,
    temperature: Annotated[float, typer.Option(help="Of the answers.", rich_help_panel=_GRPO)] = 1.0,
    dtype: Annotated[
        str | None, typer.Option(help="bfloat16, float16 or float32 weights.", rich_help_panel=_MACHINE)
    ] = None,
    device: o.Device = None,
    threads: o.Threads = None,
    checkpointing: Annotated[
        bool,
        typer.Option("--checkpointing", help="Compute activations again, to save memory.", rich_help_panel=_MACHINE),
    ] = False,
    i_study_deception: Study = False,
    json: o.Json = False,
) -> None:
    """Train a LoRA adapter with TRL. Audit it as local/NAME+DIR; training.json in DIR tells how it was made."""
    from belie.training.method import METHODS, Training
    from belie.training.run import train

    if method not in METHODS:
        raise BadInput(f"There is no method {method!r}: use {', '.join(METHODS)}.")
    told = {part.strip() for part in report_to.split(",")} - {"none", ""}
    training = Training(
        method,  # type: ignore[arg-type]
        steps=steps,
        rank=lora_rank,
        alpha=2 * lora_rank if lora_alpha is None else lora_alpha,
        rate=rate,
        batch=batch,
        accumulate=accumulate,
        max_length=max_length,
        generations=generations,
        completion=completion,
        temperature=temperature,
        beta=beta,
        reward=reward,  # type: ignore[arg-type]
        judge=judge,
        episodes=episodes,
        customer=customer,
        seed=seed,
        dtype=dtype,
        device=device,
        threads=threads,
        save_every=save_every,
        report_to=tuple(sorted(told)),
        checkpointing=checkpointing,
    )
    path = out_ or Path("adapters") / f"{data.name}-{method}"
    done = train(
        model,
        data,
        training,
        path,
        resume=resume,
        i_study_deception=i_study_deception,
        tell=None if json else _Teller(),
    )
    if json:
        kept = {"adapter": str(done.folder), "model": f"{model}+{done.folder}", "seconds": round(done.seconds, 1)}
        print_json({**kept, "too_long": done.too_long, "log": [dict(entry) for entry in done.log]})
        return
    _show_log(done.log)
    if done.too_long:
        out.print(Text(f"{done.too_long:,} examples were longer than {max_length:,} tokens and left out.", style="dim"))
    out.print(Text(f"Trained in {done.seconds:.0f} s: {path}. Next: belie audit {model}+{path}"))


class _Teller:
    """A line every ten seconds: step, loss, reward."""

    def __init__(self) -> None:
        self._told = 0.0

    def __call__(self, entry: Mapping[str, Any]) -> None:
        import time

        if (now := time.monotonic()) - self._told < 10:
            return
        self._told = now
        shown = [f"{name} {number(entry[name])}" for name in ("loss", "reward") if entry.get(name) is not None]
        say(f"step {entry['step']} of {entry['steps']}: {', '.join(shown)}")


_CURVES = (
    ("loss", "loss"),
    ("mean_token_accuracy", "tokens right"),
    ("rewards/accuracies", "pairs right"),
    ("rewards/margins", "margin"),
    ("reward", "reward"),
    ("reward_std", "its spread"),
    ("kl", "KL"),
)
_LINES = 10


def _show_log(log: Sequence[Mapping[str, Any]]) -> None:
    """The curves as a table: means over up to ten equal stretches of steps."""
    entries = [entry for entry in log if entry.get("loss") is not None]
    if not entries:
        return
    curves = [(key, head) for key, head in _CURVES if any(entry.get(key) is not None for entry in entries)]
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for head in ("steps", *(head for _, head in curves)):
        table.add_column(head, justify="right")
    count = min(_LINES, len(entries))
    for i in range(count):
        part = entries[i * len(entries) // count : (i + 1) * len(entries) // count]
        ends = [str(part[0]["step"]), str(part[-1]["step"])]
        cells = []
        for key, _ in curves:
            values = [entry[key] for entry in part if entry.get(key) is not None]
            cells.append(number(sum(values) / len(values) if values else None))
        table.add_row("–".join(dict.fromkeys(ends)), *cells)
    out.print(table)


@app.command(epilog="Example:  belie train effect runs/before runs/after --data data/honesty-sft")
def effect(
    runs: Annotated[list[Path], typer.Argument(help="Runs in pairs: BEFORE AFTER [BEFORE AFTER].", metavar="RUNS")],
    data: Annotated[
        Path | None, typer.Option(help="What was trained on (default: as the adapter's record tells).", metavar="DIR")
    ] = None,
    seed: Annotated[int, typer.Option(help="Decides the resamples and the permutations.")] = 0,
    json: o.Json = False,
) -> None:
    """Before against after, paired, on what was not trained on: honesty, knowledge, helpfulness, CSQ, answer bias.

    Written to effect.json beside the run after the training; belie report shows it.
    """
    from belie.training.effect import effect as measure
    from belie.training.effect import save_effect
    from belie.training.words import READINGS, held_words, short, value

    found = measure(*runs, data=data, seed=seed)
    for after in runs[1::2]:
        save_effect(found, after)
    told = found.to_json()
    if json:
        print_json(told)
        return
    recipe = f", recipe {found.recipe}" if found.recipe else ""
    table = Table(
        title=Text(f"{found.after[0].label} after training{recipe}"),
        title_justify="left",
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
    )
    table.add_column("")
    table.add_column("score")
    for head in ("before", "after", "change", "95% interval", "p (Holm)"):
        table.add_column(head, justify="right")
    table.add_column("reading")
    question = ""
    for line, entry in zip(found.lines, told["lines"], strict=True):
        one = line.contrast
        span = (
            "" if entry["low"] is None else f"{value(entry, 'low', signed=True)} to {value(entry, 'high', signed=True)}"
        )
        table.add_row(
            line.question if line.question != question else "",
            short(one.name),
            *(value(entry, name) for name in ("first", "second")),
            value(entry, "difference", signed=True),
            span,
            "<0.001" if one.p_holm < 0.001 else number(one.p_holm),
            READINGS[line.reading],
        )
        question = line.question
    out.print(table)
    out.print(
        Text(
            f"Measured on {held_words(told)}. Change = after − before, paired; Holm over "
            f"{found.comparisons} scores. As before: inside 5 points (0.10 for ρ, β). "
            "Better, worse, higher, lower: the interval lies on that side of 0.",
            style="dim",
        )
    )
    for note in found.notes:
        out.print(Text(note, style="dim"))
