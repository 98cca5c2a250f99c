"""The local respondent: items in, answers out, from a model in this process.

Knows: the two ways of answering (exact masses, draws), and how items are gathered into passes.
Does not know: how a pass is computed (engine), how text becomes tokens (chat).
"""

from __future__ import annotations

import asyncio
import platform
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import Any

import numpy as np
import torch
import transformers

from belie.csq.answers import split_reasoning
from belie.items import Answer, Item, Pending, Step, word
from belie.models import resolve
from belie.models.fetch import Progress
from belie.respondents.base import BadInput
from belie.respondents.conversation import before_followup
from belie.respondents.local.chat import Chat
from belie.respondents.local.draws import generator, pick, uniform
from belie.respondents.local.engine import Engine
from belie.respondents.local.forms import forms
from belie.respondents.local.model import Loaded, find_device, find_dtype, load, weights_sha256
from belie.respondents.local.packing import Places
from belie.respondents.local.replies import generate

#: Pending items looked at together, so that those with a common start meet; memory is bounded by it.
WINDOW = 256
_REPLIES = 16


class LocalRespondent:
    """Open weights asked in this process. Made by `open_local`.

    Exact: each first answer's ``p`` are the next-token masses of the yes-forms and no-forms (METHOD §1.2), and an item
    with a follow-up gets it on the branch of the wrong first answer; ``followups="all"`` adds nothing there. Sampled:
    with ``max_tokens`` None one token is drawn from that same distribution, else a whole reply is.

    In bfloat16 the last bits of a probability may depend on what shares its batch. So that a run which continues ends
    with the very figures of one that was never stopped, batches are always those of the whole window (``aligned``).
    """

    aligned = True

    def __init__(
        self,
        name: str,
        loaded: Loaded,
        *,
        exact: bool,
        temperature: float = 1.0,
        max_tokens: int | None = None,
        batch_tokens: int | None = None,
        seed: int = 0,
        threads: int | None = None,
    ) -> None:
        self.name = name
        self.exact = exact
        self.temperature = temperature
        self.max_tokens = max_tokens
        self.seed = seed
        self._loaded = loaded
        self._whole = not exact and max_tokens is not None and max_tokens > 1
        self._chat = Chat(loaded.tokenizer, thinking=self._whole)
        self._forms = forms(loaded.tokenizer)
        if exact and not (self._forms.yes and self._forms.no):
            raise BadInput(f"{name} has no single token for Yes or for No: ask it with --sample and --max-tokens.")
        limit = torch.get_num_threads() if threads is None else threads
        self._worker = ThreadPoolExecutor(1, "belie-local", initializer=torch.set_num_threads, initargs=(limit,))
        self._threads = limit
        budget = batch_tokens or (2048 if loaded.model.device.type == "cpu" else 16_384)
        self._engine: Engine | None = None
        if not self._whole:
            self._engine = self._worker.submit(Engine, loaded.model, budget).result()
        self._sha256 = weights_sha256(loaded.folder)

    def provenance(self) -> dict[str, Any]:
        """What the answers depend on; ``tokens_computed`` is what went through the model so far."""
        tokenizer, engine = self._loaded.tokenizer, self._engine

        def shown(ids: Sequence[int]) -> list[dict[str, Any]]:
            return [{"id": token, "text": tokenizer.decode([token])} for token in ids]

        return {
            "model": self.name,
            "path": str(self._loaded.folder.resolve()),
            "weights_sha256": self._sha256,
            "mode": "exact" if self.exact else "sampled",
            "temperature": self.temperature,
            "max_tokens": self.max_tokens,
            "seed": self.seed,
            "dtype": str(self._loaded.model.dtype).removeprefix("torch."),
            "device": str(self._loaded.model.device),
            "threads": self._threads,
            "packed": engine is not None and engine.packed,
            "tokens_computed": 0 if engine is None else engine.tokens_computed,
            "yes_forms": shown(self._forms.yes),
            "no_forms": shown(self._forms.no),
            "torch": torch.__version__,
            "transformers": transformers.__version__,
            "python": platform.python_version(),
        }

    async def ask(self, pending: Iterable[Pending]) -> AsyncGenerator[Answer, None]:
        """Answers as passes end, within a window of the pending items in the order that shares most."""
        source = iter(pending)
        answer = self._exact if self.exact else self._sampled
        while window := list(islice(source, WINDOW)):
            if all(one.known for one in window):
                continue
            batches = answer(window)
            while (answers := await self._in_worker(lambda b=batches: next(b, None))) is not None:
                for one in answers:
                    yield one

    async def close(self) -> None:
        """Lets the worker thread end."""
        self._worker.shutdown(wait=False, cancel_futures=True)

    async def _in_worker(self, call: Callable[[], list[Answer] | None]) -> list[Answer] | None:
        return await asyncio.get_running_loop().run_in_executor(self._worker, call)

    # exact

    def _exact(self, window: list[Pending]) -> Iterator[list[Answer]]:
        asked: list[tuple[Pending, Step]] = []
        texts: list[str] = []
        wanted: set[int] = set()
        for one in window:
            if one.first is None:
                wanted.add(len(asked))
            asked.append((one, "first"))
            texts.append(self._chat.prompt(one.item, None))
            if one.item.followup is not None:
                if not one.known:
                    wanted.add(len(asked))
                asked.append((one, "followup"))
                texts.append(self._chat.prompt(one.item, word(not one.item.truth)))
        assert self._engine is not None, "exact answers need an engine"
        sequences = self._chat.tokens(texts)
        waiting: dict[int, Answer] = {}  # follow-ups whose first answer is still to come
        given: set[int] = set()
        for done in self._engine.passes(sequences, wanted=wanted):
            masses = self._masses(done.logits)
            answers: list[Answer] = []
            for index, p in sorted(zip(done.indices, masses, strict=True)):
                if index not in wanted:
                    continue
                one, step = asked[index]
                tokens = (len(sequences[index]), 1)
                answer = Answer(item=one.item.id, step=step, draw=one.draw, p=p, tokens=tokens)
                if step == "followup" and one.first is None and index - 1 not in given:
                    waiting[index] = answer
                    continue
                given.add(index)
                answers.append(answer)
                if step == "first" and index + 1 in waiting:
                    answers.append(waiting.pop(index + 1))
            yield answers

    def _probabilities(self, logits: torch.Tensor) -> torch.Tensor:
        if self.temperature == 0:
            return torch.nn.functional.one_hot(logits.argmax(-1), logits.shape[-1]).double()
        return torch.softmax(logits.double() / self.temperature, -1)

    def _masses(self, logits: torch.Tensor) -> list[tuple[float, float]]:
        probabilities = self._probabilities(logits)
        yes = probabilities[:, list(self._forms.yes)].sum(-1).tolist()
        no = probabilities[:, list(self._forms.no)].sum(-1).tolist()
        return [(min(y, 1.0), min(n, 1.0)) for y, n in zip(yes, no, strict=True)]

    # sampled

    def _sampled(self, window: list[Pending]) -> Iterator[list[Answer]]:
        return self._replies(window) if self._whole else self._draws(window)

    def _draws(self, window: list[Pending]) -> Iterator[list[Answer]]:
        """One token a draw; all draws of an item, and its follow-ups, go on from one pass over its prompt."""
        assert self._engine is not None, "draws of one token need an engine"
        groups: dict[str, list[Pending]] = {}
        for one in window:
            groups.setdefault(one.item.id, []).append(one)
        firsts = list(groups.values())
        wanted = {index for index, group in enumerate(firsts) if not all(one.known for one in group)}
        prompts = self._chat.tokens([self._chat.prompt(group[0].item, None) for group in firsts])
        for done in self._engine.passes(prompts, keep=self._engine.packed, wanted=wanted):
            answers: list[Answer] = []
            due: list[tuple[Pending, str, Places | None]] = []
            for index, logits in zip(done.indices, done.logits, strict=True):
                drawn = self._pick(logits, firsts[index], "first", len(prompts[index]))
                answers += [answer for one, answer in zip(firsts[index], drawn, strict=True) if one.first is None]
                for one, answer in zip(firsts[index], drawn, strict=True):
                    said = before_followup(one, answer, exact=False)
                    if said is not None:
                        due.append((one, said, done.paths.get(index)))
            yield answers
            yield from self._followups(due, done.kept)

    def _followups(self, due: list[tuple[Pending, str, Places | None]], kept: Any) -> Iterator[list[Answer]]:
        assert self._engine is not None, "draws of one token need an engine"
        groups: dict[tuple[str, str], list[Pending]] = {}
        places: dict[tuple[str, str], Places | None] = {}
        items: dict[str, Item] = {}
        for one, said, path in due:
            key = (one.item.id, said.strip())
            groups.setdefault(key, []).append(one)
            places[key], items[one.item.id] = path, one.item
        keys = list(groups)
        sequences = self._chat.tokens([self._chat.prompt(items[item], said) for item, said in keys])
        stems = self._stems(keys, items, places, sequences)
        for done in self._engine.passes(sequences, base=kept, stems=stems):
            answers: list[Answer] = []
            for index, logits in zip(done.indices, done.logits, strict=True):
                group = groups[keys[index]]
                drawn = self._pick(logits, group, "followup", len(sequences[index]))
                answers += [answer for one, answer in zip(group, drawn, strict=True) if not one.known]
            yield answers

    def _stems(
        self,
        keys: list[tuple[str, str]],
        items: dict[str, Item],
        places: dict[tuple[str, str], Places | None],
        sequences: list[list[int]],
    ) -> dict[int, Places]:
        """Where each follow-up's first turn lies in the kept row: only as far as its tokens really are the same."""
        stems: dict[int, Places] = {}
        firsts = self._chat.tokens([self._chat.prompt(items[item], None) for item, _ in keys])
        for index, (key, first, whole) in enumerate(zip(keys, firsts, sequences, strict=True)):
            path = places[key]
            if path is not None and len(first) < len(whole) and whole[: len(first)] == first:
                stems[index] = path
        return stems

    def _pick(self, logits: torch.Tensor, group: list[Pending], step: Step, prompt: int) -> list[Answer]:
        cumulative = self._probabilities(logits).cpu().numpy().astype(np.float64).cumsum()
        answers: list[Answer] = []
        for one in group:
            token = pick(cumulative, uniform(self.seed, one.item.id, one.draw, step))
            text = self._chat.text([token])
            answers.append(Answer(item=one.item.id, step=step, draw=one.draw, text=text, tokens=(prompt, 1)))
        return answers

    def _replies(self, window: list[Pending]) -> Iterator[list[Answer]]:
        window = sorted((one for one in window if not one.known), key=lambda one: len(one.item.question))
        for start in range(0, len(window), _REPLIES):
            part = window[start : start + _REPLIES]
            new = [one for one in part if one.first is None]
            answers = self._speak([(one, None) for one in new], "first")
            yield answers
            firsts = [one.first for one in part if one.first is not None]
            told = [one for one in part if one.first is not None]
            due: list[tuple[Pending, str | None]] = []
            for one, answer in zip(new + told, answers + firsts, strict=True):
                said = before_followup(one, answer, exact=False)
                if said is not None:
                    due.append((one, said))
            yield self._speak(due, "followup")

    def _speak(self, turns: list[tuple[Pending, str | None]], step: Step) -> list[Answer]:
        if not turns:
            return []
        texts = [self._chat.prompt(one.item, said) for one, said in turns]
        prompts = self._chat.tokens(texts)
        tokenizer, model = self._loaded.tokenizer, self._loaded.model
        ends = model.generation_config.eos_token_id
        stop = {tokenizer.eos_token_id, *(ends if isinstance(ends, list) else [ends])} - {None}
        replies = generate(
            model,
            prompts,
            [generator(self.seed, one.item.id, one.draw, step) for one, _ in turns],
            temperature=self.temperature,
            max_tokens=self.max_tokens or 1,
            pad=tokenizer.pad_token_id if tokenizer.pad_token_id is not None else next(iter(stop), 0),
            stop=sorted(stop),
        )
        answers: list[Answer] = []
        for (one, _), text, prompt, reply in zip(turns, texts, prompts, replies, strict=True):
            visible, reasoning = split_reasoning(self._chat.opens_reasoning(text) + self._chat.text(reply))
            tokens = (len(prompt), len(reply))
            answers.append(
                Answer(item=one.item.id, step=step, draw=one.draw, text=visible, reasoning=reasoning, tokens=tokens)
            )
        return answers


