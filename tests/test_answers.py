"""The parser of replies (METHOD §1.2): a table made by hand, and what must hold for any reply."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from belie.csq.answers import parse, split_reasoning

TABLE = yaml.safe_load((Path(__file__).parent / "data" / "replies.yaml").read_text("utf-8"))
ROWS = [row for rows in TABLE.values() for row in rows]

# Text rich in what the parser looks at, without reasoning tags of its own.
PIECES = (
    "yes|No|not|can't|so|A|7|.|!|?|...|\n| |,|:|*|_|-|/|<b>|</b>|<br>|<|>|&nbsp;|&|\\|{|}|'|\"|é|\u0301|\u200b|ｙ|。|№"
)
PAIRS = '** **|_ _|` `|" "|( )|<b> </b>|\\boxed{ }|<answer> </answer>|\u200f \u200e|>  |Answer: .|“ ”|{"answer":" "}'
pieces = st.lists(st.sampled_from(PIECES.split("|")), max_size=30).map("".join)
replies = st.one_of(st.text(), pieces)
untagged = replies.filter(lambda text: "think" not in text.lower() and "reasoning" not in text.lower())
wrappers = st.sampled_from([tuple(pair.rsplit(" ", 1)) for pair in PAIRS.split("|")])


def test_the_table_has_at_least_150_different_replies() -> None:
    assert len({text for text, *_ in ROWS}) == len(ROWS) >= 150


@pytest.mark.parametrize(("text", "expected"), [row[:2] for row in ROWS], ids=[repr(row[0])[:40] for row in ROWS])
def test_reply_is_read_as_the_table_says(text: str, expected: str) -> None:
    assert parse(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("So it goes. " * 100_000 + "No", "no"),
        ("x" * 1_000_000 + ", yes", "yes"),
        ("Yes " * 250_000, "yes"),
        ("no " + "a " * 500_000 + "yes", "invalid"),
        ("Yes" + "!" * 1_000_000, "yes"),
        ("Yes" + "." * 1_000_000 + "no", "invalid"),
        ("<" * 1_000_000 + "no", "no"),
        ("<b>" * 300_000 + "yes" + "</b>" * 300_000, "yes"),
        ("<think>" * 150_000 + "no" + "</think>" * 150_000 + "Yes", "yes"),
        ("No" + "\u0301\u0316" * 500_000, "invalid"),
        ("&" * 1_000_000 + "no", "no"),
    ],
    ids=[
        "sentences",
        "word",
        "repeated",
        "far opposite",
        "marks",
        "dots",
        "brackets",
        "tags",
        "nested",
        "accents",
        "&",
    ],
)
def test_a_reply_of_a_megabyte_is_read_like_a_short_one(text: str, expected: str) -> None:
    assert parse(text) == expected


@given(replies)
def test_any_text_gives_one_of_three(text: str) -> None:
    assert parse(text) in ("yes", "no", "invalid")


@given(replies.filter(lambda text: text.isascii() and "&" not in text))
def test_letter_case_changes_nothing(text: str) -> None:
    assert parse(text.upper()) == parse(text.lower()) == parse(text)


@given(untagged, st.text().filter(lambda text: "<" not in text))
def test_reasoning_blocks_change_nothing(text: str, thought: str) -> None:
    found = parse(text)
    assert parse(f"<think>{thought}</think>{text}") == found
    assert parse(f"{text}<think>{thought}</think>") == found
    assert parse(f"{text}<think>{thought}") == found


@given(untagged, st.text().filter(lambda text: "<" not in text))
def test_reasoning_is_split_off_whole(text: str, thought: str) -> None:
    visible, reasoning = split_reasoning(f"<think>{thought}</think>{text}")
    assert visible == text.strip()
    assert reasoning == (thought.strip() or None)


@given(st.sampled_from(["Yes", "No"]), st.lists(wrappers, max_size=5))
def test_markup_around_an_answer_changes_nothing(answer: str, around: list[tuple[str, str]]) -> None:
    text = answer
    for before, after in around:
        text = before + text + after
    assert parse(text) == answer.lower()


@given(st.sampled_from(["Yes", "No"]), untagged)
def test_the_opposite_in_the_last_sentence_makes_it_invalid(answer: str, text: str) -> None:
    opposite = "No" if answer == "Yes" else "Yes"
    assert parse(f"{text} {opposite} and {answer}") == "invalid"


def test_text_without_tags_is_returned_as_it_is() -> None:
    assert split_reasoning("  a < b\n") == ("  a < b\n", None)
    assert split_reasoning("Yes") == ("Yes", None)


def test_unclosed_block_hides_the_rest_and_unopened_one_what_came_before() -> None:
    assert split_reasoning("<think>so\nyes") == ("", "so\nyes")
    assert split_reasoning("so no</think>\n\nYes") == ("Yes", "so no")
    assert split_reasoning("<think>one</think>Yes<think>two</think>") == ("Yes", "one\ntwo")
