"""view_attention: behavior of the HTML in a browser."""

import json
import re

import numpy as np
import pytest

from keras_attn.explain import AttentionMap, view_attention
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


def opened(browser, tmp_path, variant):
    """Opens a saved page in a browser tab."""
    path = tmp_path / "view.html"
    view_attention(maps(), row=1, title="One & two").save(path)
    tab = Tab(browser, variant)
    tab.open(path.as_uri())
    return tab


@pytest.fixture
def tab(browser, tmp_path):
    tab = opened(browser, tmp_path, VARIANTS[0])
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


def test_selecting_layers_heads_and_tokens(tab):
    encoder, cross = maps()
    assert pressed(tab) == "the" and said(tab).startswith("the looks at: ")
    shown = weights_shown(tab, "keys")
    np.testing.assert_allclose(shown, encoder.weights[1, 0, 0], atol=0.01)
    # By keyboard: to the third token, whose name looks like markup.
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
    # The queries that attend to the last key.
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


def test_products_of_queries_and_keys(browser, tmp_path):
    encoder, cross = maps()
    draw = np.random.default_rng(1)
    queries, keys = draw.normal(size=(2, 2, 2, 4, 6))
    encoder = encoder._replace(queries=queries, keys=keys)
    view_attention([encoder, cross], row=1).save(tmp_path / "view.html")
    tab = Tab(browser, VARIANTS[0])
    tab.open((tmp_path / "view.html").as_uri())
    hidden = "document.querySelector('.vectors').hidden"
    # Opened by the keyboard or the mouse, which click the summary.
    tab.evaluate("document.querySelector('.vectors summary').click()")
    tab.evaluate("new Promise((done) => setTimeout(done, 50))")
    scores = queries[1] @ keys[1].swapaxes(1, 2) / np.sqrt(6)

    def shown():
        return np.array(
            tab.evaluate(
                """[...document.querySelectorAll(".vectors tbody tr")].slice(1)
                .map((row) => [...row.querySelectorAll(".number")]
                  .map((cell) => Number(cell.textContent)))"""
            )
        )

    turn(tab, ".head", "1")
    tab.evaluate("document.querySelectorAll('.queries button')[3].focus()")
    expected = scores[1, 3], encoder.weights[1, 1, 3]
    np.testing.assert_allclose(shown().T, expected, atol=0.05)
    # Of a key with every query.
    tab.evaluate("document.querySelectorAll('.keys button')[2].focus()")
    expected = scores[1, :, 2], encoder.weights[1, 1, :, 2]
    np.testing.assert_allclose(shown().T, expected, atol=0.05)
    sizes = tab.evaluate(
        "[...document.querySelectorAll('.vectors canvas')].map((c) => c.width)"
    )
    assert sizes == [6] * 9
    assert tab.evaluate(hidden) is False
    # A mean has no vectors, nor has the other layer.
    turn(tab, ".head", "mean")
    assert tab.evaluate(hidden) is True
    turn(tab, ".head", "0")
    assert tab.evaluate(hidden) is False
    turn(tab, ".layer", "1")
    assert tab.evaluate(hidden) is True
    tab.close()


def test_pictures_of_all_heads_select_one(tab):
    encoder, cross = maps()
    names = tab.evaluate(
        "[...document.querySelectorAll('.all button')].map((b) => b.title)"
    )
    assert names[1:3] == ["encoder, head 1", "cross, head 1"]
    assert len(names) == 5
    pixels = tab.evaluate(
        """[...document.querySelectorAll(".all canvas")].map((c) =>
          [c.height, c.width, ...c.getContext("2d").getImageData(
            0, 0, c.width, c.height).data.filter((_, i) => i % 4 === 3)])"""
    )
    heads = [*encoder.weights[1], *cross.weights[1]]
    for (height, width, *found), weights in zip(pixels, heads, strict=True):
        expected = np.round(255 * weights)
        np.testing.assert_array_equal(
            np.reshape(found, (height, width)), expected
        )
    tab.evaluate("document.querySelectorAll('.all button')[4].click()")
    current = "document.querySelector('.all [aria-current=true]').title"
    assert tab.evaluate(current) == "cross, head 5"
    shown = weights_shown(tab, "keys")
    np.testing.assert_allclose(shown, cross.weights[1, 2, 0], atol=0.01)
    turn(tab, ".head", "0")
    assert tab.evaluate(current) == "cross, head 1"
    turn(tab, ".head", "mean")
    assert tab.evaluate(f"{current.removesuffix('.title')} === null")


