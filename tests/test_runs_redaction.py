"""Nothing secret is ever written."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from belie.runs import looks_secret, redact, redact_text


@pytest.mark.parametrize(
    "name",
    [
        *("api_key", "apiKey", "API-KEY", "OPENAI_API_KEY", "hf_token", "HF_TOKEN", "token", "key", "client_secret"),
        *("Authorization", "proxy-authorization", "password", "dbPassword", "x-api-key", "api_keys", "access_tokens"),
        *("set-cookie", "credentials", "aws_secret_access_key", "apikey", "auth"),
    ],
)
def test_secret_names(name: str):
    assert looks_secret(name)
    assert redact({"outer": [{name: "v4lue-of-it"}]}) == {"outer": [{name: "[redacted]"}]}
    assert redact({name: None, name + "_": ""}) == {name: None, name + "_": ""}


@pytest.mark.parametrize(
    "name",
    ["max_tokens", "prompt_tokens", "tokens", "keyboard", "monkey", "keys", "tokenizer", "author", "key_words", ""],
)
def test_ordinary_names(name: str):
    assert not looks_secret(name)
    assert redact({name: "v4lue-of-it"}) == {name: "v4lue-of-it"}


def test_numbers_under_a_token_name_stay_and_under_a_password_do_not():
    told = {"yes_token": 42, "use_api_key": True, "password": 1234, "secrets": {"a": ["b"]}}
    assert redact(told) == {"yes_token": 42, "use_api_key": True, "password": "[redacted]", "secrets": "[redacted]"}
    assert told["password"] == 1234


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("at https://me:pa55@host:80/v1", "at https://[redacted]@host:80/v1"),
        ("https://tok@host", "https://[redacted]@host"),
        ("https://host/@user", "https://host/@user"),
        ("GET /x?api-version=1&key=abc&n=2#f", "GET /x?api-version=1&key=[redacted]&n=2#f"),
        ("/x?sig=a%2Fb&access_token=q", "/x?sig=[redacted]&access_token=[redacted]"),
        ("Authorization: Bearer abc.DEF-123", "Authorization: [redacted]"),
        ("authorization: Token ab c\nHost: h", "authorization: [redacted]\nHost: h"),
        ("{'Cookie': 'a=b; c=d', 'n': 1}", "{'Cookie': '[redacted]', 'n': 1}"),
        ("sent 'Basic dXNlcjpwYXNz'", "sent 'Basic [redacted]'"),
        ("sent bearer abcdefghijklmnopqrst!", "sent bearer [redacted]!"),
        ("basic knowledge", "basic knowledge"),
        ('{"x-api-key": "q1w2", "n": 3}', '{"x-api-key": "[redacted]", "n": 3}'),
        ("Incorrect API key provided: sk-proj-abcdefghij12345.", "Incorrect API key provided: [redacted]."),
        ("KeyError: token: 5", "KeyError: token: 5"),
    ],
)
def test_secrets_in_running_text(text: str, clean: str):
    assert redact_text(text) == clean


def test_values_of_secret_variables_are_found_anywhere(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("SOME_API_KEY", "p@ss/word+1")
    monkeypatch.setenv("OTHER_TOKEN", "Yes")  # too short to be looked for
    told = {"note": ["x p@ss/word+1 y", "p%40ss%2Fword%2B1"], "p@ss/word+1": "Yes"}
    assert redact(told) == {"note": ["x [redacted] y", "[redacted]"], "[redacted]": "Yes"}
    assert redact_text("my-own-secret", ["my-own-secret"]) == "[redacted]"
    assert redact_text("my-own-secret+more", ["my-own-secret", "my-own-secret+more"]) == "[redacted]"


@pytest.mark.parametrize(
    "piece", ["a", "a.", "a-", "a:", "a://", "bearer ", "cookie ", "?a", "?a=", "api_key", " ", "sk-", 'key="', "@"]
)
def test_a_megabyte_of_hostile_text_is_no_harder(piece: str):
    text = piece * (1_000_000 // len(piece)) + " https://u:pw@h/"
    assert redact_text(text).endswith("//[redacted]@h/")


json_like = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["n", "api_key", "x"]), inner, max_size=3)
    ),
    max_leaves=10,
)


@given(json_like, st.lists(st.sampled_from(["n", "x", "headers"]), max_size=4))
def test_redacting_twice_changes_nothing_more_and_nothing_deep_escapes(obj, way: list[str]):
    secret = "zq-9981-uncommon"
    nested = {"a": obj, "api_key": secret, "url": f"http://u:{secret}@h/?token={secret}"}
    for name in way:
        nested = {name: [nested, (nested,)]}
    clean = redact(nested)
    assert secret not in json.dumps(clean)
    assert redact(clean) == clean
