"""Training on what was measured: data sets from runs, thin recipes over TRL and PEFT, and what they did (METHOD §4).

Knows: which round or answer is worth what, and what must never be trained on because it is measured.
Does not know: how models are trained (TRL does), or how runs are made.
"""

from belie.training.effect import Effect, effect
from belie.training.folder import DataSet, read_data, write_data
from belie.training.grades import RECIPES, RESEARCH, Recipe, grade
from belie.training.sets import FORMS, Form, make_set
from belie.training.split import Split

__all__ = [
    "FORMS",
    "RECIPES",
    "RESEARCH",
    "DataSet",
    "Effect",
    "Form",
    "Recipe",
    "Split",
    "effect",
    "grade",
    "make_set",
    "read_data",
    "write_data",
]