def test_mouse_and_touch(tab):
    tab.evaluate(
        "document.querySelectorAll('.queries button')[1]"
        ".dispatchEvent(new MouseEvent('mouseenter'))"
    )
    assert pressed(tab) == "cat"
    # Touch triggers a click.
    tab.evaluate("document.querySelectorAll('.queries button')[3].click()")
    assert pressed(tab) == "saw"


def test_arrow_keys_move_from_the_focused_token(tab):
    """The position of the mouse does not matter."""
    tab.evaluate("document.querySelectorAll('.queries button')[1].focus()")
    tab.evaluate(
        "document.querySelectorAll('.keys button')[3]"
        ".dispatchEvent(new MouseEvent('mouseenter'))"
    )
    assert pressed(tab) == "saw"
    press(tab, "ArrowRight")
    assert pressed(tab) == WORDS[2] and "looks at: " in said(tab)


def luminance(color):
    """Relative luminance of a color, as WCAG 2 defines it."""
    part = np.array(color) / 255
    low, high = part / 12.92, ((part + 0.055) / 1.055) ** 2.4
    return np.where(part <= 0.04045, low, high) @ [0.2126, 0.7152, 0.0722]


@pytest.mark.parametrize("variant", [VARIANTS[0], VARIANTS[3]])
def test_contrast_in_light_and_dark_themes(browser, tmp_path, variant):
    tab = opened(browser, tmp_path, variant)
    found = tab.evaluate(
        """(() => {
          const probe = document.createElement("div");
          probe.style.background = "Canvas";
          document.body.append(probe);
          const button = [...document.querySelectorAll(".keys button")].sort(
            (a, b) => b.lastChild.textContent - a.lastChild.textContent)[0];
          const style = getComputedStyle(button);
          return [getComputedStyle(probe).backgroundColor, style.color,
            getComputedStyle(document.querySelector("[role=group]"))
              .getPropertyValue("--ink")];
        })()"""
    )
    tab.close()
    page, text, ink = (
        np.array(re.findall(r"[\d.]+", color)[:3], float) for color in found
    )
    dark = variant.name.endswith("dark")
    assert bool(luminance(page) < 0.1) is dark
    # The background of the darkest token, and of one with weight 0.
    for share in (0.55, 0.0):
        background = luminance(share * ink + (1 - share) * page)
        light, deep = sorted([background, luminance(text)], reverse=True)
        assert (light + 0.05) / (deep + 0.05) > 4.5


def test_vectors_that_do_not_fit_raise():
    encoder, _ = maps()
    vectors = np.ones((2, 2, 4, 3))
    for changed, message in (
        ({"queries": vectors}, "`queries` and `keys` must both be given"),
        ({"queries": vectors[:, :1], "keys": vectors}, "`queries` must be"),
        ({"queries": vectors, "keys": vectors[..., :2]}, "the width of"),
        ({"queries": vectors, "keys": vectors * np.nan}, "must be finite"),
    ):
        with pytest.raises(ValueError, match=message):
            view_attention([encoder._replace(**changed)])


def test_no_external_resources():
    fragment = view_attention(maps()).html
    assert not re.search(r"https?:|src=|@import|url\(", fragment)
    assert fragment.count("</script>") == 1


def test_the_html_of_a_large_model_is_small():
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


