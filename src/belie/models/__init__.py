"""Open models: which Belie knows by name, how they come to this machine, and where they lie.

Knows: the catalogue, the cache, checksums, GGUF files, hub ids.
Does not know: how a model is run or what it is asked (respondents/local).
"""

from belie.models.catalogue import CatalogueEntry, Wheel, catalogue
from belie.models.fetch import cache_dir, fetch, fetched
from belie.models.resolve import resolve

__all__ = ["CatalogueEntry", "Wheel", "cache_dir", "catalogue", "fetch", "fetched", "resolve"]
