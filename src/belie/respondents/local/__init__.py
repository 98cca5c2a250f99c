"""Open weights in this process: what answers to ``local/…``.

Knows: loading, forward passes, next-token masses, draws.
Does not know: where questions come from, where answers go.
"""

import os

# Threads that wait for each other sleep instead of spinning: on a shared machine spinning made a run five to ten
# times slower, on an idle one it gains nothing that we could measure. Must be said before torch is loaded.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

from belie.respondents.local.respondent import LocalRespondent, open_local  # noqa: E402

__all__ = ["LocalRespondent", "open_local"]
