"""Cotangents pulled back through a model: rows of J_ℓ of one prompt, for all layers at once (METHOD §5).

Knows: one forward pass and one backward pass, for one cotangent or a block of them.
Does not know: prompts' texts, means over prompts, files.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from belie.lens.anatomy import Anatomy, watched

#: Source positions before this one (counted from 0) are left out: "from the 16th on" (METHOD §5).
FIRST_SOURCE = 15


def pulled(parts: Anatomy, prompt: Sequence[int], cotangents: torch.Tensor) -> torch.Tensor:
    """J_ℓᵀ c of one prompt for every cotangent and every layer: (K, width) → (K, L + 1, width), float32.

    J_ℓ is here the mean over source positions s (from the 16th on) of Σ_{t≥s} ∂h_final,t / ∂h_ℓ,s. The cotangent stands
    at all target positions t at once; attention is causal, so what reaches (ℓ, s) comes from t ≥ s only. The last
    layer's is the cotangent itself (J_L = I). The model's weights must not require gradients, ``prompt`` must hold
    more than 15 tokens.
    """
    if len(prompt) <= FIRST_SOURCE:
        raise ValueError(f"a prompt needs more than {FIRST_SOURCE} tokens, this one has {len(prompt)}")
    ids = torch.tensor([list(prompt)], device=parts.device)
    with torch.enable_grad(), watched(parts) as states:
        parts.base(input_ids=ids, use_cache=False)
        final = states[-1]
        wanted = cotangents.to(final)[:, None, None, :].expand(-1, 1, len(prompt), -1)
        if len(cotangents) == 1:
            reached = [one[None] for one in torch.autograd.grad(final, states, wanted[0])]
        else:
            reached = torch.autograd.grad(final, states, wanted, is_grads_batched=True)
        del states[:]
    return torch.stack([one[:, 0, FIRST_SOURCE:].float().mean(1) for one in reached], 1)
