"""Label-smoothed cross-entropy over many classes, with a closed-form gradient.

Automatic differentiation passes over the largest array of a language model's
training step, (tokens, vocabulary), about ten times (as of JAX 0.10.2,
TensorFlow 2.21.0 and PyTorch 2.13.0). The closed form needs three passes.
"""

from typing import Any

import keras
from keras import ops

from keras_attn.backend.xla_compiled import xla_compiled
from keras_attn.typing import Tensor, TensorLike

if keras.backend.backend() == "jax":
    import functools

    import jax
elif keras.backend.backend() == "torch":
    import torch
elif keras.backend.backend() == "tensorflow":
    import tensorflow as tf


def smoothed_nll(
    logits: TensorLike,
    labels: TensorLike,
    visible: TensorLike,
    smoothing: float = 0.0,
    class_weights: Any = None,
) -> Tensor:
    """Computes -(1 - e) w_y log p(y) - e mean_v w_v log p(v), p = softmax(z).

    Its gradient with respect to z is sum_v(t_v) p - t times the upstream
    gradient, with t = (1 - e) w_y one_hot(y) + e w / V. Where `visible` is
    False, both are exactly zero, whatever the logits. Computed in float32; the
    gradient has the dtype of the logits.

    On PyTorch and TensorFlow the gradient can be differentiated again, on JAX
    in reverse mode.

    Args:
        logits: float (n, V). z.
        labels: int32 (n,), in [0, V). y.
        visible: bool (n,).
        smoothing: float in [0, 1). e.
        class_weights: float32 (V,). w, without a gradient. Default None: 1.

    Returns:
        Float32 (n,), in nats.
    """
    return _IMPLEMENTATIONS[keras.backend.backend()](
        logits, labels, visible, smoothing, class_weights
    )


def smoothed_losses(
    scores: TensorLike,
    log_total: Any,
    labels: TensorLike,
    visible: TensorLike,
    smoothing: float,
    class_weights: Any,
) -> Any:
    """Computes losses from scores, shifted or not, and their log-sum-exp."""
    target = _picked(scores, labels)
    if class_weights is not None:
        losses = ops.take(class_weights, labels) * (log_total - target)
        if smoothing:
            # Only if smoothed: 0 * mean is NaN if a logit is -inf.
            mean = ops.mean(scores * class_weights, axis=-1)
            mean = log_total * ops.mean(class_weights) - mean
            losses = (1 - smoothing) * losses + smoothing * mean
    else:
        if smoothing:
            mean = ops.mean(scores, axis=-1)
            target = (1 - smoothing) * target + smoothing * mean
        losses = log_total - target
    return ops.where(visible, losses, 0.0)


def target_weights(
    labels: TensorLike, size: int, smoothing: float, class_weights: Any
) -> tuple[Any, Any, Any]:
    """Returns the parts of t: of the label, of every class, and the sum."""
    if class_weights is None:
        return 1 - smoothing, smoothing / size, 1.0
    label = (1 - smoothing) * ops.take(class_weights, labels)[:, None]
    every = class_weights * (smoothing / size)
    return label, every, label + ops.sum(every)


def _picked(values, labels):
    picked = ops.take_along_axis(values, ops.expand_dims(labels, -1), axis=-1)
    return ops.squeeze(picked, -1)


def _jax(logits, labels, visible, smoothing, class_weights):
    return _jax_nll(smoothing, logits, labels, visible, class_weights)


def _torch(logits, labels, visible, smoothing, class_weights):
    return _TorchNLL.apply(
        logits, labels.long(), visible, smoothing, class_weights
    )


def _tensorflow(logits, labels, visible, smoothing, class_weights):
    @tf.custom_gradient
    def nll(logits):
        losses, *normalizer = _tensorflow_losses(
            logits, labels, visible, smoothing, class_weights
        )

        @tf.custom_gradient
        def gradient(upstream, logits=logits):
            def second_gradient(direction):
                return _tensorflow_curved(
                    logits,
                    labels,
                    visible,
                    upstream,
                    direction,
                    smoothing,
                    class_weights,
                )

            full = _tensorflow_slope(
                logits,
                *normalizer,
                labels,
                visible,
                upstream,
                smoothing,
                class_weights,
            )
            return full, second_gradient

        return losses, lambda upstream: gradient(upstream, logits)

    return nll(logits)


_IMPLEMENTATIONS = {
    "jax": _jax,
    "torch": _torch,
    "tensorflow": _tensorflow,
}

