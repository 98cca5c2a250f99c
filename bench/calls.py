"""Row 5: calls for a ±0.02 interval on ρ̄ and δ̄ with a noisy respondent: exact answers under the stopping rule, against
one sampled answer an item and the same number of chains at every n, the paper's way of asking.

Counted from simulated respondents (`bench/stopping.py` has the rule's coverage and all profiles); no clock. Follow-ups
count as calls. Another five simulations give the spread.
"""

from __future__ import annotations

import argparse
import statistics

from figures import REPEATS, Figure
from stopping import needed

from belie.respondents.profiles import parse_profile

HALF_WIDTH = 0.02


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--profile", default="guesser")
    parser.add_argument("--repeats", type=int, default=REPEATS)
    parser.add_argument("--quick", action="store_true", help="one simulation")
    options = parser.parse_args()
    seeds = range(1 if options.quick else options.repeats)
    found = [needed(parse_profile(options.profile), HALF_WIDTH, sample=False, seed=seed) for seed in seeds]
    for name, field, goal, row in (
        ("one sampled answer an item, chains alike at every n", "paper_way_calls", 5.0, 5),
        ("one sampled answer an item, chains where they narrow most", "sampled_calls", None, 0),
    ):
        ratios = [one[field] / one["calls"] for one in found]
        Figure(
            f"calls to ±{HALF_WIDTH:g} on ρ̄ and δ̄, {options.profile}: {name} / exact under the stopping rule",
            statistics.median(ratios),
            "calls",
            statistics.median(one["calls"] for one in found),
            statistics.median(one[field] for one in found),
            "≥" if goal else None,
            goal,
            row,
            (min(ratios), max(ratios)),
            len(found),
            {"paper": found[0]["paper_calls"], "half_width_of_the_paper": found[0]["paper_half_width"]},
        ).show()


if __name__ == "__main__":
    main()
