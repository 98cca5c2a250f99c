"""A driver that a test kills: ``cluster_driver.py ADDRESS PLACE BASE_URL``. Also the work that it does."""

import sys

from belie.cli.options import asking_of
from belie.cluster import Work, run_many
from belie.csq.questions import Design, Variant
from belie.respondents.opening import Options

DESIGN = Design(Variant(), (3, 5), 40, 3)


def served_work(place: str, base_url: str, *, resume: bool = False) -> Work:
    """320 questions in words to the stub server."""
    options = Options(sample=True, seed=3, base_url=base_url, concurrency=2)
    return Work("http/stub", DESIGN, options, asking_of(options, None, "wrong"), place, resume)


if __name__ == "__main__":
    run_many([served_work(sys.argv[2], sys.argv[3])], shards=3, address=sys.argv[1])
