"""The interactive figures compute what the library does, with any controls."""

import json
import types

import keras
import numpy as np
import pytest
from mkdocs.exceptions import PluginError

import keras_attn
from keras_attn import decoding, explain, layers, models, ops, training
from tools import character_gpt, figure_data
from tools.diagrams import ROOT, gallery
from tools.site.barriers import barriers
from tools.site.check import heard
from tools.site.figures import on_post_page
from tools.site.tab import VARIANTS, Tab

pytestmark = pytest.mark.one_backend

SCRIPTS = ROOT / "docs" / "assets" / "js"
PHONE = next(v for v in VARIANTS if v.name == "phone-light")
DARK = next(v for v in VARIANTS if v.name == "desktop-dark")
# Scrolls to each figure, as a reader would, and waits for it.
LOAD = """
(async () => {
  const boxes = [...document.querySelectorAll(".figure")];
  for (const box of boxes) {
    box.scrollIntoView();
    for (let i = 0; i < 100 && box.dataset.state !== "ready"; i++) {
      await new Promise((done) => setTimeout(done, 50));
    }
  }
  return boxes.map((box) => [box.dataset.figure, box.dataset.state]);
})()
"""
# Changes the controls with these labels as a reader would; returns the values.
CHANGE = """
((name, changes) => {
  const box = document.querySelector(`[data-figure=${name}]`);
  const labels = [...box.querySelectorAll("label")];
  for (const [text, value] of Object.entries(changes)) {
    const input = text.includes(" of ")
      ? box.querySelector(`[aria-label="${text}"]`)
      : labels.find((l) => l.textContent.trim().startsWith(text)).control;
    if (input.type === "checkbox") input.checked = value;
    else input.value = value;
    input.dispatchEvent(new Event("input", {bubbles: true}));
  }
  return box.figureValues();
})
"""


@pytest.fixture(scope="module")
def gallery_page(site):
    """The address of the page with all figures, on disk: without a network."""
    return (site / "diagrams.html").as_uri()


@pytest.fixture(scope="module")
def tab(browser, gallery_page):
    """A tab of a phone with all figures."""
    tab = Tab(browser, PHONE)
    tab.open(gallery_page)
    states = dict(tab.evaluate(LOAD))
    assert states == dict.fromkeys(gallery.FIGURES, "ready")
    yield tab
    tab.close()


@pytest.fixture
def values(tab):
    """Returns the values of a figure after changes of its controls."""

    def changed(name, **changes):
        literal = (
            repr(changes).replace("True", "true").replace("False", "false")
        )
        return tab.evaluate(f"{CHANGE}({name!r}, {literal})")

    return changed


def to_numpy(x):
    return keras.ops.convert_to_numpy(x)


@pytest.mark.parametrize("causal", [False, True])
def test_attention_steps(values, causal):
    changes = {"q of cat, feature 1": -1.5, "v of the, feature 2": 3}
    found = values("attention_steps", causal=causal, **changes)
    q, k, v = (
        np.array(found[name], "float32")[None, :, None]
        for name in ("query", "key", "value")
    )
    assert q[0, 1, 0, 0] == -1.5 and v[0, 0, 0, 1] == 3
    see = ops.Visibility(causal=causal)
    outputs, weights = ops.attend(q, k, v, see, return_weights=True)
    np.testing.assert_allclose(
        found["weights"], to_numpy(weights)[0, 0], atol=1e-4
    )
    np.testing.assert_allclose(
        found["outputs"], to_numpy(outputs)[0, :, 0], atol=1e-4
    )


@pytest.mark.parametrize(
    "changes",
    [
        {"causal": True},
        {"causal": False, "window": 3},
        {"queries": 5, "keys": 9, "window": 13},
        {"queries": 8, "keys": 8, "causal": True, "padding": 3},
        {"window": 4, "second sentence": 4},
    ],
    ids=str,
)
def test_mask_builder(values, changes):
    found = values("mask_builder", **changes)
    names = {"keras_attn": keras_attn, "np": np}
    exec(found["program"], names)
    mask = names["mask"]
    shape = found["queries"], found["keys"]
    expected = np.ones(shape, bool) if mask is None else to_numpy(mask)
    np.testing.assert_array_equal(
        found["mask"], np.broadcast_to(expected, (1, 1, *shape))[0, 0]
    )


