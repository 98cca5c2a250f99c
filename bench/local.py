"""Rows 3 and 4: exact CSQ answers from an open model in this process, against lm-evaluation-harness ``hf`` and against
bare forward passes. Same items, same weights, same threads, bfloat16.

Belie: first answers and the follow-ups on the branch of the wrong first answer, as `respondents.local` gives them.
lm-evaluation-harness: the log-likelihoods of "Yes" and "No" after the very same prompts, at its fastest batch size here
(``--batch``). Bare passes: the model as transformers makes it, over as many tokens as could answer at the fewest (every
beginning that prompts share counted once), in rows of the length that the prompts have and batches without padding,
logits at the last place only; they give no answers, they are what the hardware can do.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import Any

import belie.models  # noqa: F401  (first: it settles how threads wait)

# isort: split
import torch
from figures import REPEATS, Figure, compared, in_turn, say
from memory import peak_mb, resident_mb
from peers.environment import Harness
from transformers import AutoModelForCausalLM, AutoTokenizer

from belie.csq.questions import PAPER_SIZES, Design, Variant
from belie.items import Item, Pending, word
from belie.models import resolve
from belie.respondents.local import LocalRespondent, open_local
from belie.respondents.local.chat import Chat
from belie.respondents.local.packing import shared

MODEL = "smollm2-135m"
#: Tokens of a bare pass, unless told otherwise.
ROW_TOKENS = 1024


def prompts(items: Sequence[Item], chat: Chat) -> dict[tuple[str, str], str]:
    """The text of every prompt by (item, step)."""
    found = {}
    for item in items:
        found[item.id, "first"] = chat.prompt(item, None)
        if item.followup is not None:
            found[item.id, "followup"] = chat.prompt(item, word(not item.truth))
    return found


def fewest(sequences: Sequence[Sequence[int]]) -> int:
    """Tokens that have to go through the model at least: every shared beginning once."""
    before: Sequence[int] = ()
    total = 0
    for sequence in sorted(map(tuple, sequences)):
        total += len(sequence) - shared(before, sequence)
        before = sequence
    return total


async def answers(respondent: LocalRespondent, items: Sequence[Item]) -> dict[tuple[str, str], tuple[float, float]]:
    told = {}
    async for answer in respondent.ask(map(Pending, items)):
        assert answer.p is not None
        told[answer.item, answer.step] = answer.p
    return told


class Bare:
    """The model alone: as many tokens as are needed at the fewest, in rows as long as each n's prompts are."""

    def __init__(self, folder: str, groups: Sequence[Sequence[Sequence[int]]], row_tokens: int) -> None:
        self._model: Any = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.bfloat16).eval()
        self._batches: list[torch.Tensor] = []
        self.tokens = 0
        for group in groups:
            length = round(sum(map(len, group)) / len(group))
            rows = math.ceil(fewest(group) / length)
            ids = torch.tensor([(list(group[i % len(group)]) * 2)[:length] for i in range(rows)])
            self._batches += ids.split(max(1, row_tokens // length))
            self.tokens += ids.numel()

    @torch.inference_mode()
    def run(self) -> float:
        start = time.perf_counter()
        for ids in self._batches:
            self._model(input_ids=ids, use_cache=False, logits_to_keep=1).logits[:, -1].float().softmax(-1)
        return time.perf_counter() - start


def agreement(ours: dict[tuple[str, str], tuple[float, float]], theirs: Sequence[Sequence[float]]) -> float:
    """The share of prompts at which both find the same word likelier."""
    same = [(yes > no) == (told[0] > told[1]) for (yes, no), told in zip(ours.values(), theirs, strict=True)]
    return sum(same) / len(same)


def compare(
    chains: int, sizes: tuple[int, ...], repeats: int, batch: int, threads: int, peer: bool, row_tokens: int
) -> None:
    folder = str(resolve(MODEL))
    items = list(Design(Variant(), sizes, chains).items())
    chat = Chat(AutoTokenizer.from_pretrained(folder), thinking=False)
    texts = prompts(items, chat)
    tokens = dict(zip(texts, chat.tokens(list(texts.values())), strict=True))
    by_n = {n: [tokens[key] for item in items if item.n == n for key in tokens if key[0] == item.id] for n in sizes}
    least, plain = fewest(list(tokens.values())), sum(map(len, tokens.values()))
    respondent = open_local(f"local/{MODEL}", dtype="bfloat16", threads=threads)
    torch.set_num_threads(threads)
    bare = Bare(folder, list(by_n.values()), row_tokens)
    told: dict[tuple[str, str], tuple[float, float]] = {}

    def ours() -> float:
        start = time.perf_counter()
        told.update(asyncio.run(answers(respondent, items)))
        return time.perf_counter() - start

    say(f"{len(items)} items, {len(texts)} prompts, {plain} tokens, {least} at the fewest; warming up")
    ours()
    bare.run()
    before = respondent.provenance()["tokens_computed"]
    ours()
    computed = respondent.provenance()["tokens_computed"] - before
    sizes_told = {"items": len(items), "prompts": len(texts), "tokens": plain, "fewest": least, "computed": computed}
    Figure(
        "tokens computed / fewest that could answer",
        computed / least,
        "tokens",
        computed,
        least,
        sense="≤",
        goal=1.05,
        notes={"of_all_prompts": computed / plain, "packed": respondent.provenance()["packed"], **sizes_told},
    ).show()
    say("Belie, bare passes (seconds)")
    mine, theirs = in_turn(repeats, ours, bare.run)
    # Bare rows are rounded up to whole ones: their time is scaled to the fewest tokens.
    theirs = [seconds * least / bare.tokens for seconds in theirs]
    rate = {"tokens_a_second": computed / sorted(mine)[len(mine) // 2], "threads": threads, "row_tokens": row_tokens}
    compared(
        "local exact CSQ: speed / bare passes over the fewest tokens",
        mine,
        theirs,
        more_is_better=True,
        unit="s",
        sense="≥",
        goal=0.85,
        row=4,
        notes=rate,
    ).show()
    del bare
    if not peer:
        return
    say("Belie, lm-evaluation-harness hf (seconds)")
    work = {"prompts": list(texts.values()), "answers": ["Yes", "No"]}
    with Harness("hf", folder, str(threads), str(batch), work=work) as harness:
        last: dict[str, Any] = {}

        def hf() -> float:
            last.update(harness.run())
            return last["seconds"]

        mine, theirs = in_turn(repeats, ours, hf)
        same = agreement({key: told[key] for key in texts}, last["results"])
        compared(
            "local exact CSQ: speed / lm-evaluation-harness hf",
            mine,
            theirs,
            more_is_better=True,
            unit="s",
            sense="≥",
            goal=3,
            row=3,
            notes={"same_word_likelier": same, "batch": batch, "threads": threads, "peer": harness.versions},
        ).show()


def long_cells(chains: int) -> None:
    """In a process of its own: MB that answering 80-node cells adds at its peak to the loaded, warm model."""
    respondent = open_local(f"local/{MODEL}", dtype="bfloat16")
    asyncio.run(answers(respondent, list(Design(Variant(), (3,), 2).items())))
    before = resident_mb()
    asyncio.run(answers(respondent, list(Design(Variant(), (80,), chains, seed=1).items())))
    print(json.dumps({"model_mb": before, "peak_mb": peak_mb()}))


def memory(counts: Sequence[int]) -> None:
    over = {}
    for chains in counts:
        command = [sys.executable, __file__, "--long-cells", str(chains)]
        told = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
        over[chains] = told["peak_mb"] - told["model_mb"]
    first, last = counts[0], counts[-1]
    Figure(
        f"local: peak memory over the model on 80-node cells, {last} chains / {first} chains",
        over[last] / over[first],
        "MB",
        over[last],
        over[first],
        notes={"mb_by_chains": over},
    ).show()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--chains", type=int, default=2, help="chains at each n of the paper's grid")
    parser.add_argument("--repeats", type=int, default=REPEATS)
    parser.add_argument("--batch", type=int, default=4, help="batch size of lm-evaluation-harness (4 was its fastest)")
    parser.add_argument("--row-tokens", type=int, default=ROW_TOKENS, help="tokens of a bare pass")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--quick", action="store_true", help="n = 3, 5, 10, twice")
    parser.add_argument("--no-peer", action="store_true", help="without lm-evaluation-harness")
    parser.add_argument("--long-cells", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.long_cells:
        long_cells(options.long_cells)
        return
    sizes, repeats = ((3, 5, 10), 2) if options.quick else (PAPER_SIZES, options.repeats)
    compare(options.chains, sizes, repeats, options.batch, options.threads, not options.no_peer, options.row_tokens)
    memory((1, 2) if options.quick else (2, 8))


if __name__ == "__main__":
    main()
