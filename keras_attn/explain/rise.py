"""rise: which parts of an input matter, by hiding parts of it at random."""

import sys

import keras
import numpy as np

from keras_attn import checks
from keras_attn.backend import no_gradients

_DRAWN = 64  # masks that are drawn at once


def rise(
    function,
    inputs,
    masks,
    num_masks=4000,
    batch_size=32,
    seed=0,
    verbose=1,
):
    """Returns how much each part of an input matters for what is said of it.

        S(x) = sum_i f(M_i(input)) M_i(x) / (E[M] N)

    Petsiuk et al. 2018, https://arxiv.org/abs/1806.07421, equation 6: the mean
    of what is said where a part is seen, N random masks M. Nothing is asked of
    the model but its answers, so it may be any callable; its gradients, and
    whether it has any attention, do not matter.

    A part that does not matter has the mean answer, not zero. With N masks of
    half of the parts each, the standard error is about the size of f over the
    square root of N.

    Args:
        function: `keras.Model` or callable of a batch of inputs, an array
            (B, ...), returning float (B, *outputs): a probability or a score
            of each output. A model is called without training.
        inputs: array of one input, without an axis for a batch.
        masks: `PatchMasks` for images, `FrameMasks` for audio, `TokenMasks`
            for ids; or an object with `draw`, `apply` and `probability` as
            they have.
        num_masks: int >= 1. N.
        batch_size: int >= 1. Masked inputs that are asked about together.
        seed: int >= 0. Of the masks.
        verbose: int. 1: progress is printed, on standard error; 0: nothing.

    Returns:
        Float32 (*outputs, *places), for each output how much each place
        matters; places are (H, W) of an image, (T,) of tokens or frames.

    Raises:
        ValueError: numbers out of range, an input that has too few axes, or a
            function that does not return a score a row.

    Examples:
        >>> def second_is_seven(ids):
        ...     return (ids[:, 1] == 7).astype("float32")
        >>> saliency = keras_attn.explain.rise(
        ...     second_is_seven, np.array([5, 7, 6]),
        ...     keras_attn.explain.TokenMasks(mask_id=1), verbose=0)
        >>> int(saliency.argmax()), saliency.shape
        (1, (3,))
    """
    checks.positive_int("num_masks", num_masks)
    checks.positive_int("batch_size", batch_size)
    inputs = keras.ops.convert_to_numpy(inputs)
    if inputs.ndim < masks.axes:
        raise ValueError(
            f"`inputs` must have {masks.axes} axes at least, those of one "
            f"input. Received: shape {inputs.shape}"
        )
    total, done = 0.0, 0
    for drawn in _batches(masks, inputs.shape, num_masks, batch_size, seed):
        scores = answers(function, masks.apply(inputs, drawn))
        total += np.tensordot(scores, drawn.astype("float64"), (0, 0))
        done += len(drawn)
        if verbose:
            _progress(done, num_masks)
    return (total / (masks.probability * num_masks)).astype("float32")


def _batches(masks, shape, count, batch_size, seed):
    """Yields batches of masks, the same masks whatever the size of a batch."""
    random = np.random.default_rng(seed)
    waiting, drawn = [], 0
    while drawn < count or waiting:
        while drawn < count and sum(map(len, waiting)) < batch_size:
            # As many at once whatever the batch.
            more = masks.draw(random, shape, min(_DRAWN, count - drawn))
            waiting.append(more)
            drawn += len(more)
        ready = np.concatenate(waiting)
        yield ready[:batch_size]
        rest = ready[batch_size:]
        waiting = [rest] if len(rest) else []


def answers(function, batch):
    """Returns what a model or callable says of a batch.

    Args:
        function: `keras.Model` or callable.
        batch: array (B, ...).

    Returns:
        Float64 (B, *outputs).

    Raises:
        ValueError: it does not return one score, or one array of them, a row.
    """
    with no_gradients():
        if isinstance(function, keras.layers.Layer):
            scores = function(batch, training=False)
        else:
            scores = function(batch)
    try:
        scores = keras.ops.convert_to_numpy(scores).astype("float64")
    except (TypeError, ValueError) as error:
        raise ValueError(
            "`function` must return one float array, scores of each row. "
            f"Received: {type(scores).__name__}"
        ) from error
    if scores.shape[:1] != (len(batch),):
        raise ValueError(
            f"`function` must return scores for each of {len(batch)} rows. "
            f"Received: shape {scores.shape}"
        )
    return scores


def _progress(done, total):
    end = "\n" if done == total else ""
    print(f"\rrise: {done:,} of {total:,} masks", end=end, file=sys.stderr)
