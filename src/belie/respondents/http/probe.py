"""What the first call tells about an endpoint: whether answers can be exact, or why it cannot be used.

Knows: when first-token probabilities count as an answer, and sentences for endpoints that fail.
Does not know: how the call is made.
"""

from __future__ import annotations

from belie.items import Item
from belie.respondents.base import BadInput, BudgetSpent
from belie.respondents.http.calls import Failed
from belie.respondents.http.wire import Said

#: How many next-token probabilities are asked for; the second is what some servers allow at most.
TOP_LOGPROBS = (20, 5)
#: Exact answers need the first token to be the answer: yes- and no-forms together hold at least this much of it.
LEAST_COVERED = 0.5
#: Statuses with which servers refuse probabilities, among other things: then it is tried without.
MAYBE_THE_LOGPROBS = frozenset({400, 403, 404, 422, 500, 501})
#: A server that is not there is soon given up at the start, however many retries a run has.
RECONNECTS = 2

#: Asked where no real question is at hand. Laid out like a real one, so that the first token tells the same.
QUESTION = Item(
    id="probe",
    chain="probe",
    n=3,
    category="linked",
    truth=True,
    question="""\
Can Anna Adler contact Carl Conrad? Answer with one word, Yes or No.

Rules:
- If one person can contact a second, and the second can contact a third, then the first can contact the third.
- That one person can contact another does not mean that the other can contact them.
- If the facts give no way for one person to contact another, then they cannot.

Facts:
Anna Adler can contact Bert Brown.
Bert Brown can contact Carl Conrad.

Answer with one word only: Yes or No.""",
)


def verdict(said: Said, top: int, refused: str) -> tuple[bool, str]:
    """Whether answers can be exact, and why (METHOD §1.2, exact answers).

    ``top``: how many probabilities were asked for, 0 for none because the endpoint ``refused``.
    """
    if not top:
        return False, f"sampled: the endpoint refused probabilities ({refused})"
    if said.p is None:
        return False, "sampled: the endpoint returned no probabilities"
    if said.reasoning is not None:
        return False, "sampled: the model reasons before it answers"
    if not said.covered or sum(said.p) < LEAST_COVERED:
        return False, (
            f"sampled: the {top} most likely first tokens do not cover Yes and No "
            f"(p_yes {said.p[0]:.3f}, p_no {said.p[1]:.3f})"
        )
    return True, f"exact: first-token probabilities, {top} most likely tokens"


def unusable(failed: Failed, where: str, model: str) -> BadInput | BudgetSpent:
    """The sentence for an endpoint whose first call failed for good."""
    why = failed.reason
    if failed.no_credit:
        return BudgetSpent(f"{where} says that the account is used up: {why}")
    if failed.status == 0:
        return BadInput(f"Cannot reach {where}: {why}. Is the server running, and is the base URL right?")
    if failed.status in (401, 403):
        return BadInput(f"{where} refuses the key ({why}). Set OPENAI_API_KEY to one that may use {model}.")
    if failed.status == 404:
        return BadInput(
            f"{where} does not know the model {model}, or the base URL is wrong: does it end in /v1? ({why})"
        )
    return BadInput(f"{where} gave no usable answer to the first question after {failed.tries} tries: {why}")


def is_filtered(failed: Failed) -> bool:
    """Whether a content filter refused this one question, which says nothing about the endpoint."""
    return failed.status == 400 and "filter" in f"{failed.code} {failed.reason}".lower()
