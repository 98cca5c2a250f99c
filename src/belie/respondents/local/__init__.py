"""Open weights in this process: what answers to ``local/…``.

Knows: loading, forward passes, next-token masses, draws.
Does not know: where questions come from, where answers go.
"""

import belie.models  # noqa: F401  (first: it settles how threads wait, before torch is loaded)
from belie.respondents.local.respondent import LocalRespondent, open_local

__all__ = ["LocalRespondent", "open_local"]
