"""The Jacobian lens: what the inner states of open weights say of an answer before it is given (METHOD §5).

Knows: residual streams, Jacobians, readouts; probes made of CSQ items and of KnownLie cases.
Does not know: how runs are asked, scored or stored.
"""

import belie.models  # noqa: F401  (first: it settles how threads wait, before torch is loaded)

#: Raised whenever a fitted lens, a probe's text or a figure read through it could come out otherwise.
LENS_VERSION = 1

__all__ = ["LENS_VERSION"]
