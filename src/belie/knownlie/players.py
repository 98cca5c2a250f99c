"""Who plays: Belie's model strings as Inspect models, and what a model can do.

Knows: ``local/…``, ``http/…`` and Inspect's own strings.
Does not know: the roles' prompts.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from inspect_ai.model import Model, ModelInfo, get_model, set_model_info

from belie.respondents.base import BadInput


def inspect_model(name: str | Model, base_url: str | None = None, **model_args: Any) -> Model:
    """The Inspect model behind a model string of Belie; a ``Model`` passes through.

    ``local/<catalogue name | folder | file.gguf | hub id>`` runs in process with transformers; ``http/<model>`` asks an
    OpenAI-compatible server at ``base_url`` (or OPENAI_BASE_URL) with the key in OPENAI_API_KEY, if there is one;
    anything else is Inspect's, found where Inspect finds it (``base_url`` is not its server). Raises ``BadInput`` where
    the string names nothing that can be used.
    """
    if isinstance(name, Model):
        return name
    kind, _, rest = name.partition("/")
    if not rest:
        raise BadInput(f"{name!r} is no model: write provider/model, such as local/smollm2-135m or anthropic/….")
    try:
        if kind == "local":
            from belie.models.adapters import whole
            from belie.models.conversion import quiet
            from belie.models.resolve import resolve

            folder = whole(resolve(name))
            label = Path(rest).name if Path(rest).expanduser().exists() else rest
            # known to Inspect beforehand: it would look an unknown model up by making it a second time, from the hub
            set_model_info(f"hf/{label}", ModelInfo(model=label))
            with quiet():
                return get_model(f"hf/{label}", model_path=str(folder), **model_args)
        if kind == "http":
            url = base_url or os.environ.get("OPENAI_BASE_URL")
            if not url:
                raise BadInput(f"{name} needs a server: give --base-url, or set OPENAI_BASE_URL.")
            key = os.environ.get("OPENAI_API_KEY") or "none"
            return get_model(f"openai-api/belie/{rest}", base_url=url, api_key=key, **model_args)
        return get_model(name, **model_args)
    except BadInput:
        raise
    except Exception as error:  # Inspect's own prerequisites: unknown provider, missing package, missing key
        first = next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
        raise BadInput(f"The model {name!r} can't be used: {first}") from error


def takes_tools(model: Model) -> bool:
    """Whether tools can be offered as native calls.

    A local model takes them if its chat template speaks of tools. Others are believed to; a provider that refuses
    is noticed at the first call (``agent``).
    """
    if type(model.api).__name__ != "HuggingFaceAPI":
        return True
    template = getattr(getattr(model.api, "tokenizer", None), "chat_template", None)
    return "tools" in str(template or "")
