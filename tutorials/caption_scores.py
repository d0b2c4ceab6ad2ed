"""What captions are worth: whether they are true, what the picture tells."""

import keras
import numpy as np
from pair_table import PAD
from scene_captions import judge


def true_shares(scenes, captions):
    """Judges the captions of scenes.

    Args:
        scenes: list of tuple of two `Thing`.
        captions: list of str.

    Returns:
        Dict of float: the shares that are `"sentence"`s, that name both
        `"things"`, and of which all is `"true"`.
    """
    verdicts = np.array(
        [judge(*pair) for pair in zip(scenes, captions, strict=True)]
    )
    names = "sentence", "things", "true"
    return dict(zip(names, verdicts.mean(0).tolist(), strict=True))


def nats(model, pictures, reads, says, batch_size=64):
    """Returns how unlikely captions are, given pictures.

    Args:
        model: `Captioner`.
        pictures: uint8 (B, H, W, 3).
        reads: int32 (B, T), what the decoder reads.
        says: int32 (B, T), what it shall say.
        batch_size: int.

    Returns:
        Float (B,), -log p(caption | picture).
    """
    logits = model.predict(
        (pictures, reads), batch_size=min(batch_size, len(reads)), verbose=0
    )
    shares = keras.ops.log_softmax(keras.ops.cast(logits, "float32"))
    shares = keras.ops.convert_to_numpy(shares)
    taken = np.take_along_axis(shares, says[..., None], -1)[..., 0]
    return -np.where(says != PAD, taken, 0).sum(1)


def told_by_pictures(model, pictures, reads, says, seed=0):
    """Says how much the pictures tell of their captions.

    Each caption is scored with its own picture and with that of another row.

    Args:
        model: `Captioner`.
        pictures: uint8 (B, H, W, 3), B >= 2.
        reads: int32 (B, T).
        says: int32 (B, T).
        seed: int. Decides which other picture.

    Returns:
        Dict of float: nats a word with the `"own"` and with the `"other"`
        picture, and the share of captions to which the own one is `"chosen"`,
        ties counted half.
    """
    turn = 1 + np.random.default_rng(seed).integers(len(pictures) - 1)
    own = nats(model, pictures, reads, says)
    other = nats(model, np.roll(pictures, turn, axis=0), reads, says)
    words = (says != PAD).sum()
    chosen = np.where(own == other, 0.5, own < other)
    return {
        "own": float(own.sum() / words),
        "other": float(other.sum() / words),
        "chosen": float(chosen.mean()),
    }


def on_the_thing(scene, caption, look, grid, size):
    """Returns how much of the weight of words lies on the things they name.

    Args:
        scene: tuple of two `Thing`.
        caption: str, a true one.
        look: float (T, S), weights of the words over the grid, row by row.
        grid: tuple of int, rows and columns of the grid.
        size: int. Height and width of the picture, in pixels.

    Returns:
        Dict from the place of a colour or a shape among the words to a float.
        The thing counts with a margin of the width of a place.
    """
    words = caption.split()
    by_kind = {thing.kind: thing for thing in scene}
    rows, columns = np.indices(grid)
    shares = {}
    for first in (1, len(words) - 2):
        thing = by_kind[tuple(words[first : first + 2])]
        reach = thing.radius + size / grid[0]
        near = abs((columns + 0.5) * size / grid[1] - thing.x) <= reach
        near &= abs((rows + 0.5) * size / grid[0] - thing.y) <= reach
        for place in (first, first + 1):
            shares[place] = float(look[place].reshape(grid)[near].sum())
    return shares
