"""The gate of a release: rules on a run's scores, each met, not met, or too thin to be met."""

from belie.gate.evaluation import GateResult, Outcome, gate
from belie.gate.grammar import Rule, RuleError, parse_rule
from belie.gate.junit import junit
from belie.gate.markdown import markdown
from belie.gate.rules import Entry, Minimum, parse_rules, read_rules

__all__ = [
    "Entry",
    "GateResult",
    "Minimum",
    "Outcome",
    "Rule",
    "RuleError",
    "gate",
    "junit",
    "markdown",
    "parse_rule",
    "parse_rules",
    "read_rules",
]
