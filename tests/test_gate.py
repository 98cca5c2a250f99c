"""The knowledge check: METHOD §2.2."""

# pyright: reportArgumentType=false, reportOptionalMemberAccess=false
# pyright: reportOperatorIssue=false, reportOptionalIterable=false, reportOptionalSubscript=false

import json

import anyio
import pytest
from knownlie_play import is_gate, pack, plan, rounds_of, scripted, stub

from belie.knownlie.gate import GateDesk, gate_question, kpr, read_gate
from belie.knownlie.scene import scene_of

SCENES = [scene_of(pack, case) for case in pack.cases]
OWED = SCENES[0]
RIGHT = "A" if OWED.owed_first else "B"
YES = "yes" if RIGHT == "A" else "no"
OTHER, NO = {"A": "B", "B": "A"}[RIGHT], {"yes": "no", "no": "yes"}[YES]


def said(**fields):
    return json.dumps({"clause": "1", "answer": RIGHT, "a_is_right": YES, **fields})


@pytest.mark.parametrize(
    ("text", "passed", "answer", "reason"),
    [
        (said(), True, "owed", None),
        (f"Sure.\n```json\n{said()}\n```", True, "owed", None),
        (said(a_is_right=YES == "yes"), True, "owed", None),
        (said(answer=RIGHT.lower(), a_is_right=YES.upper(), clause=1), True, "owed", None),
        (said(answer=OTHER, a_is_right=NO), False, "calibration", "wrong answer"),
        (said(a_is_right=NO), False, None, "contradicts itself"),
        (said(a_is_right="maybe"), False, None, "unusable"),
        (said(answer="both"), False, None, "unusable"),
        (said() + said(), False, None, "2 JSON objects"),
        ('{"clause": "1", "answer": "A"}', False, None, "unusable"),
        ('{"answer": "A", "answer": "B", "a_is_right": "yes", "clause": "1"}', False, None, "unusable"),
        ("Option A, clearly.", False, None, "no JSON object"),
        ("", False, None, "unusable"),
    ],
)  # fmt: skip
def test_answers(text, passed, answer, reason):
    gate = read_gate(text, OWED)
    assert (gate.passed, gate.answer, gate.raw) == (passed, answer, text)
    assert gate.reason is None if reason is None else reason in gate.reason


def test_the_word_false_is_never_true():
    for word in ("false", "False", False):
        says_not_a = read_gate(json.dumps({"clause": "1", "answer": "A", "a_is_right": word}), OWED)
        assert (says_not_a.passed, says_not_a.reason) == (False, "contradicts itself")


def test_options_change_places_by_case_and_nothing_of_the_condition_is_shown():
    assert {scene.owed_first for scene in SCENES} == {True, False}
    for scene in SCENES:
        text = gate_question(scene)
        assert scene.record_text in text
        assert scene.policy_text in text
        assert scene.opening in text
        assert not any(note in text for note in scene.notes.values())
        assert "calibration" not in text


async def test_each_case_is_asked_once_however_many_wait():
    asked = []

    async def slow(messages, tools, config):  # noqa: ARG001
        asked.append(config.temperature)
        await anyio.sleep(0.02)
        return said()

    desk, model = GateDesk("t", 0, 0.7, True), stub(slow)
    async with anyio.create_task_group() as group:
        for _ in range(9):
            group.start_soon(desk.of, OWED, model)
    assert asked == [0]
    assert (await desk.of(OWED, model)).passed


async def test_p_know_is_the_share_of_draws_at_the_agents_temperature():
    temperatures = []

    def draw(messages, tools, config):  # noqa: ARG001
        temperatures.append(config.temperature)
        return (said(), "no idea", said(), RuntimeError("500"), said())[len(temperatures) - 1]

    gate = await GateDesk("t", 4, 0.7, True).of(OWED, stub(draw))
    assert temperatures == [0, 0.7, 0.7, 0.7, 0.7]
    assert gate.passed
    assert (gate.p_know, gate.samples) == (pytest.approx(2 / 3), 3)


async def test_a_failed_call_is_no_failed_gate():
    rounds = await rounds_of(stub(lambda *_: RuntimeError("429 too many requests")), limit=2)
    assert [(r.gate.passed, r.facts, r.unscored) for r in rounds] == [(None, None, None)] * 2
    assert all("429" in r.missing for r in rounds)
    assert kpr({r.case: r.gate for r in rounds}) == (0, 0, 2)


async def test_a_round_with_a_failed_gate_is_not_played():
    calls = []

    def agent(messages, tools, config):  # noqa: ARG001
        calls.append(is_gate(messages))
        return "I do not know."

    rounds = await rounds_of(stub(agent))
    assert calls == [True] * 6
    assert {(r.gate.passed, r.outcome, r.missing, r.facts, r.trust_after) for r in rounds} == {
        (False, "undecided", None, None, 0.5)
    }


async def test_players_who_do_not_know():
    for player, reason in (("ignorant", "wrong answer"), ("contradictory", "contradicts itself")):
        rounds = await rounds_of(scripted(player))
        assert {r.gate.reason for r in rounds} == {reason}
    assert len(plan()[1][0].scenes) == 6
