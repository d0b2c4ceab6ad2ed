"""rise: saliency from random masking of the input."""

import sys
from collections.abc import Callable
from typing import Any

import keras
import numpy as np

from keras_attn import checks
from keras_attn.backend import no_gradients
from keras_attn.explain.arguments import number_array
from keras_attn.explain.perturbations import PatchMasks, TokenMasks
from keras_attn.typing import Tensor, TensorLike

_DRAWN = 64  # masks that are drawn at once
_MOST_MASKS = 10**7  # more would take days


def rise(
    function: Callable[..., Any],
    inputs: TensorLike,
    masks: Any,
    num_masks: int = 4000,
    batch_size: int = 32,
    seed: int = 0,
    verbose: int = 1,
) -> Tensor:
    """Computes a RISE saliency map of one input.

        S(x) = sum_i f(M_i(input)) M_i(x) / (E[M] N)

    Petsiuk et al. 2018, https://arxiv.org/abs/1806.07421, equation 6: the mean
    output over the masks that show a position, N random masks M. Only the
    outputs of the model are used, so it may be any callable; it needs neither
    gradients nor attention.

    An irrelevant position has the mean output, not zero. With N masks that show
    half of the positions each, the standard error is about the size of f over
    the square root of N.

    Args:
        function: `keras.Model` or callable that takes a batch of inputs, an
            array (B, ...), and returns float (B, *outputs), a probability or
            score per output. A model is called with `training=False`.
        inputs: array of one input, without a batch axis.
        masks: `PatchMasks` for images, `FrameMasks` for audio, `TokenMasks`
            for ids; or an object with the same `draw`, `apply`, `axes` and
            `probability`.
        num_masks: int in [1, 10^7]. N.
        batch_size: int >= 1. Masked inputs per call of `function`.
        seed: int >= 0. Seed of the masks.
        verbose: int. 1: progress is printed to standard error; 0: silent.

    Returns:
        Float32 (*outputs, *positions), the saliency of each position for each
        output; positions are (H, W) of an image, (T,) of tokens or frames.

    Raises:
        ValueError: arguments out of range, an input with too few axes, or a
            function that does not return one score per row.

    Examples:
        >>> def second_is_seven(ids):
        ...     return (ids[:, 1] == 7).astype("float32")
        >>> saliency = keras_attn.explain.rise(
        ...     second_is_seven, np.array([5, 7, 6]),
        ...     keras_attn.explain.TokenMasks(mask_id=1), verbose=0)
        >>> int(saliency.argmax()), saliency.shape
        (1, (3,))
    """
    checks.integer("num_masks", num_masks, least=1, most=_MOST_MASKS)
    checks.positive_int("batch_size", batch_size, most=None)
    checks.integer("seed", seed, least=0)
    checks.choice("verbose", verbose, (0, 1))
    check_function(function)
    inputs = number_array("inputs", inputs)
    check_masks(masks, inputs)
    total, done = 0.0, 0
    for drawn in _batches(masks, inputs.shape, num_masks, batch_size, seed):
        scores = answers(function, masks.apply(inputs, drawn))
        total += np.tensordot(scores, drawn.astype("float64"), (0, 0))
        done += len(drawn)
        if verbose:
            _progress(done, num_masks)
    return (total / (masks.probability * num_masks)).astype("float32")


def check_function(function: Callable[..., Any]) -> None:
    """Raises ValueError if `function` cannot be called."""
    if not callable(function):
        raise ValueError(
            "`function` must be a model or a callable. "
            f"Received: function of type {type(function).__name__}"
        )


def check_masks(masks: Any, inputs: TensorLike) -> None:
    """Raises ValueError if `masks` is another object, or does not fit.

    Args:
        masks: as for `rise`.
        inputs: NumPy array of one input.
    """
    parts = "draw", "apply", "axes", "probability"
    if isinstance(masks, type) or not all(hasattr(masks, x) for x in parts):
        raise ValueError(
            "`masks` must be `PatchMasks`, `FrameMasks`, `TokenMasks` or an "
            f"object with {', '.join(parts)}. "
            f"Received: masks of type {type(masks).__name__}"
        )
    if inputs.ndim < masks.axes or 0 in inputs.shape[: masks.axes]:
        raise ValueError(
            f"`inputs` must have at least {masks.axes} axes, those of one "
            f"input, and a position. Received: shape {inputs.shape}"
        )
    is_ids = inputs.ndim == 1 and inputs.dtype.kind in "iu"
    if isinstance(masks, TokenMasks) and not is_ids:
        raise ValueError(
            "`inputs` must be the token ids of one row (int32) for "
            f"`TokenMasks`. Received: {inputs.dtype} of shape {inputs.shape}"
        )
    if isinstance(masks, PatchMasks):
        shape = np.shape(masks.baseline)
        sizes = zip(shape[::-1], inputs.shape[::-1], strict=False)
        fits = len(shape) <= inputs.ndim and all(
            size in (1, other) for size, other in sizes
        )
        if not fits:
            raise ValueError(
                "`masks` must have a `baseline` that can be broadcast to one "
                f"input, of shape {inputs.shape}. Received: shape {shape}"
            )


def _batches(masks, shape, count, batch_size, seed):
    """Yields batches of masks; the masks do not depend on the batch size."""
    random = np.random.default_rng(seed)
    waiting, drawn = [], 0
    while drawn < count or waiting:
        while drawn < count and sum(map(len, waiting)) < batch_size:
            # In fixed chunks, so that the draws do not depend on `batch_size`.
            more = masks.draw(random, shape, min(_DRAWN, count - drawn))
            waiting.append(more)
            drawn += len(more)
        ready = np.concatenate(waiting)
        yield ready[:batch_size]
        rest = ready[batch_size:]
        waiting = [rest] if len(rest) else []


def answers(function: Callable[..., Any], batch: TensorLike) -> Tensor:
    """Returns the outputs of a model or callable for a batch.

    Args:
        function: `keras.Model` or callable.
        batch: array (B, ...).

    Returns:
        Float64 (B, *outputs).

    Raises:
        ValueError: it does not return one finite score, or one array of finite
            scores, per row.
    """
    with no_gradients():
        if isinstance(function, keras.layers.Layer):
            scores = function(batch, training=False)
        else:
            scores = function(batch)
    try:
        scores = number_array("function", scores).astype("float64")
    except ValueError as error:
        raise ValueError(
            "`function` must return one float array, scores of each row. "
            f"Received: {type(scores).__name__}"
        ) from error
    if scores.shape[:1] != (len(batch),):
        raise ValueError(
            f"`function` must return scores for each of {len(batch)} rows. "
            f"Received: shape {scores.shape}"
        )
    if not np.isfinite(scores).all():
        raise ValueError(
            "`function` must return finite scores. "
            f"Received: values from {scores.min()} to {scores.max()}"
        )
    return scores


def _progress(done, total):
    end = "\n" if done == total else ""
    print(f"\rrise: {done:,} of {total:,} masks", end=end, file=sys.stderr)
