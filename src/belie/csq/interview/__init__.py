"""Questions put to a respondent after its answers: how sure it is, and what it says to its own contradiction.

Knows: what is asked, how replies are read, what they come to.
Does not know: the scores of the answers themselves (`belie.csq.scores`).
"""