def test_each_view_has_its_own_id():
    one, two = (view_attention(maps()).html for _ in range(2))
    names = [
        re.search(r'id="([\w-]+)"', fragment)[1] for fragment in (one, two)
    ]
    assert names[0] != names[1]
    assert view_attention(maps())._repr_html_().startswith("<style>")


def test_a_row_without_tokens(browser, tmp_path):
    one = AttentionMap("a", 0, (0,), np.zeros((1, 1, 2, 2)), [[]], [[]])
    view_attention([one]).save(tmp_path / "none.html")
    tab = Tab(browser, VARIANTS[0])
    tab.open((tmp_path / "none.html").as_uri())
    assert said(tab) == "There are no tokens."
    tab.close()


HEBREW = ["\u05e9\u05dc\u05d5\u05dd!", "\u05e2\u05d5\u05dc\u05dd", "end"]


def test_right_to_left_tokens_do_not_reorder_their_neighbors(browser, tmp_path):
    weights = np.array([[[0.2, 0.3, 0.5]] * 3])[None]
    one = AttentionMap("a", 0, (0,), weights, [HEBREW], [HEBREW])
    view_attention([one], title=HEBREW[0]).save(tmp_path / "view.html")
    tab = Tab(browser, VARIANTS[0])
    tab.open((tmp_path / "view.html").as_uri())
    text = said(tab)
    assert text == (
        f"{HEBREW[0]} looks at: {HEBREW[2]} 0.50, {HEBREW[1]} 0.30, "
        f"{HEBREW[0]} 0.20."
    )
    # The left edge of every character of the sentence but those of tokens.
    lefts = tab.evaluate(
        """(() => {
          const range = document.createRange(), found = [];
          for (const node of document.querySelector(".say").childNodes) {
            if (node.nodeType !== Node.TEXT_NODE) continue;
            for (let i = 0; i < node.length; i++) {
              range.setStart(node, i);
              range.setEnd(node, i + 1);
              found.push(range.getBoundingClientRect().left);
            }
          }
          return found;
        })()"""
    )
    assert len(lefts) > 20 and lefts == sorted(lefts)
    # The exclamation mark of a token is at its left.
    marks = tab.evaluate(
        """[...document.querySelectorAll(".queries bdi")].map((bdi) => {
          const range = document.createRange(), node = bdi.firstChild;
          return [0, node.length - 1].map((i) => {
            range.setStart(node, i);
            range.setEnd(node, i + 1);
            return range.getBoundingClientRect().left;
          });
        })"""
    )
    tab.close()
    assert [first > last for first, last in marks] == [True, True, False]


def test_numpy_integers_are_serialized():
    weights = np.full((1, 2, 3, 3), 1 / 3, "float16")
    ids = np.array([[5, 0, 7]])
    one = AttentionMap(
        "a", 0, np.array([0, 3]), weights, ids, [[b"a", "", "\ud800"]]
    )
    view = view_attention([one], row=np.int64(0))
    packed = json.loads(re.search(r"const maps = (\[.*\]);", view.html)[1])[0]
    assert packed["heads"] == [0, 3]
    assert packed["queries"] == ["5", "0", "7"]
    assert packed["keys"] == ["a", "\N{MIDDLE DOT}", "?"]


def test_invalid_arguments_raise():
    with pytest.raises(ValueError, match="`maps` must not be empty"):
        view_attention([])
    with pytest.raises(ValueError, match=r"`row` must lie in \[0, 2\)"):
        view_attention(maps(), row=2)


def test_a_failed_write_leaves_the_old_page(tmp_path):
    path = tmp_path / "view.html"
    path.write_text("old", "utf-8")
    view = view_attention(maps())
    view.html = "\ud800"  # not encodable
    with pytest.raises(UnicodeEncodeError):
        view.save(path)
    assert path.read_text("utf-8") == "old"
    assert list(tmp_path.iterdir()) == [path]