def open_local(
    string: str,
    *,
    sample: bool = False,
    temperature: float = 1.0,
    max_tokens: int | None = None,
    batch_tokens: int | None = None,
    device: str | None = None,
    dtype: str | None = None,
    seed: int = 0,
    threads: int | None = None,
    progress: Progress | None = None,
) -> LocalRespondent:
    """Load ``local/<catalogue name | folder | file.gguf | hub id>`` as a respondent; a catalogue model is fetched.

    ``max_tokens`` None draws one token in sampled mode. ``batch_tokens`` bounds the tokens of one pass, ``threads`` the
    processor threads; None leaves both to the machine. Raises `BadInput`.
    """
    if temperature < 0:
        raise BadInput(f"The temperature is {temperature:g}: it must be 0 or more.")
    for what, value in (("max_tokens", max_tokens), ("batch_tokens", batch_tokens), ("threads", threads)):
        if value is not None and value < 1:
            raise BadInput(f"{what} is {value}: it must be 1 or more.")
    place = find_device(device)
    numbers = find_dtype(dtype, place)
    loaded = load(resolve(string, progress), place, numbers)
    return LocalRespondent(
        string,
        loaded,
        exact=not sample,
        temperature=temperature,
        max_tokens=max_tokens,
        batch_tokens=batch_tokens,
        seed=seed,
        threads=threads,
    )
