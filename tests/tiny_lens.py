"""Tiny models for the lens: a linear one whose Jacobian is known, and a random Llama with a tokenizer over words; and
states that no model made."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from torch import nn
from transformers import AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from belie.lens.folder import Lens
from belie.lens.probes import PLACES, Probe
from belie.lens.states import States
from belie.respondents.local.model import Loaded

LAYERS, WIDTH = 8, 24

WORDS = [*"abcdefghijklmnop", "Yes", "No", "yes", "no"]
TEMPLATE = (
    "{% for m in messages %}{{ '<s> ' + m['role'] + ' ' + m['content'] + ' <e> ' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<s> assistant' }}{% endif %}"
)


def tokenizer() -> PreTrainedTokenizerFast:
    vocabulary = {text: i for i, text in enumerate(["<pad>", "<s>", "<e>", "user", "assistant", *WORDS])}
    core = Tokenizer(models.WordLevel(vocabulary, unk_token="<pad>"))
    core.pre_tokenizer = pre_tokenizers.WhitespaceSplit()  # type: ignore[assignment]
    made = PreTrainedTokenizerFast(tokenizer_object=core, pad_token="<pad>", eos_token="<e>", bos_token="<s>")
    made.chat_template = TEMPLATE
    return made


class Mixing(nn.Module):
    """h_t ← h_t + A h_t + B · mean of h_1 … h_t: linear, and causal as attention is."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.a = nn.Parameter(torch.randn(width, width) * 0.2)
        self.b = nn.Parameter(torch.randn(width, width) * 0.5)

    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        steps = torch.arange(1, hidden_states.shape[1] + 1)[:, None]
        return hidden_states + hidden_states @ self.a.T + hidden_states.cumsum(1) / steps @ self.b.T


class Linear(nn.Module):
    """As transformers shapes a causal language model, as far as the lens looks."""

    def __init__(self, width: int = 6, layers: int = 3) -> None:
        super().__init__()
        self.config = SimpleNamespace(get_text_config=lambda: SimpleNamespace(num_hidden_layers=layers))
        size = len(WORDS) + 5
        self.base_model = nn.Module()
        self.base_model.embed = nn.Embedding(size, width)
        self.base_model.layers = nn.ModuleList(Mixing(width) for _ in range(layers))
        self.base_model.norm = nn.RMSNorm(width)
        nn.init.uniform_(self.base_model.norm.weight, 0.5, 1.5)
        self.head = nn.Linear(width, size, bias=False)
        self.base_model.forward = self._base
        self.dtype = torch.float32

    def get_output_embeddings(self) -> nn.Module:
        return self.head

    def _base(self, input_ids: torch.Tensor, use_cache: bool = False) -> torch.Tensor:  # noqa: ARG002
        hidden: Any = self.base_model.embed(input_ids)  # type: ignore[operator]
        for layer in self.base_model.layers:  # type: ignore[union-attr]
            hidden = layer(hidden_states=hidden)
        return hidden


def linear(folder: Path) -> Loaded:
    torch.manual_seed(5)
    (folder / "model.safetensors").write_bytes(b"linear")
    return Loaded(Linear().eval(), tokenizer(), folder)


def llama(folder: Path, layers: int = 3, width: int = 32) -> Path:
    made = tokenizer()
    made.save_pretrained(folder)
    torch.manual_seed(3)
    config = LlamaConfig(
        vocab_size=len(WORDS) + 5,
        hidden_size=width,
        intermediate_size=64,
        num_hidden_layers=layers,
        num_attention_heads=4,
        num_key_value_heads=2,
        initializer_range=0.15,
        max_position_embeddings=4096,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
    )
    LlamaForCausalLM(config).save_pretrained(folder)
    return folder


def loaded(folder: Path) -> Loaded:
    model: Any = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    return Loaded(model.eval(), tokenizer(), folder)


def made_lens(seed: int = 1) -> Lens:
    draw = np.random.default_rng(seed)
    contrast = draw.normal(size=(LAYERS + 1, WIDTH)).astype(np.float32)
    return Lens({"centred": False, "layers": LAYERS}, contrast[-1].copy(), contrast)


def noise(probes: list[Probe], seed: int) -> States:
    """States that know nothing, but are alike within a family and a domain, as those of real cases are."""
    draw = np.random.default_rng(seed)
    shape = (len(PLACES), LAYERS + 1, WIDTH)
    shared = {name: draw.normal(size=shape) for name in sorted({p.unit for p in probes} | {p.group for p in probes})}
    states = np.stack([draw.normal(size=shape) + shared[p.unit] + shared[p.group] for p in probes])
    masses = draw.uniform(0.1, 0.5, size=(len(probes), 2))
    return States(states.astype(np.float32), masses, np.full((len(probes), 2), np.nan))
