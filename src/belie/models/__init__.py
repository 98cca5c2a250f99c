"""Open models: which Belie knows by name, how they come to this machine, and where they lie.

Knows: the catalogue, the cache, checksums, GGUF files, hub ids.
Does not know: how a model is run or what it is asked (respondents/local).
"""

import os

# Threads that wait for each other sleep instead of spinning. On a shared machine spinning made a run five to ten
# times slower; on an idle one it gains nothing that we could measure. Must be settled before torch is loaded.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

from belie.models.catalogue import CatalogueEntry, Wheel, catalogue
from belie.models.fetch import cache_dir, fetch, fetched
from belie.models.resolve import resolve

__all__ = ["CatalogueEntry", "Wheel", "cache_dir", "catalogue", "fetch", "fetched", "resolve"]
