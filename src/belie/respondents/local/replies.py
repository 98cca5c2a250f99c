"""Whole replies, token by token: what sampling does when more than one token is allowed.

Knows: transformers' generation loop, and the noise that turns greedy choice into sampling.
Does not know: items; what a reply means.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from transformers import LogitsProcessor, LogitsProcessorList


class _Noise(LogitsProcessor):
    """Gumbel noise from one stream a row: the largest noisy logit is a draw from softmax(logits / temperature)."""

    def __init__(self, streams: Sequence[np.random.Generator], temperature: float) -> None:
        self.streams = streams
        self.temperature = temperature

    def __call__(self, input_ids: torch.LongTensor, scores: torch.Tensor) -> torch.Tensor:  # noqa: ARG002
        noise = np.stack([stream.gumbel(size=scores.shape[-1]) for stream in self.streams])
        return scores.float() + self.temperature * torch.from_numpy(noise).to(scores.device, torch.float32)


@torch.inference_mode()
def generate(
    model: Any,
    prompts: Sequence[Sequence[int]],
    streams: Sequence[np.random.Generator],
    *,
    temperature: float,
    max_tokens: int,
    pad: int,
    stop: Sequence[int],
) -> list[list[int]]:
    """One reply a prompt, without what follows its end token. Padding is on the left, masked."""
    width = max(map(len, prompts))
    ids = torch.full((len(prompts), width), pad, dtype=torch.int64)
    mask = torch.zeros_like(ids)
    for row, prompt in enumerate(prompts):
        ids[row, width - len(prompt) :] = torch.tensor(list(prompt))
        mask[row, width - len(prompt) :] = 1
    device = next(model.parameters()).device
    noise = LogitsProcessorList([_Noise(streams, temperature)] if temperature > 0 else [])
    out = model.generate(
        input_ids=ids.to(device),
        attention_mask=mask.to(device),
        logits_processor=noise,
        do_sample=False,
        num_beams=1,
        temperature=None,
        top_p=None,
        top_k=None,
        repetition_penalty=1.0,
        max_new_tokens=max_tokens,
        pad_token_id=pad,
        eos_token_id=list(stop) or None,
    )
    replies = []
    for row in out[:, width:].tolist():
        end = next((place for place, token in enumerate(row) if token in stop), len(row))
        replies.append(row[: end + 1])
    return replies