def test_scores_by_distance(values):
    changes = {"width": 16, "longest": 3, "ALiBi": 2, "largest": 32}
    found = values("score_distance", **changes)
    assert (found["width"], found["longest"], found["head"]) == (16, 1000, 2)
    positions = np.array(found["distance"])[None]
    assert positions.shape == (1, 33)
    ones = np.ones((1, 33, 1, 16), "float32")
    key = layers.RotaryPosition(1000.0).rotate(ones, positions)
    scores = to_numpy(key)[0, :, 0].sum(-1) / 4
    np.testing.assert_allclose(found["rotary"], scores, atol=1e-4)
    table = to_numpy(ops.sinusoid(positions, 16, "interleaved"))[0]
    # The figure's longest wavelength is an argument; that of the table is not.
    found = values("score_distance", longest=4)
    np.testing.assert_allclose(found["sinusoidal"], table @ table[0], atol=1e-4)
    bias = layers.ALiBiPosition(8).bias()
    first = np.zeros((1, 1), "int32")
    expected = to_numpy(bias.function(bias.parameters, first, positions))
    np.testing.assert_allclose(found["alibi"], expected[0, 1, 0], atol=1e-4)


def test_warmup(values):
    found = values("warmup", width=256, warmup=1000)
    schedule = training.WarmupSchedule(256, 1000)
    steps = np.array(found["step"], "int32") - 1
    np.testing.assert_allclose(
        found["rate"], to_numpy(schedule(steps)), rtol=1e-4
    )
    assert found["peak"] == pytest.approx(float(schedule(999)), rel=1e-4)


def test_transformer_shapes(values):
    sizes = {"B": 2, "S": 7, "T": 5, "D": 64, "N": 2, "L": 2, "V": 1000}
    labels = {f"{name},": size for name, size in sizes.items()}
    found = values("transformer_shapes", **labels)
    assert found["N"] == 4 and found["H"] == 16
    model = models.Transformer(
        1000, num_layers=2, num_heads=4, hidden_dim=64, intermediate_dim=256
    )
    assert found["parameters"] == model.count_params()
    source, target = np.ones((2, 7), "int32"), np.ones((2, 5), "int32")
    assert f"logits {tuple(model((source, target)).shape)}" in found["arrows"]
    memory = model.encode(source)[0]
    assert f"memory {tuple(memory.shape)}" in found["arrows"]
    if keras.backend.backend() != "torch":
        return
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel
    from torch.utils.flop_counter import FlopCounterMode

    # The counter does not know the fused kernels for CPUs.
    with (
        FlopCounterMode(display=False) as counter,
        sdpa_kernel(SDPBackend.MATH),
        torch.no_grad(),
    ):
        model((source, target))
    assert found["flops"] == counter.get_total_flops()


def data_of(name):
    """Returns the data of a figure."""
    path = SCRIPTS / "figures" / "data" / f"{name}.js"
    text = path.read_text("utf-8").partition(" = ")[2]
    return json.loads(text.strip().removesuffix(";"))


@pytest.mark.parametrize("kind", figure_data.KINDS)
def test_attention_heads(values, kind):
    """The weights are those in the file, which are distributions."""
    changes = {"sentence": 1, "attention": kind, "layer": 0, "head": 1}
    found = values("attention_heads", **changes)
    stored = data_of("attention_heads")[1]["weights"][kind]
    weights = np.array(found["weights"])
    np.testing.assert_allclose(weights, np.array(stored)[0, 1] / 1e4)
    assert weights.shape == (len(found["queries"]), len(found["keys"]))
    np.testing.assert_allclose(weights.sum(-1), 1, atol=1e-2)
    if kind == "decoder":
        assert not np.triu(weights, 1).any()


def table_search(data, width, penalty):
    """Runs the library's beam search over stored probabilities."""
    size = max(map(int, data["names"])) + 1
    spec = types.SimpleNamespace(
        pad_id=0, end_ids=(data["end"],), max_new_tokens=data["length"]
    )

    def after(prefixes):
        rows = np.full((len(prefixes), size), -np.inf, "float32")
        for row, prefix in zip(rows, prefixes, strict=True):
            node = data["nodes"].get(" ".join(map(str, prefix)), [])
            for token, log_prob in node:
                row[token] = log_prob
        return rows

    strategy = decoding.BeamSearch(width, length_penalty=penalty)
    return figure_data.search(strategy, spec, after)


