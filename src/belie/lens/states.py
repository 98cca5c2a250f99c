"""What a model holds and says at the places of a probe: residual states of all layers, masses of Yes and No.

Knows: chat templates, places as tokens, forward passes.
Does not know: lenses, labels.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import DynamicCache

from belie.items import Item, word
from belie.lens.anatomy import Anatomy, Edit, watched
from belie.lens.probes import PLACES, Probe
from belie.respondents.base import BadInput
from belie.respondents.local.chat import Chat
from belie.respondents.local.forms import Forms, forms
from belie.respondents.local.model import Loaded

Told = Callable[[int, int, str], None]


@dataclass(frozen=True, slots=True)
class States:
    """``states`` (probes, places, L + 1, width), float32; ``masses`` (probes, 2): next-token mass of Yes and of No;
    ``easy`` (probes, 2): the same for the easy follow-up after the wrong first answer, nan where none is asked."""

    states: NDArray[np.float32]
    masses: NDArray[np.float64]
    easy: NDArray[np.float64]


class _Shared:
    """Keys and values of the prompt before: what the next one begins with alike is not computed again.

    Only where every layer attends to everything, so that the cache can be cut back to any length.
    """

    def __init__(self, config: Any) -> None:
        told = config.get_text_config()
        kinds = set(getattr(told, "layer_types", None) or ["full_attention"])
        self._usable = kinds == {"full_attention"} and not getattr(told, "sliding_window", None)
        self._ids: list[int] = []
        self.cache = DynamicCache()

    def next(self, ids: Sequence[int], most: int) -> int:
        """How many of the new prompt's tokens, ``most`` at most, the cache now holds."""
        same = next((i for i, (a, b) in enumerate(zip(self._ids, ids, strict=False)) if a != b), len(self._ids))
        kept = min(same, most, len(ids) - 1) if self._usable else 0
        if 0 < kept < len(self._ids):
            self.cache.crop(kept - len(self._ids))  # negative: so many off its end
        elif not kept:
            self.cache = DynamicCache()
        self._ids = list(ids)
        return kept


class Reader:
    """Puts probes to a model, one a pass, without padding. Probes that begin alike should follow one another."""

    def __init__(self, loaded: Loaded, parts: Anatomy) -> None:
        self._loaded = loaded
        self._parts = parts
        self._chat = Chat(loaded.tokenizer, thinking=False)
        self._forms: Forms = forms(loaded.tokenizer)
        model = loaded.model.get_base_model() if hasattr(loaded.model, "get_base_model") else loaded.model
        named = inspect.signature(model.forward).parameters
        self._cache = "cache" if "cache" in named else "past_key_values"  # transformers calls it either
        if not (self._forms.yes and self._forms.no):
            raise BadInput("This model has no single token for Yes or for No, so its answer can't be read.")

    def states(self, probes: Sequence[Probe], told: Told | None = None) -> States:
        """States and masses of every probe, and the masses of its easy question where it has one."""
        held = np.empty((len(probes), len(PLACES), self._parts.layers + 1, self._parts.width), np.float32)
        masses = np.empty((len(probes), 2))
        easy = np.full((len(probes), 2), np.nan)
        shared = _Shared(self._loaded.model.config)
        for i, probe in enumerate(probes):
            if told is not None:
                told(i, len(probes), "probes")
            text = self.prompt(probe.item)
            ids, places = self.places(probe, text)
            kept = shared.next(ids, places[0])
            with watched(self._parts) as states:
                masses[i] = self._answer(ids[kept:], shared)
                places = [place - kept for place in places]
                held[i] = torch.stack([state[0, places] for state in states], 1).float().cpu().numpy()
            if probe.item.followup is not None:
                easy[i] = self._masses(self.prompt(probe.item, word(not probe.item.truth)), shared)
        return States(held, masses, easy)

    def masses(self, probes: Sequence[Probe], edits: Mapping[int, Edit]) -> NDArray[np.float64]:
        """The masses of Yes and No with the layers in ``edits`` changed on their way: (probes, 2)."""
        shared = _Shared(self._loaded.model.config)
        with watched(self._parts, edits):
            return np.array([self._masses(self.prompt(probe.item), shared) for probe in probes])

    def prompt(self, item: Item, said: str | None = None) -> str:
        """The conversation up to the answer. A template that takes no system message gets it before the question."""
        try:
            return self._chat.prompt(item, said)
        except BadInput:
            if item.system is None:
                raise
            whole = replace(item, system=None, question=f"{item.system}\n\n{item.question}")
            return self._chat.prompt(whole, said)

    def places(self, probe: Probe, prompt: str) -> tuple[list[int], list[int]]:
        """The prompt's tokens, and which of them are the `PLACES`: the last that a place's text reaches into.

        Raises BadInput for a tokenizer that does not tell where its tokens lie, or a template that changes the text.
        """
        question = probe.item.question
        start = prompt.find(question)
        if start < 0:
            question = question.strip()
            start = prompt.find(question)
        if start < 0:
            raise BadInput("This model's chat template changes the text of a question, so no place in it can be found.")
        if not getattr(self._loaded.tokenizer, "is_fast", False):
            raise BadInput("This model's tokenizer does not tell where its tokens lie in a text, as the lens needs.")
        told = self._loaded.tokenizer(prompt, add_special_tokens=False, return_offsets_mapping=True)
        starts = [begin for begin, _ in told["offset_mapping"]]
        ends = [start + probe.seen, start + len(question), len(prompt)]
        return told["input_ids"], [max(i for i, begin in enumerate(starts) if begin < end) for end in ends]

    def _masses(self, prompt: str, shared: _Shared) -> tuple[float, float]:
        ids = self._chat.tokens([prompt])[0]
        return self._answer(ids[shared.next(ids, len(ids)) :], shared)

    @torch.no_grad()
    def _answer(self, ids: Sequence[int], shared: _Shared) -> tuple[float, float]:
        """The masses after the tokens that ``shared`` does not hold yet."""
        tokens = torch.tensor([list(ids)], device=self._parts.device)
        held = {self._cache: shared.cache}
        out = self._loaded.model(input_ids=tokens, use_cache=True, logits_to_keep=1, **held)
        p = torch.softmax(out.logits[0, -1].double(), -1)
        return min(float(p[list(self._forms.yes)].sum()), 1.0), min(float(p[list(self._forms.no)].sum()), 1.0)
