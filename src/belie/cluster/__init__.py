"""The same work on many machines: shards as plain functions, and a Ray cluster that runs them."""

from belie.cluster.merging import merge
from belie.cluster.ray_engine import Outcome, run_many
from belie.cluster.shards import ShardReport, Work, prepare, run_shard
from belie.cluster.storage import open_store, url_of

__all__ = ["Outcome", "ShardReport", "Work", "merge", "open_store", "prepare", "run_many", "run_shard", "url_of"]
