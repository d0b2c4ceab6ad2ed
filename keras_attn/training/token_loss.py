"""Labels, weights and log-likelihoods for the loss and the metrics."""

from keras import ops

from keras_attn import checks
from keras_attn.backend import smoothed_nll


def check_pad_id(pad_id):
    """Returns `pad_id` if it is an int, else raises ValueError."""
    if isinstance(pad_id, bool) or not isinstance(pad_id, int):
        raise ValueError(
            f"`pad_id` must be an integer. Received: pad_id={pad_id!r}"
        )
    return pad_id


def read(y_true, y_pred):
    """Returns labels and logits as tensors after checking their shapes.

    Args:
        y_true: int (B, T). Labels, of any rank one less than that of `y_pred`.
        y_pred: float (B, T, V). Logits.

    Returns:
        Tuple of an int32 tensor (B, T) and a tensor (B, T, V) in the dtype of
        `y_pred`.

    Raises:
        ValueError: the labels are not integers or the shapes do not agree.
    """
    labels = ops.convert_to_tensor(y_true)
    logits = ops.convert_to_tensor(y_pred)
    checks.integers("y_true", labels)
    expected, found = tuple(logits.shape[:-1]), tuple(labels.shape)
    agree = len(logits.shape) == len(found) + 1 and all(
        a is None or b is None or a == b
        for a, b in zip(expected, found, strict=True)
    )
    if not agree:
        raise ValueError(
            "`y_true` must have the shape of `y_pred` without its last axis. "
            f"Received: y_true of shape {found}, "
            f"y_pred of shape {tuple(logits.shape)}"
        )
    return ops.cast(labels, "int32"), logits


def weights(labels, pad_id, sample_weight=None):
    """Returns the weight of each token, 0 at padding.

    Args:
        labels: int32 (B, T).
        pad_id: int. Label of padding positions.
        sample_weight: float (B,) or (B, T). Default: 1 for every token.

    Returns:
        Float32 (B, T).

    Raises:
        ValueError: `sample_weight` does not fit `labels`.
    """
    visible = ops.not_equal(labels, pad_id)
    if sample_weight is None:
        return ops.cast(visible, "float32")
    weight = ops.convert_to_tensor(sample_weight, dtype="float32")
    shape, expected = tuple(weight.shape), tuple(labels.shape)
    fits = 0 < len(shape) <= len(expected) and all(
        a in (None, 1) or b is None or a == b
        for a, b in zip(shape, expected, strict=False)
    )
    if not fits:
        raise ValueError(
            "`sample_weight` must give one number per sequence or per token "
            f"of `y_true` {expected}. Received: sample_weight of shape {shape}"
        )
    for _ in range(len(expected) - len(shape)):
        weight = ops.expand_dims(weight, -1)
    return ops.where(visible, weight, 0.0)


def negative_log_likelihood(labels, logits, visible, label_smoothing=0.0):
    """Returns -log p(label) per token, in nats, with smoothed labels.

    -(1 - e) log p(label) - e mean_v log p(v), for a smoothing of e. Computed
    in float32. Padding gets exactly 0, whatever its label and logits. Any other
    label outside [0, V) gives NaN: compiled code cannot raise, and backends
    disagree about out-of-range lookups (as of Keras 3.15.1).

    Args:
        labels: int32 (B, T).
        logits: float (B, T, V). V can be dynamic, as in span extraction, where
            the classes are positions.
        visible: bool (B, T). False at padding.
        label_smoothing: float in [0, 1).

    Returns:
        Float32 (B, T).
    """
    size = ops.shape(logits)[-1]
    known = ops.logical_and(labels >= 0, labels < size)
    index = ops.where(ops.logical_and(visible, known), labels, 0)
    nll = smoothed_nll(
        ops.reshape(logits, (-1, size)),
        ops.reshape(index, (-1,)),
        ops.reshape(visible, (-1,)),
        label_smoothing,
    )
    nll = ops.reshape(nll, ops.shape(labels))
    return ops.where(
        ops.logical_or(known, ops.logical_not(visible)), nll, float("nan")
    )
