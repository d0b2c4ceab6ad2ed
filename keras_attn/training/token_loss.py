"""What the loss and the metrics share: labels, weights, log-likelihood."""

from keras import ops

from keras_attn import checks
from keras_attn.backend import smoothed_nll


def check_pad_id(pad_id):
    """Returns `pad_id` where it is an int, else raises ValueError."""
    if isinstance(pad_id, bool) or not isinstance(pad_id, int):
        raise ValueError(
            f"`pad_id` must be an integer. Received: pad_id={pad_id!r}"
        )
    return pad_id


def read(y_true, y_pred):
    """Returns labels and logits as tensors, or raises where they disagree.

    Args:
        y_true: int (B, T). Labels. (Any rank: one less than that of `y_pred`.)
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
    wanted, found = tuple(logits.shape[:-1]), tuple(labels.shape)
    agree = len(logits.shape) == len(found) + 1 and all(
        a is None or b is None or a == b
        for a, b in zip(wanted, found, strict=True)
    )
    if not agree:
        raise ValueError(
            "`y_true` must have the shape of `y_pred` without its last axis. "
            f"Received: y_true of shape {found}, "
            f"y_pred of shape {tuple(logits.shape)}"
        )
    return ops.cast(labels, "int32"), logits


def weights(labels, pad_id, sample_weight=None):
    """Returns how much each token counts: 0 at padding, else its weight.

    Args:
        labels: int32 (B, T).
        pad_id: int. The label that means "no token here".
        sample_weight: float (B,) or (B, T). Default: every token counts 1.

    Returns:
        Float32 (B, T).

    Raises:
        ValueError: `sample_weight` does not fit `labels`.
    """
    visible = ops.not_equal(labels, pad_id)
    if sample_weight is None:
        return ops.cast(visible, "float32")
    weight = ops.convert_to_tensor(sample_weight, dtype="float32")
    shape, wanted = tuple(weight.shape), tuple(labels.shape)
    fits = 0 < len(shape) <= len(wanted) and all(
        a in (None, 1) or b is None or a == b
        for a, b in zip(shape, wanted, strict=False)
    )
    if not fits:
        raise ValueError(
            "`sample_weight` must give one number per sequence or per token "
            f"of `y_true` {wanted}. Received: sample_weight of shape {shape}"
        )
    for _ in range(len(wanted) - len(shape)):
        weight = ops.expand_dims(weight, -1)
    return ops.where(visible, weight, 0.0)


def negative_log_likelihood(labels, logits, visible, label_smoothing=0.0):
    """Returns -log p(label) per token, in nats, with smoothed labels.

    -(1 - e) log p(label) - e mean_v log p(v), for a smoothing of e. Computed
    in float32. Tokens that are not visible get exactly 0, whatever their label
    and logits. A visible label outside [0, V) gives NaN: compiled code cannot
    raise, and backends disagree about what a lookup there returns.

    Args:
        labels: int32 (B, T).
        logits: float (B, T, V). Where the classes are places of a row, V may
            be known only when the program runs.
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
