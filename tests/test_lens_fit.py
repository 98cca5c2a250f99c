"""Fitting the lens: against Jacobians known in closed form, stopped and continued, full and by the product."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

import tiny_lens  # noqa: E402

from belie.lens.anatomy import anatomy, contrast, watched  # noqa: E402
from belie.lens.fit import cosines, fit  # noqa: E402
from belie.lens.folder import Lens, load_lens  # noqa: E402
from belie.lens.passages import Passages, passages  # noqa: E402
from belie.lens.readout import lens_scores, logit_lens_scores  # noqa: E402
from belie.respondents.base import BadInput  # noqa: E402
from belie.respondents.local.model import Loaded  # noqa: E402

torch.set_num_threads(1)  # tests run beside each other


def texts(count: int = 4, words: int = 40) -> Passages:
    draw = np.random.default_rng(11)
    return Passages("letters", tuple(" ".join(draw.choice(tiny_lens.WORDS[:16], words)) for _ in range(count)))


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_lens.llama(tmp_path_factory.mktemp("llama"))


def closed_form(model: Any, tokens: int) -> np.ndarray:
    """J_ℓ of the linear model from the whole (tokens · width)² operator, by Kronecker products: (L + 1, d, d)."""
    mean = np.tril(np.ones((tokens, tokens))) / np.arange(1, tokens + 1)[:, None]
    layers = [(b.a.detach().double().numpy(), b.b.detach().double().numpy()) for b in model.base_model.layers]
    width = len(layers[0][0])
    found = [np.eye(width)]
    whole = np.eye(tokens * width)
    for a, b in reversed(layers):
        whole = whole @ (np.eye(tokens * width) + np.kron(np.eye(tokens), a) + np.kron(mean, b))
        parts = whole.reshape(tokens, width, tokens, width)  # d h_final[t, i] / d h[s, j]
        found.append(parts.sum(0)[:, 15:, :].mean(1))  # position 16 is number 15 from 0
    return np.stack(found[::-1])


def test_the_fitted_jacobian_of_a_linear_model_is_the_closed_form(tmp_path: Path) -> None:
    (tmp_path / "weights").mkdir()
    loaded = tiny_lens.linear(tmp_path / "weights")
    lens = fit(loaded, "local/linear", texts(), tmp_path / "lens", count=4, tokens=40, full=True, block=4)
    known = closed_form(loaded.model, 40)
    fitted = np.stack([lens.jacobian(layer) for layer in range(4)])
    assert np.abs(fitted - known).max() < 1e-4
    assert np.abs(known - np.eye(6)).max() > 0.3  # the identity would not pass for it
    # Yes minus no by hand: W_U's rows, the norm's gain folded in, then pulled back.
    vocabulary = loaded.tokenizer.get_vocab()
    rows = loaded.model.head.weight.detach().double().numpy()
    yes = (rows[vocabulary["Yes"]] + rows[vocabulary["yes"]]) / 2
    no = (rows[vocabulary["No"]] + rows[vocabulary["no"]]) / 2
    u = (yes - no) * loaded.model.base_model.norm.weight.detach().double().numpy()
    assert np.abs(lens.contrast - np.einsum("i,lij->lj", u, known)).max() < 1e-4
    assert lens.settings["first_source"] == 16


def test_full_and_product_agree_on_a_transformer_and_halves_are_told(llama: Path, tmp_path: Path) -> None:
    lens = fit(tiny_lens.loaded(llama), "local/tiny", texts(), tmp_path / "lens", count=4, tokens=40, full=True)
    assert min(lens.settings["product_cosine"]) > 0.9999
    halves, whole = lens.settings["halves_cosine"], lens.settings["full_halves_cosine"]
    assert len(halves) == len(whole) == 4
    assert halves[-1] == pytest.approx(1, abs=1e-6)  # J_L = I in both halves
    assert all(0 < a < 1 - 1e-9 for a in (*halves[:-1], *whole[:-1]))


def test_the_jacobian_is_what_moving_a_state_moves(llama: Path, tmp_path: Path) -> None:
    """Central differences on one prompt: push h_2 at each source position, and see what all later final states do."""
    loaded = tiny_lens.loaded(llama)
    loaded.model.double()
    one = texts(2)
    lens = fit(loaded, "local/tiny", Passages("twice", (one.texts[0],) * 2), tmp_path / "lens", count=2, tokens=40)
    parts = anatomy(loaded.model)
    u = contrast(parts, loaded.tokenizer).double()
    ids = loaded.tokenizer(one.texts[0], return_tensors="pt")["input_ids"]
    direction = torch.randn(parts.width, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    moved = []
    for source in range(15, ids.shape[1]):
        sums = []
        for sign in (1, -1):

            def push(state: Any, source: int = source, sign: int = sign) -> Any:
                state = state.clone()
                state[:, source] += sign * 2e-3 * direction
                return state

            with torch.no_grad(), watched(parts, {2: push}) as states:
                parts.base(input_ids=ids, use_cache=False)
                sums.append(float((states[-1][0] @ u).sum()))
        moved.append((sums[0] - sums[1]) / 4e-3)
    assert float(lens.contrast[2].astype(float) @ direction.numpy()) == pytest.approx(np.mean(moved), rel=1e-3)


def test_a_fit_that_was_killed_goes_on_to_the_very_same_numbers(
    llama: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from belie.lens import fit as fitting

    monkeypatch.setattr(fitting, "_EVERY", 0.0)
    how: dict[str, Any] = {"count": 4, "tokens": 40, "full": True, "block": 8}
    whole = fit(tiny_lens.loaded(llama), "local/tiny", texts(), tmp_path / "whole", **how)

    class KilledError(Exception):
        pass

    calls: list[tuple[int, str]] = []

    def stop_at(limit: int) -> Any:
        def told(done: int, total: int, what: str) -> None:
            calls.append((done, what))
            if total > 1 and done == limit:
                raise KilledError

        return told

    folder = tmp_path / "stopped"
    for limit in (2, 10):  # in the contrast, then in the third block of the full J
        with pytest.raises(KilledError):
            fit(tiny_lens.loaded(llama), "local/tiny", texts(), folder, told=stop_at(limit), resume=True, **how)
    calls.clear()
    again = fit(tiny_lens.loaded(llama), "local/tiny", texts(), folder, told=stop_at(-1), resume=True, **how)
    assert (0, "prompts") not in calls  # the contrast was finished
    assert min(done for done, what in calls if "blocks" in what and done > 1) == 8  # two blocks of four prompts stand
    assert np.array_equal(again.contrast, whole.contrast)
    for layer in range(4):
        assert np.array_equal(again.jacobian(layer), whole.jacobian(layer))
    assert again.settings["full_halves_cosine"] == whole.settings["full_halves_cosine"]


def test_a_lens_is_not_continued_or_read_as_another(llama: Path, tmp_path: Path) -> None:
    loaded, folder = tiny_lens.loaded(llama), tmp_path / "lens"
    fit(loaded, "local/tiny", texts(), folder, count=2, tokens=40)
    with pytest.raises(BadInput, match="already holds a lens"):
        fit(loaded, "local/tiny", texts(), folder, count=2, tokens=40)
    with pytest.raises(BadInput, match="tokens was 40, now 39"):
        fit(loaded, "local/tiny", texts(), folder, count=2, tokens=39, resume=True)
    with pytest.raises(BadInput, match="holds 4 passages"):
        fit(loaded, "local/tiny", texts(), tmp_path / "other", count=5, tokens=40)
    with pytest.raises(BadInput, match="at least 31"):
        fit(loaded, "local/tiny", texts(), tmp_path / "other", count=2, tokens=30)
    with pytest.raises(BadInput, match="holds no lens"):
        load_lens(tmp_path)


def test_with_the_identity_the_lens_is_the_logit_lens(llama: Path, tmp_path: Path) -> None:
    """And the logit lens is what the model's own norm and head make of a state."""
    loaded = tiny_lens.loaded(llama)
    lens = fit(loaded, "local/tiny", texts(), tmp_path / "lens", count=2, tokens=40, full=True)
    states = np.random.default_rng(2).normal(size=(5, 4, 32)).astype(np.float32)
    plain = logit_lens_scores(lens, states)
    with torch.no_grad():
        logits = loaded.model.lm_head(loaded.model.model.norm(torch.from_numpy(states))).numpy()
    vocabulary = loaded.tokenizer.get_vocab()
    own = logits[..., [vocabulary["Yes"], vocabulary["yes"]]].mean(-1)
    own -= logits[..., [vocabulary["No"], vocabulary["no"]]].mean(-1)
    assert np.allclose(plain, own, rtol=1e-4, atol=1e-6)
    for path in lens.blocks:  # J = I at every layer, full and by the product
        rows = np.load(path)
        start = int(path.stem.removeprefix("full-"))
        np.save(path, np.broadcast_to(np.eye(32, dtype=np.float32)[start : start + rows.shape[1]], rows.shape))
    assert np.array_equal(lens_scores(lens, states), plain)
    product = type(lens)(lens.settings, lens.direction, np.tile(lens.direction, (4, 1)))
    assert np.array_equal(lens_scores(product, states), plain)


