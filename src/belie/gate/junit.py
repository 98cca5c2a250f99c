"""A gate's result as JUnit XML, which continuous integration reads.

Knows: the format. A rule that is not met, or whose data are too thin, is a failure; its type says which.
Does not know: rules.
"""

from __future__ import annotations

import re
from xml.etree import ElementTree

from belie.gate.evaluation import GateResult, figure

#: What XML 1.0 cannot hold, escaped or not.
_IMPOSSIBLE = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit(result: GateResult) -> str:
    """The XML document: one suite, one case a rule."""
    failures = sum(one.verdict != "met" for one in result.outcomes)
    told = {"name": "belie gate", "tests": str(len(result.outcomes)), "failures": str(failures), "errors": "0"}
    suite = ElementTree.Element("testsuite", told)
    properties = ElementTree.SubElement(suite, "properties")
    for kind, runs in (("run", result.runs), ("baseline", result.baseline)):
        for path, respondent in runs:
            ElementTree.SubElement(properties, "property", {"name": kind, "value": _clean(f"{respondent} ({path})")})
    for one in result.outcomes:
        case = ElementTree.SubElement(suite, "testcase", {"classname": "belie.gate", "name": _clean(one.name)})
        m = one.measured
        detail = f"{one.rule.text}\nestimate {figure(m.value)}, interval {figure(m.low)} to {figure(m.high)}\n{m.basis}"
        if one.verdict == "met":
            ElementTree.SubElement(case, "system-out").text = _clean(f"{one.why}\n{detail}")
        else:
            kind = "too thin" if one.verdict == "thin" else "not met"
            failure = ElementTree.SubElement(case, "failure", {"message": _clean(one.why), "type": kind})
            failure.text = _clean(detail)
    suites = ElementTree.Element("testsuites", {k: v for k, v in told.items() if k != "name"})
    suites.append(suite)
    ElementTree.indent(suites)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ElementTree.tostring(suites, encoding="unicode")}\n'


def _clean(text: str) -> str:
    return _IMPOSSIBLE.sub("\ufffd", text)
