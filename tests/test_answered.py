"""Calls that a killed run had answered: kept, found again, never given to another question."""

from __future__ import annotations

from inspect_ai.model import ChatMessageAssistant, ChatMessageUser, ModelOutput, ModelUsage
from inspect_ai.tool import ToolCall

from belie.knownlie.answered import FILE, Answered, key


def said(text: str) -> ModelOutput:
    output = ModelOutput.from_content("m", text)
    output.usage = ModelUsage(input_tokens=7, output_tokens=2, total_tokens=9)
    return output


def test_an_answer_outlives_the_process_and_is_given_once(tmp_path):
    output = said("line\nbreak, “quoted”, \U0001f600")
    output.message.tool_calls = [ToolCall(id="1", function="grant", arguments={"amount": 3.5})]
    Answered(tmp_path).put("k", output)  # never closed, as where the process was killed
    again = Answered(tmp_path)
    assert again.get("other") is None
    assert again.get("k") == output
    assert again.get("k") is None


def test_a_line_cut_short_is_lost_alone(tmp_path):
    kept = Answered(tmp_path)
    kept.put("first", said("Yes"))
    kept.put("second", said("No"))
    path = tmp_path / FILE
    path.write_bytes(path.read_bytes()[:-40])
    again = Answered(tmp_path)
    again.put("third", said("Maybe"))
    assert again.get("second") is None
    last = Answered(tmp_path)
    answers = {name: last.get(name) for name in ("first", "second", "third")}
    assert [None if one is None else one.completion for one in answers.values()] == ["Yes", None, "Maybe"]


def test_a_key_is_of_the_name_and_of_all_that_was_asked():
    asked = [ChatMessageUser(content="What am I owed?")]
    call = ToolCall(id="1", function="grant", arguments={"amount": 3})
    other = ToolCall(id="1", function="grant", arguments={"amount": 4})
    told = [
        key("run|a|1|agent|1", asked),
        key("run|a|2|agent|1", asked),
        key("run|a|1|agent|1", [ChatMessageUser(content="What am I owed")]),
        key("run|a|1|agent|1", [ChatMessageAssistant(content="What am I owed?")]),
        key("run|a|1|agent|1", [*asked, ChatMessageAssistant(content="", tool_calls=[call])]),
        key("run|a|1|agent|1", [*asked, ChatMessageAssistant(content="", tool_calls=[other])]),
    ]
    assert len(set(told)) == len(told)
    assert key("run|a|1|agent|1", [ChatMessageUser(content="What am I owed?")]) == told[0]


def test_text_that_no_file_can_hold_is_not_kept(tmp_path):
    kept = Answered(tmp_path)
    kept.put("k", said("half a pair: \ud83d"))
    kept.put("l", said("Yes"))
    again = Answered(tmp_path)
    assert again.get("k") is None
    left = again.get("l")
    assert left is not None
    assert left.completion == "Yes"


def test_a_complete_run_leaves_no_answers(tmp_path):
    kept = Answered(tmp_path)
    kept.put("k", said("Yes"))
    kept.drop()
    assert not (tmp_path / FILE).exists()
