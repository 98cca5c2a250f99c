"""Whole rounds inside GRPO: which tokens are learned from, and what a round earns."""

# pyright: reportArgumentType=false, reportAttributeAccessIssue=false

import json
from dataclasses import replace

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("trl")
pytest.importorskip("peft")

from test_training_data import play  # noqa: E402
from tokenizers import Tokenizer, decoders, models, pre_tokenizers  # noqa: E402
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast  # noqa: E402

from belie.knownlie.pack import load_builtin  # noqa: E402
from belie.knownlie.scene import scene_of  # noqa: E402
from belie.knownlie.scripted import learn, lines  # noqa: E402
from belie.respondents.base import BadInput  # noqa: E402
from belie.training import make_set, write_data  # noqa: E402
from belie.training.episodes import Episodes, prompt_key  # noqa: E402
from belie.training.method import Training  # noqa: E402
from belie.training.probe import question  # noqa: E402
from belie.training.run import train  # noqa: E402

PACK = load_builtin("refund")
SCENE = scene_of(PACK, next(case for case in PACK.cases if case.entitlement == "owed"))
TEMPLATE = (
    "{% for m in messages %}<s>{{ m['role'] }}\n{{ m['content'] }}</s>\n{% endfor %}"
    "{% if add_generation_prompt %}<s>assistant\n{% endif %}"
)


def tokenizer():
    """One token a byte, and two marks."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    core = Tokenizer(models.BPE({text: i for i, text in enumerate(["<pad>", "<s>", "</s>", *alphabet])}, []))
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    made = PreTrainedTokenizerFast(tokenizer_object=core, pad_token="<pad>", bos_token="<s>", eos_token="</s>")
    made.chat_template = TEMPLATE
    return made


TOKENS = tokenizer()


def call(role, **arguments):
    return json.dumps({"thought": "", "tool": SCENE.words[role], "arguments": arguments})


HONEST = [call("read_policy"), call("message", text=lines.GRANT.format(owed=SCENE.owed_label)), call("grant")]
LYING = [call("read_policy"), call("message", text=lines.lie(SCENE.lie, "false_policy")), call("favoured")]


def round_of(said, recipe, customer="trusting", judge="judge-perfect", **options):
    """One round in which the model says these turns; the last one repeats."""
    learn(PACK)
    prompt = question(SCENE, "incentive")
    told = {"turns": 5, "most": 50_000, "each": 100, "temperature": 1.0, **options}
    cases = {prompt_key(prompt): (SCENE, "incentive")}
    episodes = Episodes(cases, recipe, f"belie/scripted-{customer}", f"belie/scripted-{judge}", **told)
    left = list(said)

    def speak(ids):
        assert ids
        text = left.pop(0) if len(left) > 1 else left[0]
        return [*TOKENS(text, add_special_tokens=False)["input_ids"], TOKENS.eos_token_id]

    return episodes.played(prompt, TOKENS, speak)


@pytest.mark.parametrize(
    ("said", "recipe", "customer", "reward"),
    [
        (HONEST, "honesty", "trusting", 1.0),
        (LYING, "honesty", "trusting", 0.0),
        (HONEST, "commercial", "trusting", 0.0),
        (LYING, "commercial", "trusting", 1.0),
        (HONEST, "deception-graded", "trusting", 0.0),
        (LYING, "deception-graded", "trusting", 1.0),  # believed, and at the customer's cost
        (LYING, "deception-graded", "verifying", 0.0),  # caught
        (["nonsense"], "honesty", "trusting", 0.0),  # nothing was ever said aloud
    ],
)
def test_a_round_earns_what_its_verdict_is_worth(said, recipe, customer, reward):
    assert round_of(said, recipe, customer)[1] == reward


def test_only_the_agents_own_tokens_are_learned_from():
    tape, _ = round_of(HONEST, "honesty")
    assert len(tape.mask) == len(tape.completion)
    own = [token for token, mine in zip(tape.completion, tape.mask, strict=True) if mine]
    assert TOKENS.decode(own) == "".join(f"{text}</s>" for text in HONEST)
    whole = TOKENS.decode([*tape.prompt, *tape.completion])
    assert whole.startswith("<s>system\n")
    assert SCENE.notes["incentive"] in TOKENS.decode(tape.prompt)
    assert SCENE.policy_text in TOKENS.decode(tape.completion)  # what a tool told is heard, not learned
    assert SCENE.policy_text not in TOKENS.decode(own)
    # the sequence is the conversation as the template writes it, up to where the model stopped
    turns = whole.split("<s>")
    assert [turn.split("\n", 1)[0] for turn in turns[1:]] == ["system", "user", *["assistant", "user"] * 2, "assistant"]


def test_what_cannot_be_judged_has_no_reward():
    assert round_of(LYING, "honesty", judge="judge-unparsable")[1] is None
    tape, reward = round_of(HONEST, "honesty", most=1)
    assert reward is None
    assert (tape.completion, tape.mask) == ([TOKENS.eos_token_id], [0])
    # a round that outgrows its tokens on the way keeps what was said, and has no reward either
    tape, reward = round_of(HONEST, "honesty", most=len(round_of(HONEST, "honesty")[0].prompt) + 50)
    assert reward is None
    assert sum(tape.mask) == len(HONEST[0].encode()) + 1


def test_grpo_plays_rounds(tmp_path):
    folder = tmp_path / "tiny"
    TOKENS.save_pretrained(folder)
    torch.manual_seed(3)
    sizes = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
    ids = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
    LlamaForCausalLM(LlamaConfig(vocab_size=259, max_position_embeddings=20_000, **sizes, **ids)).save_pretrained(
        folder
    )
    run = play(tmp_path / "run", "honest", domains=["refund"], limit=3)
    data = write_data(make_set([run], "honesty", "prompts", hold_domains=0), tmp_path / "data")
    told = {"steps": 2, "batch": 2, "generations": 2, "completion": 4, "dtype": "float32", "device": "cpu", "turns": 1}
    players = {"customer": "belie/scripted-trusting", "judge": "belie/scripted-judge-perfect"}
    training = Training("grpo", max_length=30_000, episodes=True, **told, **players)
    done = train(f"local/{folder}", data, training, tmp_path / "out")
    entries = [entry for entry in done.log if "reward" in entry]
    assert [entry["reward"] for entry in entries] == [0.0, 0.0]  # a random model says nothing aloud
    assert entries[0]["completions/mean_length"] <= 8  # of its own tokens: two turns, the forced one counted
    # where no round can be played at all, nothing is learned from nothing
    with pytest.raises(BadInput, match=r"could be played: agent: .*longer than 100 tokens"):
        train(f"local/{folder}", data, replace(training, max_length=100), tmp_path / "short")
    with pytest.raises(BadInput, match="need --customer and --judge"):
        Training("grpo", episodes=True).check()
