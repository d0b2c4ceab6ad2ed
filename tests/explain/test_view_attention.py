"""The view of attention, as a browser shows it and as a reader uses it."""

import re

import numpy as np
import pytest

from keras_attn.explain import AttentionMap, view_attention
from tools.site.browser import Browser, find_browser
from tools.site.tab import VARIANTS, Tab

pytestmark = pytest.mark.one_backend

WORDS = ["the", "cat", "</script><b>", "saw"]


def maps():
    draw = np.random.default_rng(0)
    weights = draw.random((2, 2, 4, 4))
    weights /= weights.sum(-1, keepdims=True)
    cross = draw.random((2, 3, 2, 4))
    cross /= cross.sum(-1, keepdims=True)
    return [
        AttentionMap("encoder", 0, (0, 1), weights, [WORDS] * 2, [WORDS] * 2),
        AttentionMap("cross", 0, (1, 2, 5), cross, None, [WORDS] * 2),
    ]


@pytest.fixture(scope="module")
def browser():
    program = find_browser()
    if program is None:
        pytest.skip("no Chromium is installed")
    with Browser(program) as running:
        yield running


@pytest.fixture
def tab(browser, tmp_path):
    """A page with two views, opened from the disk."""
    path = tmp_path / "view.html"
    view_attention(maps(), row=1, title="One & two").save(path)
    tab = Tab(browser, VARIANTS[0])
    tab.open(path.as_uri())
    yield tab
    tab.close()


def said(tab):
    return tab.evaluate("document.querySelector('.say').textContent")


def pressed(tab):
    return tab.evaluate(
        "document.querySelector('[aria-pressed=true]').firstChild.textContent"
    )


def press(tab, key):
    tab.evaluate(
        "document.activeElement.dispatchEvent(new KeyboardEvent('keydown', "
        f"{{key: '{key}', bubbles: true}}))"
    )


def turn(tab, select, value):
    tab.evaluate(
        f"(() => {{ const s = document.querySelector('{select}');"
        f" s.value = '{value}'; s.dispatchEvent(new Event('change')); }})()"
    )


def weights_shown(tab, side):
    found = tab.evaluate(
        f"[...document.querySelectorAll('.{side} small')]"
        ".map((small) => small.textContent)"
    )
    return [float(text) for text in found]


def test_a_reader_walks_through(tab):
    encoder, cross = maps()
    assert pressed(tab) == "the" and said(tab).startswith("the looks at: ")
    shown = weights_shown(tab, "keys")
    np.testing.assert_allclose(shown, encoder.weights[1, 0, 0], atol=0.01)
    # By keyboard: to the third token, whose name is no markup.
    tab.evaluate("document.querySelector('.queries button').focus()")
    press(tab, "ArrowRight")
    press(tab, "ArrowRight")
    assert pressed(tab) == WORDS[2]
    shown = weights_shown(tab, "keys")
    np.testing.assert_allclose(shown, encoder.weights[1, 0, 2], atol=0.01)
    press(tab, "Home")
    assert pressed(tab) == "the"
    # Another head, and the mean of both.
    turn(tab, ".head", "1")
    shown = weights_shown(tab, "keys")
    np.testing.assert_allclose(shown, encoder.weights[1, 1, 0], atol=0.01)
    turn(tab, ".head", "mean")
    shown = weights_shown(tab, "keys")
    expected = encoder.weights[1].mean(0)[0]
    np.testing.assert_allclose(shown, expected, atol=0.01)
    # Who looks at the last key?
    tab.evaluate("document.querySelectorAll('.keys button')[3].focus()")
    assert said(tab).startswith("saw is looked at by: ")
    shown = weights_shown(tab, "queries")
    expected = encoder.weights[1].mean(0)[:, 3]
    np.testing.assert_allclose(shown, expected, atol=0.01)
    # Another layer has other tokens and heads.
    turn(tab, ".layer", "1")
    heads = tab.evaluate(
        "[...document.querySelectorAll('.head option')]"
        ".map((option) => option.textContent)"
    )
    assert heads == ["1", "2", "5", "mean of all"]
    tab.evaluate("document.querySelectorAll('.queries button')[1].focus()")
    turn(tab, ".head", "2")
    shown = weights_shown(tab, "keys")
    np.testing.assert_allclose(shown, cross.weights[1, 2, 1], atol=0.01)


def test_a_mouse_is_enough(tab):
    tab.evaluate(
        "document.querySelectorAll('.queries button')[1]"
        ".dispatchEvent(new MouseEvent('mouseenter'))"
    )
    assert pressed(tab) == "cat"


def test_it_needs_nothing_from_elsewhere():
    piece = view_attention(maps()).html
    assert not re.search(r"https?:|src=|@import|url\(", piece)
    assert piece.count("</script>") == 1


def test_a_large_one_is_small():
    draw = np.random.default_rng(0)
    words = [[f"word{i}" for i in range(40)]]
    many = [
        AttentionMap(
            f"encoder_block_{layer}/self_attention",
            0,
            tuple(range(8)),
            draw.dirichlet(np.ones(40), (1, 8, 40)),
            words,
            words,
        )
        for layer in range(6)
    ]
    assert len(view_attention(many).html.encode()) < 300_000


def test_each_piece_is_its_own():
    one, two = (view_attention(maps()).html for _ in range(2))
    names = [re.search(r'id="([\w-]+)"', piece)[1] for piece in (one, two)]
    assert names[0] != names[1]
    assert view_attention(maps())._repr_html_().startswith("<style>")


def test_bad_arguments():
    with pytest.raises(ValueError, match="`maps` must not be empty"):
        view_attention([])
    with pytest.raises(ValueError, match=r"`row` must lie in \[0, 2\)"):
        view_attention(maps(), row=2)


def test_a_failed_write_leaves_the_old_page(tmp_path):
    path = tmp_path / "view.html"
    path.write_text("old", "utf-8")
    view = view_attention(maps())
    view.html = "\ud800"  # no text
    with pytest.raises(UnicodeEncodeError):
        view.save(path)
    assert path.read_text("utf-8") == "old"
