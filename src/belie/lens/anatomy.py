"""The parts of a causal language model that the lens touches: blocks, final norm, unembedding.

Knows: how transformers names these parts, how to look at the residual stream and how to change it on its way.
Does not know: what is fitted or read.

Layer ℓ of L blocks: h_0 is what the first block takes in, h_ℓ what block ℓ gives out, h_L = h_final, before the norm.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from belie.respondents.base import BadInput
from belie.respondents.local.forms import forms

_NORMS = ("norm", "ln_f", "final_layer_norm", "final_layernorm", "ln_out", "norm_f")

#: What is done to a layer's output on its way: (batch, tokens, width) → the same shape.
Edit = Callable[[torch.Tensor], torch.Tensor]


@dataclass(frozen=True, slots=True)
class Anatomy:
    """``base`` is the model without its head; ``unembedding`` is W_U, shape (vocabulary, width)."""

    base: nn.Module
    blocks: tuple[nn.Module, ...]
    norm: nn.Module
    unembedding: torch.Tensor

    @property
    def layers(self) -> int:
        """L, the number of blocks; there are L + 1 places to look at."""
        return len(self.blocks)

    @property
    def width(self) -> int:
        return self.unembedding.shape[1]

    @property
    def centred(self) -> bool:
        """Whether the final norm takes out the mean: a layer norm."""
        return isinstance(self.norm, nn.LayerNorm)

    @property
    def device(self) -> torch.device:
        return self.unembedding.device

    def folded(self, direction: torch.Tensor) -> torch.Tensor:
        """A row of W_U with the linear part of the final norm folded in: (width,) → u with
        direction · norm(x) = u · x / size(x) + a constant, where size(x) is what the norm divides by.

        For an RMS norm u = γ ⊙ direction; a layer norm also takes out the mean.
        """
        direction = direction.float()
        if isinstance(self.norm, nn.LayerNorm):
            gain = torch.ones_like(direction) if self.norm.weight is None else self.norm.weight.detach().float()
            folded = gain * direction
            return folded - folded.mean()
        weight = next(self.norm.parameters(), direction)
        with torch.no_grad():  # of a vector whose entries are all alike an RMS norm makes its own gain
            gain = self.norm(torch.full((1, 1, self.width), 64.0, device=direction.device, dtype=weight.dtype))
        return gain.float().reshape(-1) * direction


def anatomy(model: Any) -> Anatomy:
    """The parts of a model that transformers loaded (adapters included). Raises BadInput where they are not found."""
    if hasattr(model, "get_base_model"):
        model = model.get_base_model()
    base = model.base_model
    count = model.config.get_text_config().num_hidden_layers
    for parent in base.modules():
        for child in parent.children():
            if isinstance(child, nn.ModuleList) and len(child) == count:
                norm = next((getattr(parent, name) for name in _NORMS if hasattr(parent, name)), None)
                head = model.get_output_embeddings()
                if norm is not None and head is not None:
                    return Anatomy(base, tuple(child), norm, head.weight.detach())
    raise BadInput(
        f"The lens can't find the blocks and the final norm of a {type(model).__name__}: it reads plain decoders, such "
        "as Llama, Qwen, Mistral, Gemma, Phi, GPT-2 and GPT-NeoX."
    )


def contrast(parts: Anatomy, tokenizer: Any) -> torch.Tensor:
    """u of yes minus no: the mean row of W_U over the yes-forms less that over the no-forms, the norm folded in.

    Shape (width,). Raises BadInput for a tokenizer without a token for either word.
    """
    found = forms(tokenizer)
    if not (found.yes and found.no):
        raise BadInput("This model has no single token for Yes or for No, so there is no contrast to look for.")
    rows = parts.unembedding.float()
    return parts.folded(rows[list(found.yes)].mean(0) - rows[list(found.no)].mean(0))


@contextmanager
def watched(parts: Anatomy, edits: Mapping[int, Edit] | None = None) -> Iterator[list[torch.Tensor]]:
    """Inside the block, each forward pass fills the list with h_0 … h_L, each (batch, tokens, width).

    ``edits`` maps layers to what is done to their output before the next block takes it in (and before it is listed).
    Where gradients are on and no weight wants one, h_0 is where the graph begins.
    """
    states: list[torch.Tensor] = []
    edits = edits or {}

    def begin(_: nn.Module, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
        states.clear()
        first = args[0] if args else named["hidden_states"]
        if 0 in edits:
            first = edits[0](first)
        if torch.is_grad_enabled() and not first.requires_grad:
            first.requires_grad_(True)
        states.append(first)
        return ((first, *args[1:]), named) if args else (args, {**named, "hidden_states": first})

    def after(layer: int) -> Callable[..., Any]:
        def keep(_: nn.Module, __: Any, out: Any) -> Any:
            state = out[0] if isinstance(out, tuple) else out
            if layer in edits:
                state = edits[layer](state)
            states.append(state)
            return (state, *out[1:]) if isinstance(out, tuple) else state

        return keep

    hooks = [parts.blocks[0].register_forward_pre_hook(begin, with_kwargs=True)]
    hooks += [block.register_forward_hook(after(i)) for i, block in enumerate(parts.blocks, 1)]
    try:
        yield states
    finally:
        for hook in hooks:
            hook.remove()