@pytest.mark.parametrize("penalty", [0, 0.6, 2])
@pytest.mark.parametrize("width", [1, 2, 5])
def test_beam_search(values, width, penalty):
    for number, data in enumerate(data_of("beam_search")):
        changes = {"sentence": number, "beams": width, "length": penalty}
        found = values("beam_search", **changes)
        assert (found["beams"], found["penalty"]) == (width, penalty)
        extended, expected = table_search(data, width, penalty)
        length = int(to_numpy(expected.lengths)[0, 0])
        tokens = to_numpy(expected.tokens)[0, 0, :length]
        np.testing.assert_array_equal(found["tokens"], tokens)
        score = float(to_numpy(expected.scores)[0, 0])
        assert found["score"] == pytest.approx(score, abs=1e-4)
        assert found["steps"] == max(map(len, extended)) + 1


@pytest.mark.parametrize(
    "changes",
    [
        {"temperature": 0.5, "top-k": 41, "top-p": 1},
        {"temperature": 2, "top-k": 3, "top-p": 1},
        {"temperature": 1.5, "top-k": 41, "top-p": 0.6},
        {"temperature": 1, "top-k": 8, "top-p": 0.5},
    ],
    ids=str,
)
def test_sampling(values, changes):
    found = values("sampling", **changes)
    assert found["topP"] == changes["top-p"]
    strategy = decoding.Sampling(
        temperature=found["temperature"],
        top_k=found["topK"] if found["topK"] < 41 else None,
        top_p=found["topP"],
    )
    count = 4000
    uniforms = (np.arange(count, dtype="float32")[None, :, None] + 0.5) / count
    log_probs = np.array(found["logProbs"], "float32")
    tiled = np.broadcast_to(log_probs, (1, count, len(log_probs)))
    drawn = strategy.get_next_token(
        keras.ops.convert_to_tensor(tiled),
        keras.ops.convert_to_tensor(0, "int32"),
        keras.ops.convert_to_tensor(uniforms),
    )
    expected = np.bincount(to_numpy(drawn)[0], minlength=len(log_probs)) / count
    shown = np.zeros_like(expected)
    shown[found["order"]] = found["sampled"]
    # The share of even numbers is off by one at either end.
    np.testing.assert_allclose(shown, expected, atol=1.01 / count)
    assert set(np.flatnonzero(expected)) <= set(np.flatnonzero(shown))


def test_tokens_are_drawn(tab, values):
    assert values("sampling", **{"top-k": 1})["drawn"] is None
    tab.evaluate(
        "[...document.querySelectorAll('[data-figure=sampling] button')]"
        ".forEach((button) => button.click())"
    )
    assert values("sampling")["drawn"] == 100


def test_data_of_a_translator(monkeypatch):
    """Of a small one with random weights."""
    for name, value in {
        "LENGTH": 5,
        "BEAMS": (1, 4),
        "PENALTIES": (2.0,),
    }.items():
        monkeypatch.setattr(figure_data, name, value)
    monkeypatch.setattr(figure_data, "SEARCHED", figure_data.SEARCHED[:1])
    model = models.Transformer(
        13, num_layers=2, num_heads=2, hidden_dim=8, intermediate_dim=16
    )
    tokenizer = types.SimpleNamespace(
        vocabulary_size=13,
        end_id=2,
        pieces=lambda ids: [f"▁{i}" for i in ids],
    )
    rows = [[5, 6, 7, 2]]
    translator = types.SimpleNamespace(
        model=model,
        tokenizer=tokenizer,
        encode=lambda sentences: rows,
        generate=lambda rows: model.generate(
            rows, 5, decoding.BeamSearch(4, length_penalty=0.6)
        ),
    )
    found = figure_data.data_of(translator)
    heads = found["attention_heads"][0]
    (expected,) = explain.attention_maps(
        model,
        rows,
        layers="decoder_block_1/cross",
        decoded=translator.generate(rows),
    )
    weights = np.array(heads["weights"]["cross"])[1] / 1e4
    np.testing.assert_allclose(weights, expected.weights[0], atol=1e-4)
    assert len(heads["target"]) == weights.shape[1]
    searched = found["beam_search"][0]
    for width in (1, 4):
        strategy = decoding.BeamSearch(width, length_penalty=2.0)
        decoded = model.generate(rows, searched["length"], strategy)
        _, result = table_search(searched, width, 2.0)
        np.testing.assert_array_equal(to_numpy(result.tokens), decoded.tokens)
        np.testing.assert_allclose(
            to_numpy(result.scores), decoded.scores, atol=1e-4
        )
    assert len(found["sampling"]["contexts"]) == len(figure_data.SAMPLED)


