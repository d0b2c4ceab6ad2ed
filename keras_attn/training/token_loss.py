"""Labels, weights and log-likelihoods for the loss and the metrics."""

import math
from typing import Any, NamedTuple

import keras
import numpy as np
from keras import ops

from keras_attn import checks
from keras_attn.backend import (
    broadcast_from_left,
    is_replica_mean,
    known_shape,
    linear_nll,
    merge_tokens,
    nan_where,
    smoothed_nll,
    split_tokens,
)
from keras_attn.typing import Tensor, TensorLike

_INT32 = np.iinfo("int32")
_WIDE = ("int64", "uint32", "uint64")


def check_pad_id(pad_id: int) -> int:
    """Returns `pad_id` if it is an int32 number, else raises ValueError."""
    return checks.token_id("pad_id", pad_id, _INT32.min, _INT32.max)


def check_metric(name: str, dtype: str | None) -> None:
    """Raises ValueError unless `name` is a str and `dtype` a float dtype."""
    if name is not None:
        checks.string("name", name)
    if dtype is None:
        return
    error = None
    try:
        floating = "float" in keras.dtype_policies.get(dtype).compute_dtype
    except (RecursionError, TypeError, ValueError) as raised:
        floating, error = False, raised
    if not floating:
        raise ValueError(
            "`dtype` must be a floating-point dtype. "
            f"Received: dtype={checks.shown(dtype)}"
        ) from error


def check_class_weight(class_weight: Any) -> Any:
    """Returns class weights as Python numbers, else raises ValueError.

    Args:
        class_weight: None, a dict of classes to weights, or a list or an array
            of one weight per class.

    Returns:
        None, a dict of int to float, or a list of float.
    """
    if class_weight is None:
        return None
    if hasattr(class_weight, "shape"):
        checks.rank("class_weight", class_weight, 1)
        class_weight = ops.convert_to_numpy(class_weight).tolist()
    is_dict = isinstance(class_weight, dict)
    if not class_weight or not isinstance(class_weight, (dict, list, tuple)):
        raise ValueError(
            "`class_weight` must be a dict of classes to weights, or a list of "
            "one weight per class. "
            f"Received: class_weight={checks.shown(class_weight)}"
        )
    for index in class_weight if is_dict else ():
        number = isinstance(index, (int, np.integer))
        if isinstance(index, bool) or not number or index < 0:
            raise ValueError(
                "`class_weight` must have classes as keys, integers of at "
                f"least 0. Received: the key {checks.shown(index)}"
            )
    for weight in class_weight.values() if is_dict else class_weight:
        number = isinstance(weight, (int, float, np.integer, np.floating))
        if isinstance(weight, bool) or not number or not 0 <= weight < math.inf:
            raise ValueError(
                "`class_weight` must have finite weights of at least 0. "
                f"Received: the weight {checks.shown(weight)}"
            )
    if is_dict:
        return {int(index): float(w) for index, w in class_weight.items()}
    return [float(weight) for weight in class_weight]


def class_weights(
    class_weight: Any, size: int | None, dynamic_size: TensorLike | None = None
) -> Any:
    """Returns the weight of every class.

    Args:
        class_weight: what `check_class_weight` returns.
        size: int, V; or None if it is known only when a program runs, which
            needs a dict as `class_weight`.
        dynamic_size: int32 scalar. V if `size` is None.

    Returns:
        Float32 (V,), or None if `class_weight` is None.

    Raises:
        ValueError: `class_weight` does not fit V.
    """
    if class_weight is None:
        return None
    if not isinstance(class_weight, dict):
        if size != len(class_weight):
            raise ValueError(
                "`class_weight` must be a list of one weight for each of the "
                f"{size or 'unknown number of'} classes of `y_pred`, or a "
                f"dict. Received: {len(class_weight)} weights"
            )
        return ops.convert_to_tensor(class_weight, dtype="float32")
    highest = max(class_weight)
    if size is not None and highest >= size:
        raise ValueError(
            f"`class_weight` must have keys in [0, {size}), the classes of "
            f"`y_pred`. Received: the key {highest}"
        )
    table = np.ones(highest + 1 if size is None else size, "float32")
    table[list(class_weight)] = list(class_weight.values())
    table = ops.convert_to_tensor(table)
    if size is not None:
        return table
    classes = ops.arange(dynamic_size)
    listed = ops.take(table, ops.minimum(classes, highest))
    return ops.where(classes <= highest, listed, 1.0)


class TokenScores(NamedTuple):
    """What the metrics of a batch are computed from.

    Args:
        labels: int32 (B, T).
        nats: float32 (B, T). -log p(label), without smoothing.
        hits: bool (B, T). Whether the label has the highest logit.
    """

    labels: Any
    nats: Any
    hits: Any


class OutputLayer(NamedTuple):
    """The weights of the layer that computes logits h E^T + b.

    Args:
        matrix: float (V, D), E, or (D, V) if `transposed`.
        bias: float (V,), or None.
        transposed: bool. Whether `matrix` is E^T.
    """

    matrix: Any
    bias: Any
    transposed: bool

    @property
    def size(self) -> int:
        """V, int."""
        return self.matrix.shape[1 if self.transposed else 0]