if keras.backend.backend() == "jax":

    @functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
    def _jax_nll(smoothing, logits, labels, visible, class_weights):
        args = logits, labels, visible, class_weights
        losses, _ = _jax_forward(smoothing, *args)
        return losses

    def _jax_forward(smoothing, logits, labels, visible, class_weights):
        # Written out, XLA fuses this into two passes; `log_softmax` takes four
        # (as of JAX 0.10.2).
        z = logits.astype("float32")
        shifted = z - jax.lax.stop_gradient(jax.numpy.max(z, -1, keepdims=True))
        log_total = jax.numpy.log(jax.numpy.sum(jax.numpy.exp(shifted), -1))
        losses = smoothed_losses(
            shifted, log_total, labels, visible, smoothing, class_weights
        )
        return losses, (logits, labels, visible, class_weights)

    def _jax_backward(smoothing, kept, upstream):
        logits, labels, visible, class_weights = kept
        p = jax.nn.softmax(logits.astype("float32"))
        size = logits.shape[-1]
        label, every, total = target_weights(
            labels, size, smoothing, class_weights
        )
        classes = jax.numpy.arange(size, dtype=labels.dtype)
        target = jax.numpy.where(classes == labels[:, None], label, 0.0)
        full = (p * total - every - target) * upstream[:, None]
        full = jax.numpy.where(visible[:, None], full, 0.0)
        return full.astype(logits.dtype), None, None, None

    _jax_nll.defvjp(_jax_forward, _jax_backward)

if keras.backend.backend() == "torch":

    class _TorchNLL(torch.autograd.Function):
        @staticmethod
        def forward(ctx, logits, labels, visible, smoothing, class_weights):
            ctx.save_for_backward(logits, labels, visible, class_weights)
            ctx.smoothing = smoothing
            log_p = torch.log_softmax(logits, -1, dtype=torch.float32)
            return smoothed_losses(
                log_p, 0.0, labels, visible, smoothing, class_weights
            )

        @staticmethod
        def backward(ctx, upstream):
            logits, labels, visible, class_weights = ctx.saved_tensors
            upstream = torch.where(visible, upstream, 0.0)[:, None]
            label, every, total = target_weights(
                labels, logits.shape[-1], ctx.smoothing, class_weights
            )
            full = torch.softmax(logits, -1, dtype=torch.float32)
            if torch.is_grad_enabled():  # for second derivatives
                full = full * (total * upstream)
            else:
                full.mul_(total * upstream)
            full.sub_(every * upstream)
            full.scatter_add_(1, labels[:, None], -label * upstream)
            full.masked_fill_(~visible[:, None], 0.0)
            return full.to(logits.dtype), None, None, None, None


if keras.backend.backend() == "tensorflow":

    @xla_compiled
    def _tensorflow_losses(logits, labels, visible, smoothing, class_weights):
        z = tf.cast(logits, tf.float32)
        highest = tf.reduce_max(z, axis=-1, keepdims=True)
        shifted = z - highest
        log_total = tf.math.log(tf.reduce_sum(tf.exp(shifted), axis=-1))
        losses = smoothed_losses(
            shifted, log_total, labels, visible, smoothing, class_weights
        )
        return losses, highest, log_total[:, None]

    @xla_compiled
    def _tensorflow_slope(
        logits,
        highest,
        log_total,
        labels,
        visible,
        upstream,
        smoothing,
        class_weights,
    ):
        p = tf.exp(tf.cast(logits, tf.float32) - highest - log_total)
        target, total = _target(logits, labels, smoothing, class_weights)
        full = (p * total - target) * upstream[:, None]
        full = tf.where(visible[:, None], full, 0.0)
        return tf.cast(full, logits.dtype)

    def _tensorflow_curved(
        logits, labels, visible, upstream, direction, smoothing, class_weights
    ):
        p = tf.nn.softmax(tf.cast(logits, tf.float32))
        target, total = _target(logits, labels, smoothing, class_weights)
        direction = tf.where(
            visible[:, None], tf.cast(direction, tf.float32), 0.0
        )
        mean = tf.reduce_sum(p * direction, axis=-1, keepdims=True)
        curved = p * (direction - mean) * total * upstream[:, None]
        curved = tf.where(visible[:, None], curved, 0.0)
        along = tf.reduce_sum((p * total - target) * direction, axis=-1)
        along = tf.where(visible, along, 0.0)
        return along, tf.cast(curved, logits.dtype)

    def _target(logits, labels, smoothing, class_weights):
        """Returns t and its sum over the classes."""
        # The number of classes may be known only at run time, as where they are
        # positions in a row.
        size = tf.shape(logits)[-1]
        classes = tf.range(tf.cast(size, labels.dtype))
        label, every, total = target_weights(
            labels, tf.cast(size, tf.float32), smoothing, class_weights
        )
        hit = tf.where(classes == labels[:, None], label, 0.0)
        return every + hit, total