@pytest.fixture(scope="module")
def gpt():
    """The model whose int8 weights the page has."""
    return character_gpt.load(data_of("character_gpt"))


@pytest.mark.parametrize(
    "text",
    ["", "The queries of a ", "naïve ↵ The", "a mask hides the padding " * 9],
    ids=["empty", "short", "unknown character", "long"],
)
def test_character_gpt(values, gpt, text):
    found = values("character_gpt", text=text)
    read = found["read"]
    # Of a long text, only the end is read.
    whole = f"\n{text}".replace("ï", "").replace("↵", "\n")
    assert whole.endswith(read)
    assert min(len(whole), 97) <= len(read) <= character_gpt.LENGTH
    ids = character_gpt.encode(read)[None]
    logits = gpt(ids)[0, -1]
    np.testing.assert_allclose(
        found["probabilities"], to_numpy(keras.ops.softmax(logits)), atol=1e-3
    )
    maps = explain.attention_maps(gpt, ids)
    assert len(maps) == len(found["weights"]) == 2
    for expected, layer in zip(maps, found["weights"], strict=True):
        weights = np.zeros_like(expected.weights[0])
        for t in range(len(read)):
            weights[:, t, : t + 1] = [head[t] for head in layer]
        np.testing.assert_allclose(weights, expected.weights[0], atol=1e-3)


def test_what_the_tutorial_says_of_the_character_gpt(gpt):
    text = (ROOT / "tutorials" / "gpt.py").read_text("utf-8")
    loss = data_of("character_gpt")["training"]["int8TestLoss"]
    assert f"{loss} nats per character of paragraphs" in text
    read = "\nA query is compared with all keys; the output is the mean of the"
    maps = explain.attention_maps(gpt, character_gpt.encode(read)[None])
    positions = np.arange(len(read))
    back = positions[:, None] - positions
    # By layer and head, the mean distance of what is looked at.
    first, second = ((m.weights[0] * back).sum(-1).mean(-1) for m in maps)
    assert first.max() < second.min()


def test_controls_of_the_character_gpt(tab, values):
    button = (
        "(label) => [...document.querySelectorAll('[data-figure=character_gpt] "
        "button')].find((b) => [b.textContent, b.ariaLabel].includes(label))"
    )
    before = values("character_gpt", text="The weigh")
    assert before["query"] == len(before["read"]) == 10
    likely = character_gpt.CHARACTERS[np.argmax(before["probabilities"])]
    tab.evaluate(f"({button})('Append the most likely').click()")
    assert values("character_gpt")["text"] == f"The weigh{likely}"
    tab.evaluate(f"({button})('Append a sample').click()")
    tab.evaluate(f"({button})('Append 20 samples').click()")
    assert len(values("character_gpt")["text"]) == 31
    # With the keyboard alone.
    tab.evaluate(
        "document.querySelector('[data-figure=character_gpt] input').select()"
    )
    tab.call("Input.insertText", text="The mask")
    tab.evaluate(f"({button})('layer 2, head 3').focus()")
    press(tab, " ")
    found = values("character_gpt", query=3)
    assert found["read"] == "\nThe mask"
    assert (found["layer"], found["head"], found["query"]) == (1, 2, 3)
    pressed = f"({button})('layer 2, head 3').ariaPressed"
    assert tab.evaluate(pressed) == "true"
    shown = tab.evaluate(
        "document.querySelector('[data-figure=character_gpt] [role=status]')"
        ".textContent"
    )
    assert "In layer 2, head 3, “h” looks most at" in shown


def test_data_of_a_character_gpt():
    """Of a small one, on a little text."""
    text = character_gpt.prose()
    assert len(text) > 2e5 and set(text) <= set(character_gpt.CHARACTERS)
    sizes = {"num_layers": 1, "num_heads": 2, "hidden_dim": 8}
    data = character_gpt.train(text[:5000], epochs=1, **sizes)
    data = json.loads(json.dumps(data))
    losses = data["training"]
    assert losses["int8TestLoss"] == pytest.approx(losses["testLoss"], abs=0.01)
    model = character_gpt.load(data)
    again = character_gpt.quantize(model)
    for path, array in character_gpt.dequantize(data["weights"]).items():
        same = character_gpt.dequantize(again)[path]
        np.testing.assert_allclose(same, array, rtol=1e-5)


