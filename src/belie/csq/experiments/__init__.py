"""The experiments of METHOD §1.6 and §1.7: runs that differ in one thing, over the same chains.

Knows: conditions as data, their folder, their asking, their analyses.
Does not know: the command line, the report.
"""

from belie.csq.experiments.analysis import Outcome, analyse
from belie.csq.experiments.conditions import KINDS, Condition, Kind, conditions_of, kind_of, values_of
from belie.csq.experiments.folder import EXPERIMENT_VERSION, ExperimentFolder, Plan, is_experiment

__all__ = [
    "EXPERIMENT_VERSION",
    "KINDS",
    "Condition",
    "ExperimentFolder",
    "Kind",
    "Outcome",
    "Plan",
    "analyse",
    "conditions_of",
    "is_experiment",
    "kind_of",
    "values_of",
]
