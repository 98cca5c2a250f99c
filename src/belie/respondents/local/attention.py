"""Attention over a packed row: each segment looks at its own path and at nothing else.

Knows: the interface that transformers calls an attention function by, and the segments of the row under way.
Does not know: which model calls, what the tokens mean.

Linear layers see one row without padding; only attention, a few percent of the work, is done segment by segment.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.nn import functional
from transformers import AttentionInterface

from belie.respondents.local.packing import Packed

NAME = "belie_packed"

#: What a model may pass that changes nothing here. Anything else that is set makes the packed way unusable.
_HARMLESS = frozenset({"position_ids", "use_cache", "cache_position", "is_causal", "layer_idx", "output_attentions"})


class UnsupportedError(Exception):
    """The model asks attention for something that the packed way does not do."""


@dataclass(slots=True)
class Kept:
    """Keys and values of a row, a layer each, shape (1, heads, tokens, head size), and how many tokens that is."""

    layers: dict[int, tuple[torch.Tensor, torch.Tensor]] = field(default_factory=dict)
    tokens: int = 0


class Layout:
    """A packed row on its device: what attention needs in every layer, made once a pass."""

    def __init__(
        self, packed: Packed, device: torch.device, keep: Kept | None = None, base: Kept | None = None
    ) -> None:
        self.keep = keep
        self.base = base
        self.spans = [(segment.start, segment.stop) for segment in packed.segments]
        self.paths = [
            slice(int(s.path[0]), int(s.path[-1]) + 1) if s.contiguous else torch.from_numpy(s.path).to(device)
            for s in packed.segments
        ]
        self.sizes = [(segment.stop - segment.start, len(segment.path)) for segment in packed.segments]
        self.device = device
        self._masks: dict[tuple[int, int, int | None, int], torch.Tensor] = {}
        self._padded: tuple[torch.Tensor, torch.Tensor, torch.Tensor] | None = None

    def mask(self, own: int, total: int, window: int | None, repeat: int, dtype: torch.dtype) -> torch.Tensor:
        """Additive, shape (repeat · own, total): own token i sees places 0 … total − own + i, or the last of them."""
        key = (own, total, window, repeat)
        if key not in self._masks:
            seen = torch.ones(own, total, dtype=torch.bool, device=self.device).tril(total - own)
            if window is not None and total > window:
                seen = seen.triu(total - own - window + 1)
            mask = torch.zeros(own, total, dtype=dtype, device=self.device).masked_fill_(~seen, float("-inf"))
            self._masks[key] = mask.repeat(repeat, 1)
        return self._masks[key]

    def padded(self) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """All segments as one rectangle: places of queries, of keys, and how far each query sees.

        Padding repeats a segment's last place; its output is written to the same place with the same value.
        """
        if self._padded is None:
            own, total = max(own for own, _ in self.sizes), max(total for _, total in self.sizes)
            step = torch.arange(own, device=self.device)
            spans = torch.tensor(self.spans, device=self.device)
            queries = torch.minimum(spans[:, :1] + step, spans[:, 1:] - 1)
            keys = torch.zeros(len(self.spans), total, dtype=torch.int64, device=self.device)
            for row, path in enumerate(self.paths):
                places = torch.arange(path.start, path.stop, device=self.device) if isinstance(path, slice) else path
                keys[row, : len(places)] = places
            sizes = torch.tensor(self.sizes, device=self.device)
            last = sizes[:, 1:] - sizes[:, :1] + torch.minimum(step, sizes[:, :1] - 1)
            self._padded = (queries, keys, last)
        return self._padded


_current: ContextVar[Layout] = ContextVar("packed row under way")


@contextmanager
def laid_out(layout: Layout) -> Iterator[None]:
    """Attention inside the block is over this row."""
    token = _current.set(layout)
    try:
        yield
    finally:
        _current.reset(token)


def packed_attention(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    scaling: float | None = None,
    dropout: float = 0.0,
    sliding_window: int | None = None,
    **others: Any,
) -> tuple[torch.Tensor, None]:
    """The attention function of transformers for a packed row: (1, heads, tokens, size) → (1, tokens, heads, size)."""
    odd = [name for name, value in others.items() if value is not None and value is not False and name not in _HARMLESS]
    if odd or attention_mask is not None or dropout or query.shape[0] != 1:
        raise UnsupportedError(f"attention options {', '.join(odd) or 'mask, dropout or batch'}")
    layout = _current.get()
    layer: int = module.layer_idx  # type: ignore[assignment]
    if layout.keep is not None:
        layout.keep.layers[layer] = (key, value)
    if layout.base is not None:
        kept_key, kept_value = layout.base.layers[layer]
        key, value = torch.cat([kept_key, key], 2), torch.cat([kept_value, value], 2)
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    if query.device.type != "cpu":
        return _rectangle(layout, query, key, value, scale, sliding_window), None
    heads, size = query.shape[1], value.shape[-1]
    out = torch.empty(query.shape[2], heads, size, dtype=query.dtype)
    one = _matrix if query.dtype == torch.bfloat16 else _fused
    for (start, stop), path, (own, total) in zip(layout.spans, layout.paths, layout.sizes, strict=True):
        q = query[0, :, start:stop]
        k, v = key[0, :, path], value[0, :, path]
        out[start:stop] = one(layout, q, k, v, scale, sliding_window, own, total)
    return out[None], None


def _matrix(
    layout: Layout,
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    scale: float,
    window: int | None,
    own: int,
    total: int,
) -> torch.Tensor:
    """Two matrix products with the query heads of a key head stacked: the fastest on CPUs with bfloat16 units."""
    groups = k.shape[0]
    repeat = q.shape[0] // groups
    stacked = q.reshape(groups, repeat * own, q.shape[-1])
    mask = layout.mask(own, total, window, repeat, q.dtype).expand(groups, -1, -1)
    scores = torch.baddbmm(mask, stacked, k.transpose(1, 2), alpha=scale)
    mixed = torch.bmm(scores.softmax(-1), v)
    return mixed.view(groups, repeat, own, -1).permute(2, 0, 1, 3).reshape(own, groups * repeat, -1)


def _fused(
    layout: Layout,
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    scale: float,
    window: int | None,
    own: int,
    total: int,
) -> torch.Tensor:
    mask = layout.mask(own, total, window, 1, q.dtype)
    mixed = functional.scaled_dot_product_attention(
        q[None], k[None], v[None], attn_mask=mask[None, None], scale=scale, enable_gqa=k.shape[0] != q.shape[0]
    )
    return mixed[0].transpose(0, 1)


def _rectangle(
    layout: Layout, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, scale: float, window: int | None
) -> torch.Tensor:
    """All segments in one call, for devices where many small calls cost more than padding in attention."""
    queries, keys, last = layout.padded()
    places = torch.arange(keys.shape[1], device=keys.device)
    seen = places <= last[:, :, None]
    if window is not None:
        seen &= places > last[:, :, None] - window
    q = query[0].transpose(0, 1)[queries].transpose(1, 2)
    k = key[0].transpose(0, 1)[keys].transpose(1, 2)
    v = value[0].transpose(0, 1)[keys].transpose(1, 2)
    mixed = functional.scaled_dot_product_attention(
        q, k, v, attn_mask=seen[:, None], scale=scale, enable_gqa=k.shape[1] != q.shape[1]
    )
    out = torch.empty(query.shape[2], query.shape[1], value.shape[-1], dtype=query.dtype, device=query.device)
    out[queries.reshape(-1)] = mixed.transpose(1, 2).reshape(-1, *out.shape[1:])
    return out[None]


AttentionInterface.register(NAME, packed_attention)