def read(y_true: TensorLike, y_pred: TensorLike) -> tuple[Tensor, ...]:
    """Returns labels and logits as tensors after checking their shapes.

    Args:
        y_true: int (B, T). Labels, of any rank one less than that of `y_pred`.
        y_pred: float (B, T, V). Logits.

    Returns:
        Tuple of an int32 tensor (B, T) and a tensor (B, T, V) in the dtype of
        `y_pred`.

    Raises:
        ValueError: the labels are not integers, the logits are not floats, or
            the shapes do not agree.
    """
    labels = _to_tensor("y_true", y_true)
    logits = _to_tensor("y_pred", y_pred)
    if not is_replica_mean(labels):
        checks.integers("y_true", labels)
    dtype = keras.backend.standardize_dtype(logits.dtype)
    if "float" not in dtype:
        raise ValueError(
            "`y_pred` must hold floating-point logits. "
            f"Received: y_pred of dtype {dtype}"
        )
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
    if logits.shape[-1] == 0:
        raise ValueError(
            "`y_pred` must have at least one class. "
            f"Received: y_pred of shape {tuple(logits.shape)}"
        )
    if keras.backend.standardize_dtype(labels.dtype) in _WIDE:
        # A cast would wrap 2^32 around to 0, which may be the pad id.
        labels = ops.clip(labels, _INT32.min, _INT32.max)
    return ops.cast(labels, "int32"), logits


def _to_tensor(name, value):
    """Returns a tensor, or raises ValueError if there is no such tensor."""
    if isinstance(value, (bool, int, float, list, tuple)):
        try:
            value = np.asarray(value)
        except ValueError as error:
            raise ValueError(
                f"`{name}` must have rows of equal length. "
                f"Received: {name}={checks.shown(value)}"
            ) from error
    checks.int32(name, checks.tensor(name, value))
    return ops.convert_to_tensor(value)


def weights(
    labels: TensorLike, pad_id: int, sample_weight: TensorLike | None = None
) -> Tensor:
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
    weight = _to_tensor("sample_weight", sample_weight)
    if "complex" in keras.backend.standardize_dtype(weight.dtype):
        raise ValueError(
            "`sample_weight` must hold real numbers. "
            f"Received: sample_weight of dtype {weight.dtype}"
        )
    weight = ops.cast(weight, "float32")
    shape, expected = known_shape(weight), tuple(labels.shape)
    if shape is None:
        return ops.where(visible, broadcast_from_left(weight, labels), 0.0)
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


def negative_log_likelihood(
    labels: TensorLike,
    logits: TensorLike,
    visible: TensorLike,
    label_smoothing: float = 0.0,
    class_weights: Any = None,
) -> Tensor:
    """Returns -log p(label) per token, in nats, with smoothed labels.

    -(1 - e) w_y log p(y) - e mean_v w_v log p(v), for a smoothing of e and
    class weights w. Computed in float32. Padding gets exactly 0, whatever its
    label and logits. Any other label outside [0, V) gives NaN: compiled code
    cannot raise, and backends disagree about out-of-range lookups
    (as of Keras 3.15.1).

    Args:
        labels: int32 (B, T).
        logits: float (B, T, V). V can be dynamic, as in span extraction, where
            the classes are positions.
        visible: bool (B, T). False at padding.
        label_smoothing: float in [0, 1).
        class_weights: float32 (V,). Default None: 1.

    Returns:
        Float32 (B, T).
    """
    size = ops.shape(logits)[-1]
    known = ops.logical_and(labels >= 0, labels < size)
    computed = ops.logical_and(visible, known)
    index = ops.where(computed, labels, 0)
    if class_weights is not None and not label_smoothing:
        # A loss with weight 0 may be infinite; 0 * inf is NaN.
        ignored = ops.equal(ops.take(class_weights, index), 0)
        computed = ops.logical_and(computed, ops.logical_not(ignored))
    axes = len(labels.shape)
    nll = smoothed_nll(
        *(merge_tokens(x, axes) for x in (logits, index, computed)),
        label_smoothing,
        class_weights,
    )
    unknown = ops.logical_and(visible, ops.logical_not(known))
    return nan_where(unknown, split_tokens(nll, ops.shape(labels)))


def linear_loss(
    labels: TensorLike,
    hidden: TensorLike,
    layer: OutputLayer,
    visible: TensorLike,
    weights: TensorLike,
    label_smoothing: float,
    class_weights: Any,
    gradient: bool,
) -> Any:
    """Returns the sum of the losses of an output layer, without all logits.

    As `negative_log_likelihood` of the logits, summed with weights.

    Args:
        labels: int32 (B, T).
        hidden: float (B, T, D). The input of the output layer.
        layer: `OutputLayer`.
        visible: bool (B, T). False at padding.
        weights: float32 (B, T), 0 at padding.
        label_smoothing: float in [0, 1).
        class_weights: float32 (V,), or None: 1.
        gradient: bool. Whether to compute the gradient.

    Returns:
        Float32 scalar, and `TokenScores`.
    """
    known = ops.logical_and(labels >= 0, labels < layer.size)
    computed = ops.logical_and(visible, known)
    index = ops.where(computed, labels, 0)
    # NaN at padding would reach the gradient of the matrix: 0 * NaN is NaN.
    hidden = ops.where(visible[..., None], hidden, 0)
    if class_weights is not None and not label_smoothing:
        # A loss with weight 0 may be infinite; 0 * inf is NaN.
        ignored = ops.equal(ops.take(class_weights, index), 0)
        computed = ops.logical_and(computed, ops.logical_not(ignored))
    bias = layer.bias
    total, *scores = linear_nll(
        merge_tokens(hidden),
        ops.cast(layer.matrix, hidden.dtype),
        None if bias is None else ops.convert_to_tensor(bias),
        merge_tokens(index),
        merge_tokens(computed),
        merge_tokens(weights),
        label_smoothing,
        class_weights,
        layer.transposed,
        gradient,
    )
    unknown = ops.logical_and(visible, ops.logical_not(known))
    counted = ops.logical_and(unknown, ops.not_equal(weights, 0))
    nats, hits = (split_tokens(x, ops.shape(labels)) for x in scores)
    hits = ops.logical_and(hits, known)
    return nan_where(ops.any(counted), total), TokenScores(
        labels, nan_where(unknown, nats), hits
    )
