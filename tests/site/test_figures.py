"""The interactive figures compute what the library does, with any controls."""

import types

import keras
import numpy as np
import pytest
from mkdocs.exceptions import PluginError

import keras_attn
from keras_attn import layers, models, ops, training
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


def press(tab, key, code=None):
    for kind in ("keyDown", "keyUp"):
        tab.call(
            "Input.dispatchKeyEvent",
            type=kind,
            key=key,
            code=code or key,
            windowsVirtualKeyCode={"Tab": 9, "ArrowRight": 39, " ": 32}[key],
            **({"text": " "} if (key, kind) == (" ", "keyDown") else {}),
        )


def test_a_keyboard_is_enough(tab, values):
    """Tab reaches each control in turn; arrows and the space bar change it."""
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
            elif kind in ("submitBUTTON", "buttonBUTTON"):
                press(tab, " ")
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
    files = {path.stem: path for path in (SCRIPTS / "figures").glob("*.js")}
    assert files.keys() == gallery.FIGURES.keys()
    for name, path in files.items():
        assert path.stat().st_size + shared < 60_000
        assert gallery.figure_uses()[name], f"{name} is on no page"


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
