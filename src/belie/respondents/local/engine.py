"""Forward passes: token sequences in, next-token logits after each of them out.

Knows: how to pack or pad sequences for one causal language model, and to read only the rows that are asked for.
Does not know: items, texts, answers.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch.nn import functional

from belie.respondents.local.attention import NAME, Kept, Layout, laid_out
from belie.respondents.local.packing import Places, Tokens, batches, pack, shared

#: Rows of the output matrix that are turned to float32 at a time, where the matrix is too large to keep so.
_SLICE = 16_384
_KEEP_HEAD = 1 << 26


@dataclass(slots=True)
class Pass:
    """One forward pass: the sequences (by index), float32 logits (sequences, vocabulary), and what it kept."""

    indices: list[int]
    logits: torch.Tensor
    kept: Kept | None = None
    paths: dict[int, Places] = field(default_factory=dict)


class Engine:
    """One model on one device. ``packed`` says whether sequences share a row without padding.

    The packed way is used where the model lets its attention be replaced and a probe gives what the padded way gives;
    else rows are padded on the right (no mask is needed: nothing looks ahead).
    ``tokens_computed`` counts the tokens that went through the model, shared ones once, padding included.
    """

    def __init__(self, model: Any, budget: int = 2048) -> None:
        self.model = model.eval()
        self.budget = budget
        self.device: torch.device = next(model.parameters()).device
        self.tokens_computed = 0
        self._rows: torch.Tensor | None = None
        self._head = model.get_output_embeddings()
        weight = self._head.weight
        self._weight32 = weight.float() if weight.numel() <= _KEEP_HEAD else None
        self._head.forward = self._read
        self.packed = False
        self.packed = self._probe()

    def _read(self, hidden: torch.Tensor) -> torch.Tensor:
        """The output matrix in float32, for the wanted places only: bfloat16 logits near 16 are 0.06 apart."""
        if self._rows is not None:
            hidden = hidden.flatten(0, 1)[self._rows][None]
        hidden = hidden.float()
        bias = None if getattr(self._head, "bias", None) is None else self._head.bias.float()
        if self._weight32 is not None:
            return functional.linear(hidden, self._weight32, bias)
        parts = [functional.linear(hidden, part.float()) for part in self._head.weight.split(_SLICE)]
        logits = torch.cat(parts, -1)
        return logits if bias is None else logits + bias

    @torch.inference_mode()
    def passes(
        self,
        sequences: Sequence[Tokens],
        *,
        keep: bool = False,
        base: Kept | None = None,
        stems: Mapping[int, Places] | None = None,
        wanted: Collection[int] | None = None,
    ) -> Iterator[Pass]:
        """Logits after each sequence, as they come, a batch of sequences a time.

        ``keep`` (packed only) keeps keys and values, so that a later call can go on from them: ``base`` is what was
        kept, ``stems`` the places in it of the first tokens of some sequences. Batches are those of all
        ``sequences``; one that holds none of ``wanted`` is left out.
        """
        for indices in batches(sequences, self.budget):
            if wanted is not None and not any(index in wanted for index in indices):
                continue
            chosen = [sequences[index] for index in indices]
            if self.packed:
                near = {place: stems[index] for place, index in enumerate(indices) if stems and index in stems}
                yield self._packed_pass(indices, chosen, keep, base, near)
            else:
                yield self._padded_pass(indices, chosen)

    def _packed_pass(
        self, indices: list[int], chosen: list[Tokens], keep: bool, base: Kept | None, stems: Mapping[int, Places]
    ) -> Pass:
        offset = base.tokens if base is not None else 0
        packed = pack(chosen, stems, offset)
        kept = Kept(tokens=len(packed.ids)) if keep else None
        self._rows = torch.tensor([int(path[-1]) - offset for path in packed.paths], device=self.device)
        layout = Layout(packed, self.device, kept, base)
        with laid_out(layout):
            logits = self._forward(torch.from_numpy(packed.ids)[None], torch.from_numpy(packed.positions)[None])
        return Pass(indices, logits, kept, dict(zip(indices, packed.paths, strict=True)))

    def _padded_pass(self, indices: list[int], chosen: list[Tokens]) -> Pass:
        rows: list[Tokens] = []
        places: list[tuple[int, int]] = []
        for sequence in chosen:  # a sequence that begins the one before it is read off the same row
            if not rows or shared(rows[-1], sequence) < len(sequence):
                rows.append(sequence)
            places.append((len(rows) - 1, len(sequence) - 1))
        width = max(len(row) for row in rows)
        ids = np.zeros((len(rows), width), np.int64)
        for number, row in enumerate(rows):
            ids[number, : len(row)] = row
        self._rows = torch.tensor([row * width + column for row, column in places], device=self.device)
        return Pass(indices, self._forward(torch.from_numpy(ids), None))

    def _forward(self, ids: torch.Tensor, positions: torch.Tensor | None) -> torch.Tensor:
        self.tokens_computed += ids.numel()
        extra = {} if positions is None else {"position_ids": positions.to(self.device)}
        try:
            return self.model(input_ids=ids.to(self.device), use_cache=False, **extra).logits[0]
        finally:
            self._rows = None

    def _probe(self) -> bool:
        """Whether the packed way works for this model: branching sequences, packed and padded, give the same."""
        draw = np.random.default_rng(0)
        top = int(self._head.weight.shape[0])
        start, left, right, end = (draw.integers(0, top, size).tolist() for size in (19, 23, 30, 11))
        sequences = [start + left, start + right, start + left + end, right, left + end]
        padded = self._all(sequences)
        usual, packed_dtype = self.model.config._attn_implementation, next(self.model.parameters()).dtype
        try:
            self.model.set_attn_implementation(NAME)
            self.packed = True
            packed = self._all(sequences)
            noise = 1e-3 if packed_dtype == torch.float32 else 0.15  # two right ways in bfloat16 differ by 0.03 to 0.07
            good = bool((packed - padded).abs().mean() < noise * padded.std())
        except Exception:  # a model's own code may fail in any way when its attention is replaced
            good = False
        finally:
            self.packed = False
            self.tokens_computed = 0
        if not good and self.model.config._attn_implementation != usual:
            self.model.set_attn_implementation(usual)
        return good

    def _all(self, sequences: Sequence[Tokens]) -> torch.Tensor:
        logits: list[torch.Tensor | None] = [None] * len(sequences)
        for one in self.passes(sequences):
            for row, index in enumerate(one.indices):
                logits[index] = one.logits[row]
        return torch.stack([row for row in logits if row is not None])