def test_texts_come_from_a_file_or_a_folder(tmp_path: Path) -> None:
    (tmp_path / "b.txt").write_text("third\n\n\n", encoding="utf-8")
    (tmp_path / "a.txt").write_text("first\nline\r\n\r\nsecond", encoding="utf-8")
    assert passages(str(tmp_path)).texts == ("first line", "second", "third")
    assert passages(str(tmp_path / "b.txt")).sha256 != passages(str(tmp_path)).sha256
    with pytest.raises(BadInput, match="can't be read"):
        passages(str(tmp_path / "c.txt"))


def test_cosines_of_rows() -> None:
    assert cosines(np.array([[1.0, 0.0], [3.0, 4.0]]), np.array([[0.0, 2.0], [6.0, 8.0]])).tolist() == [0.0, 1.0]


def test_a_model_without_known_parts_is_refused(tmp_path: Path) -> None:
    loaded = tiny_lens.linear(tmp_path)
    del loaded.model.base_model.norm
    with pytest.raises(BadInput, match="can't find the blocks"):
        fit(Loaded(loaded.model, loaded.tokenizer, tmp_path), "local/linear", texts(), tmp_path / "lens", count=2)


@pytest.mark.parametrize("kind", ["gpt2", "gemma2"])
def test_other_norms_are_folded_in_too(kind: str) -> None:
    """A layer norm (mean taken out, a bias), an RMS norm with gain 1 + w: the model's own readout, up to a constant."""
    from transformers import AutoModelForCausalLM, Gemma2Config, GPT2Config

    torch.manual_seed(4)
    size = len(tiny_lens.WORDS) + 5
    if kind == "gpt2":
        config: Any = GPT2Config(vocab_size=size, n_embd=16, n_layer=2, n_head=2, n_positions=64)
    else:
        config = Gemma2Config(
            vocab_size=size, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, num_key_value_heads=1,
            head_dim=8, intermediate_size=32,
        )  # fmt: skip
    model: Any = AutoModelForCausalLM.from_config(config)
    parts = anatomy(model)
    with torch.no_grad():
        for weight in parts.norm.parameters():
            weight.uniform_(-0.5, 0.5)
    made = tiny_lens.tokenizer()
    u = contrast(parts, made).numpy()
    lens = Lens({"centred": parts.centred}, u, np.tile(u, (3, 1)))
    states = (np.random.default_rng(6).normal(size=(5, 3, 16)) * 7 + 2).astype(np.float32)
    with torch.no_grad():
        logits = (parts.norm(torch.from_numpy(states)) @ parts.unembedding.T).numpy()
    vocabulary = made.get_vocab()
    own = logits[..., [vocabulary["Yes"], vocabulary["yes"]]].mean(-1)
    own -= logits[..., [vocabulary["No"], vocabulary["no"]]].mean(-1)
    apart = own - logit_lens_scores(lens, states)
    assert np.ptp(apart) < 1e-4
    assert np.ptp(own) > 1e-3


def test_the_bundled_texts_are_long_different_and_ask_nothing() -> None:
    texts = passages("bundled").texts
    assert len(texts) >= 100
    assert len(set(texts)) == len(texts)
    assert min(len(text.split()) for text in texts) >= 105  # about 130 tokens
    assert not any("?" in text for text in texts)
