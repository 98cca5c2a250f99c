"""The methods of training and their options.

Knows: which form of data goes with which method, defaults, and what is out of range.
Does not know: how anything is trained.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from belie.respondents.base import BadInput
from belie.training.rewards import Reward
from belie.training.sets import Form

Method = Literal["sft", "dpo", "kto", "grpo"]
METHODS: tuple[Method, ...] = ("sft", "dpo", "kto", "grpo")
#: The form of data that a method learns from, and what it reads of an example.
FORM: Mapping[Method, Form] = {"sft": "sft", "dpo": "preference", "kto": "unpaired", "grpo": "prompts"}
COLUMNS: Mapping[Method, tuple[str, ...]] = {
    "sft": ("prompt", "completion"),
    "dpo": ("prompt", "chosen", "rejected"),
    "kto": ("prompt", "completion", "label"),
    "grpo": ("prompt", "truth", "easy", "case", "condition"),
}
#: Learning rates of a LoRA by method, where none is named.
RATE: Mapping[Method, float] = {"sft": 2e-4, "dpo": 5e-5, "kto": 5e-5, "grpo": 5e-5}


@dataclass(frozen=True, slots=True)
class Training:
    """How a model is trained. ``rate`` None: the method's own. ``batch`` examples a step (of a device), times
    ``accumulate``; for GRPO a batch holds ``generations`` answers to each prompt and must be a multiple of them.
    ``max_length`` in tokens: longer examples are left out, never cut. ``completion``: the most tokens that GRPO lets an
    answer have. ``episodes``: GRPO plays whole rounds of KnownLie (at most ``turns`` turns of ``completion`` tokens,
    ``max_length`` in all) against ``customer``, else each case is one question (`belie.training.probe`). ``beta``: the
    weight of the reference model (DPO, KTO, GRPO). The rate is constant, so that a training that goes on with more
    steps is the one that had them from the start."""

    method: Method
    steps: int = 100
    rank: int = 16
    alpha: int = 32
    rate: float | None = None
    batch: int = 8
    accumulate: int = 1
    max_length: int = 2048
    generations: int = 4
    completion: int = 256
    temperature: float = 1.0
    beta: float | None = None
    reward: Reward = "right"
    judge: str | None = None
    episodes: bool = False
    customer: str | None = None
    turns: int = 10
    seed: int = 0
    dtype: str | None = None
    device: str | None = None
    threads: int | None = None
    save_every: int = 50
    report_to: tuple[str, ...] = ()
    checkpointing: bool = False

    def options(self) -> dict[str, Any]:
        """As plain values, the method's own rate where none was named."""
        return {**asdict(self), "rate": self.learning_rate, "report_to": list(self.report_to)}

    @property
    def learning_rate(self) -> float:
        return RATE[self.method] if self.rate is None else self.rate

    def check(self) -> None:
        """Raises BadInput for an option out of range."""
        if self.method not in METHODS:
            raise BadInput(f"There is no method {self.method!r}: use {', '.join(METHODS)}.")
        least = {"steps": 1, "rank": 1, "alpha": 1, "batch": 1, "accumulate": 1, "max_length": 8, "generations": 2}
        for name, low in {**least, "completion": 1, "save_every": 1}.items():
            if getattr(self, name) < low:
                raise BadInput(f"{name} is {getattr(self, name)}: it must be {low} or more.")
        if self.method == "grpo" and self.batch % self.generations:
            raise BadInput(
                f"A batch of {self.batch} holds no whole groups of {self.generations} answers: use a multiple."
            )
        if self.episodes and (self.method != "grpo" or self.customer is None or self.judge is None):
            raise BadInput("Episodes are played by grpo, and need --customer and --judge.")
        if self.turns < 1:
            raise BadInput(f"turns is {self.turns}: it must be 1 or more.")
        if self.method == "kto" and self.batch < 2:
            raise BadInput("KTO needs a batch of 2 or more.")


#: Options that may change when a training goes on: how far, how fast, who is told.
FREE = frozenset({"steps", "threads", "save_every", "report_to", "device", "checkpointing"})