def test_quantization_rounds_to_the_nearest():
    model = character_gpt.make_model(character_gpt.SIZES)
    found = character_gpt.dequantize(character_gpt.quantize(model))
    for weight in model.weights:
        array = to_numpy(weight).reshape(found[weight.path].shape)
        axis = int(weight.path.endswith("embeddings"))
        error = np.abs(array - found[weight.path])
        if array.ndim == 1:
            assert not error.any()
        else:
            limit = np.abs(array).max(axis, keepdims=True) / 127 / 2
            assert (error <= 1.001 * limit).all(), weight.path


KEYS = {"Tab": 9, " ": 32, "ArrowRight": 39, "ArrowDown": 40}


def press(tab, key):
    for kind in ("keyDown", "keyUp"):
        text = {"text": " "} if (key, kind) == (" ", "keyDown") else {}
        tab.call(
            "Input.dispatchKeyEvent",
            type=kind,
            key=key,
            windowsVirtualKeyCode=KEYS[key],
            **text,
        )


def test_a_keyboard_is_enough(tab, values):
    """Tab reaches each control; arrows and the space bar change it."""
    focused = "document.activeElement.closest('.figure')?.dataset.figure"
    for name in gallery.FIGURES:
        before = values(name)
        tab.evaluate(
            f"document.querySelector('[data-figure={name}] :is(input, select, "
            "button)').focus()"
        )
        controls = tab.evaluate(
            f"[...document.querySelectorAll('[data-figure={name}] :is(input, "
            "select, button)')].filter((x) => !x.disabled).length"
        )
        for number in range(controls):
            assert tab.evaluate(focused) == name
            kind = tab.evaluate(
                "document.activeElement.type + document.activeElement.tagName"
            )
            if kind == "rangeINPUT":
                press(tab, "ArrowRight")
            elif kind == "select-oneSELECT":
                press(tab, "ArrowDown")
            elif kind == "buttonBUTTON":
                press(tab, " ")
            elif kind == "textINPUT":
                tab.call("Input.insertText", text="a")
            if number < controls - 1:
                press(tab, "Tab")
        assert values(name) != before, name


def test_figures_have_no_problems(tab, browser, gallery_page):
    # Only the search needs a server.
    found = [p for p in heard(tab.events, "") if "search_index.js" not in p]
    assert found == []
    width = tab.evaluate("document.documentElement.scrollWidth")
    assert width == PHONE.width
    only_figures = """
    const boxes = [...document.querySelectorAll(".figure")];
    document.querySelector("article").replaceChildren(...boxes);
    """
    dark = Tab(browser, DARK)
    dark.open(gallery_page)
    dark.evaluate(LOAD)
    for shown in (tab, dark):
        shown.evaluate(only_figures)
        assert barriers(shown) == []
    dark.close()


def test_each_figure_is_small_and_used():
    shared = (SCRIPTS / "figures.js").stat().st_size
    data = {p.stem: p.stat().st_size for p in SCRIPTS.glob("*/data/*.js")}
    assert data.keys() < gallery.FIGURES.keys()
    files = {path.stem: path for path in (SCRIPTS / "figures").glob("*.js")}
    assert files.keys() == gallery.FIGURES.keys()
    for name, path in files.items():
        limit = 400_000 if name == "character_gpt" else 60_000
        assert path.stat().st_size + data.get(name, 0) + shared < limit
        assert gallery.figure_uses()[name], f"{name} is on no page"
        assert f'"{gallery.FIGURES[name]}"' in path.read_text("utf-8")


def test_unknown_figures_are_errors():
    page = types.SimpleNamespace(url="guides/masks.html")
    config = types.SimpleNamespace(docs_dir=ROOT / "docs")
    body = "<p></p></body>"
    assert on_post_page(body, page, config) == body
    found = on_post_page(f"<!-- figure: warmup -->{body}", page, config)
    assert 'data-figure="warmup"' in found
    assert '<script src="../assets/js/figures.js">' in found
    with pytest.raises(PluginError, match="warm_up"):
        on_post_page("<!-- figure: warm_up -->", page, config)
