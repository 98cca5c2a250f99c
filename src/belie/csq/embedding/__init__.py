"""Hidden states at the last token before an answer, and whether they tell a contradiction from a plain error.

Knows: what is captured, kept, pictured and tested.
Does not know: scores of answers (`belie.csq.scores`).
"""

from belie.csq.embedding.separation import Separation, separation

__all__ = ["Separation", "separation"]
