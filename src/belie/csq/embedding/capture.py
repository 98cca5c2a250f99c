"""Hidden states of open weights at the last token of a prompt, after each block, and the masses of Yes and No there.

Knows: transformers' decoder blocks, and the passes of the local respondent.
Does not know: which items, why, where the states are kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from belie.items import Item
from belie.models import resolve
from belie.respondents.base import BadInput
from belie.respondents.local.chat import Chat
from belie.respondents.local.engine import Engine
from belie.respondents.local.forms import forms
from belie.respondents.local.model import find_device, find_dtype, load, weights_sha256

#: The largest finite float16; a state beyond it is kept at it.
_MOST = 65504.0


@dataclass(frozen=True, slots=True)
class State:
    """One prompt: ``hidden`` (L, d) after blocks 1 … L, before the final norm; next-token masses (Yes, No)."""

    hidden: NDArray[np.float16]
    p: tuple[float, float]


class _Watched(Engine):
    """An engine that keeps what each block gives at the places whose logits are read."""

    def __init__(self, model: Any, budget: int) -> None:
        self.seen: list[torch.Tensor] = []
        decoder = model.get_decoder() if hasattr(model, "get_decoder") else None
        blocks = getattr(decoder, "layers", None)
        if not blocks:
            raise BadInput(f"The blocks of a {type(model).__name__} are not known, so its hidden states can't be read.")
        self.blocks = len(blocks)
        for block in blocks:
            block.register_forward_hook(self._look)
        super().__init__(model, budget)

    def _look(self, _: Any, __: Any, output: Any) -> None:
        hidden = output[0] if isinstance(output, tuple) else output
        if self._rows is not None:
            self.seen.append(hidden.flatten(0, 1)[self._rows].float().cpu())


class Reader:
    """Open weights whose states are read. ``thinking`` leaves a reasoning model's template as it is.

    Raises BadInput for a model that can't be loaded or whose blocks are not known.
    """

    def __init__(
        self,
        string: str,
        *,
        thinking: bool = False,
        device: str | None = None,
        batch_tokens: int | None = None,
        threads: int | None = None,
    ) -> None:
        place = find_device(device)
        loaded = load(resolve(string), place, find_dtype(None, place))
        if threads is not None:
            torch.set_num_threads(threads)
        self._chat = Chat(loaded.tokenizer, thinking)
        self._forms = forms(loaded.tokenizer)
        self._engine = _Watched(loaded.model, batch_tokens or (2048 if place.type == "cpu" else 16_384))
        self.layers = self._engine.blocks
        self.dtype = str(loaded.model.dtype).removeprefix("torch.")
        self.folder: Path = loaded.folder
        self.sha256 = weights_sha256(loaded.folder)

    def read(self, prompts: Sequence[tuple[Item, str | None]]) -> Iterator[tuple[int, State]]:
        """The state of each prompt by its place in ``prompts``, pass by pass, in the order that shares most.

        A prompt is an item with what was said first (None: before the first answer). Memory is that of one pass.
        """
        texts = [self._chat.prompt(item, said) for item, said in prompts]
        engine = self._engine
        engine.seen.clear()
        for done in engine.passes(self._chat.tokens(texts)):
            hidden = torch.stack(engine.seen, 1).clamp_(-_MOST, _MOST).numpy().astype(np.float16)
            engine.seen.clear()
            masses = torch.softmax(done.logits.double(), -1)
            yes = masses[:, list(self._forms.yes)].sum(-1).tolist()
            no = masses[:, list(self._forms.no)].sum(-1).tolist()
            for row, index in enumerate(done.indices):
                yield index, State(hidden[row], (yes[row], no[row]))
