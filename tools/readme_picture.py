"""Draws the picture of the README: attention over a translated sentence.

    make translate
    KERAS_BACKEND=torch .venv/bin/python -m tools.readme_picture runs/translate

writes docs/assets/attention-light.png and attention-dark.png from the model in
the folder, one for each color scheme of GitHub.
"""

import argparse
import pathlib

import keras
import numpy as np

from keras_attn.explain import plot_attention
from keras_attn.text import SubwordTokenizer

ASSETS = pathlib.Path(__file__).parents[1] / "docs" / "assets"
# Foreground, background and colormap of each scheme.
SCHEMES = {
    "light": ("#1f2328", "#ffffff", "Blues"),
    "dark": ("#e6edf3", "#0d1117", "cividis"),
}


def attention_of(folder, sentence):
    """Translates a sentence with a saved model.

    Args:
        folder: path of a folder with model.keras and tokenizer.model.
        sentence: str.

    Returns:
        Float (T, S), the weights of the last cross-attention, averaged over its
        heads; the T target tokens and the S source tokens, lists of str.
    """
    folder = pathlib.Path(folder)
    model = keras.saving.load_model(folder / "model.keras", compile=False)
    tokenizer = SubwordTokenizer.load(folder / "tokenizer.model")
    source = [*tokenizer.encode(sentence), tokenizer.end_id]
    decoded = model.generate([source], 32, "beam", return_weights=True)
    length = decoded.lengths[0, 0]
    weights = decoded.weights[0, 0, -1].mean(axis=0)[:length]  # (T, S)
    names = [*tokenizer.tokens(sentence), "</s>"]
    written = tokenizer.decode(decoded.tokens[0, 0, : length - 1].tolist())
    return weights, [*tokenizer.tokens(written), "</s>"], names


def draw(weights, target, source, scheme):
    """Draws the weights in a color scheme.

    Args:
        weights: float (T, S).
        target: list of T str.
        source: list of S str.
        scheme: `"light"` or `"dark"`.

    Returns:
        The `matplotlib.figure.Figure`.
    """
    import matplotlib

    ink, paper, cmap = SCHEMES[scheme]
    colors = {
        "axes.edgecolor": ink,
        "axes.facecolor": paper,
        "axes.labelcolor": ink,
        "axes.titlecolor": ink,
        "figure.facecolor": paper,
        "text.color": ink,
        "xtick.color": ink,
        "ytick.color": ink,
    }
    with matplotlib.rc_context(colors):
        figure = plot_attention(
            np.asarray(weights)[None],
            query_tokens=target,
            key_tokens=source,
            head=0,
            title="Cross-attention of the last decoder block",
            cmap=cmap,
        )
        # The map is a mean over the heads, not the head that it is named after.
        figure.axes[0].set_title("")
        return figure


def main():
    """Runs the command."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", help="the folder that a training wrote")
    parser.add_argument(
        "--sentence", default="the black cat sees a small house"
    )
    asked = parser.parse_args()
    drawing = attention_of(asked.folder, asked.sentence)
    print(" ".join(drawing[1]))
    for scheme in SCHEMES:
        path = ASSETS / f"attention-{scheme}.png"
        draw(*drawing, scheme).savefig(path, dpi=120, bbox_inches="tight")
        print(f"Wrote {path}")


if __name__ == "__main__":
    main()
