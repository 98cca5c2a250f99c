"""An item's two turns as token ids, through the model's own chat template.

Knows: chat templates, tokenizers.
Does not know: forward passes, what an answer means.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from belie.items import Item
from belie.respondents.base import BadInput
from belie.respondents.talk import spoken

_OPENERS = ("<think>", "<thinking>", "<reasoning>")


class Chat:
    """Makes prompts that end where the respondent's next answer begins.

    ``thinking`` leaves a reasoning model's template as it is; else the template is told to leave reasoning out, which
    those that know no such switch ignore.
    """

    def __init__(self, tokenizer: Any, thinking: bool) -> None:
        self.tokenizer = tokenizer
        self.thinking = thinking

    def prompt(self, item: Item, said: str | None) -> str:
        """The text up to the first answer (``said`` None) or, after ``said``, up to the answer to the follow-up."""
        messages = [{"role": role, "content": text} for role, text in spoken(item, said)]
        switch = {} if self.thinking else {"enable_thinking": False}
        try:
            text = self.tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True, **switch)
        except Exception as error:  # templates raise what they like
            raise BadInput(
                f"The model's chat template refuses the conversation ({' '.join(str(error).split())[:160]})"
                + (": it may take no system message." if item.system is not None else ".")
            ) from error
        if not self.thinking and text.rstrip().endswith(_OPENERS):
            raise BadInput(
                "This model reasons before it answers, so its next token is no answer: ask it with --sample and "
                "--max-tokens large enough for its reasoning."
            )
        return text

    def tokens(self, texts: Sequence[str]) -> list[list[int]]:
        """The token ids of prompts; the template has written all special tokens."""
        if not texts:
            return []
        return self.tokenizer(list(texts), add_special_tokens=False)["input_ids"]

    def text(self, tokens: Sequence[int]) -> str:
        """The visible text of drawn tokens."""
        return self.tokenizer.decode(list(tokens), skip_special_tokens=True)

    @staticmethod
    def opens_reasoning(prompt: str) -> str:
        """The tag that the prompt itself ends with, where the template begins the reasoning, else an empty string."""
        return next((tag for tag in _OPENERS if prompt.rstrip().endswith(tag)), "")
