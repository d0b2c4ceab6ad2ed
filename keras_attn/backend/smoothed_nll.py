"""Label-smoothed cross-entropy over many classes, with a closed-form gradient.

Automatic differentiation passes over the largest array of a language model's
training step, (tokens, vocabulary), about ten times (as of JAX 0.10.2,
TensorFlow 2.21.0 and PyTorch 2.13.0). The closed form needs three passes.
"""

import keras
from keras import ops

from keras_attn.backend.xla_compiled import xla_compiled

if keras.backend.backend() == "jax":
    import functools

    import jax
elif keras.backend.backend() == "torch":
    import torch
elif keras.backend.backend() == "tensorflow":
    import tensorflow as tf


def smoothed_nll(logits, labels, visible, smoothing=0.0):
    """Computes -(1 - e) log p(y) - e mean_v log p(v), p = softmax(z).

    Its gradient with respect to z is (p - e / V - (1 - e) one_hot(y)) times the
    upstream gradient. Where `visible` is False, both are exactly zero, whatever
    the logits. Computed in float32; the gradient has the dtype of the logits.

    On PyTorch and TensorFlow the gradient can be differentiated again, on JAX
    in reverse mode.

    Args:
        logits: float (n, V). z.
        labels: int32 (n,), in [0, V). y.
        visible: bool (n,).
        smoothing: float in [0, 1). e.

    Returns:
        Float32 (n,), in nats.
    """
    return _IMPLEMENTATIONS[keras.backend.backend()](
        logits, labels, visible, smoothing
    )


def _smoothed(scores, log_total, labels, visible, smoothing):
    """Computes losses from scores, shifted or not, and their log-sum-exp."""
    target = _picked(scores, labels)
    if smoothing:
        # Only if smoothed: 0 * mean is NaN if a logit is -inf.
        mean = ops.mean(scores, axis=-1)
        target = (1 - smoothing) * target + smoothing * mean
    return ops.where(visible, log_total - target, 0.0)


def _picked(values, labels):
    picked = ops.take_along_axis(values, ops.expand_dims(labels, -1), axis=-1)
    return ops.squeeze(picked, -1)


def _jax(logits, labels, visible, smoothing):
    return _jax_nll(smoothing, logits, labels, visible)


def _torch(logits, labels, visible, smoothing):
    return _TorchNLL.apply(logits, labels.long(), visible, smoothing)


def _tensorflow(logits, labels, visible, smoothing):
    @tf.custom_gradient
    def nll(logits):
        losses, *normalizer = _tensorflow_losses(
            logits, labels, visible, smoothing
        )

        @tf.custom_gradient
        def gradient(upstream, logits=logits):
            def second_gradient(direction):
                return _tensorflow_curved(
                    logits, labels, visible, upstream, direction, smoothing
                )

            full = _tensorflow_slope(
                logits, *normalizer, labels, visible, upstream, smoothing
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
    def _jax_nll(smoothing, logits, labels, visible):
        return _jax_forward(smoothing, logits, labels, visible)[0]

    def _jax_forward(smoothing, logits, labels, visible):
        # Written out, XLA fuses this into two passes; `log_softmax` takes four
        # (as of JAX 0.10.2).
        z = logits.astype("float32")
        shifted = z - jax.lax.stop_gradient(jax.numpy.max(z, -1, keepdims=True))
        log_total = jax.numpy.log(jax.numpy.sum(jax.numpy.exp(shifted), -1))
        losses = _smoothed(shifted, log_total, labels, visible, smoothing)
        return losses, (logits, labels, visible)

    def _jax_backward(smoothing, kept, upstream):
        logits, labels, visible = kept
        p = jax.nn.softmax(logits.astype("float32"))
        classes = jax.numpy.arange(logits.shape[-1], dtype=labels.dtype)
        target = jax.numpy.where(classes == labels[:, None], 1 - smoothing, 0.0)
        full = (p - smoothing / logits.shape[-1] - target) * upstream[:, None]
        full = jax.numpy.where(visible[:, None], full, 0.0)
        return full.astype(logits.dtype), None, None

    _jax_nll.defvjp(_jax_forward, _jax_backward)

if keras.backend.backend() == "torch":

    class _TorchNLL(torch.autograd.Function):
        @staticmethod
        def forward(ctx, logits, labels, visible, smoothing):
            ctx.save_for_backward(logits, labels, visible)
            ctx.smoothing = smoothing
            log_p = torch.log_softmax(logits, -1, dtype=torch.float32)
            return _smoothed(log_p, 0.0, labels, visible, smoothing)

        @staticmethod
        def backward(ctx, upstream):
            logits, labels, visible = ctx.saved_tensors
            upstream = torch.where(visible, upstream, 0.0)[:, None]
            full = torch.softmax(logits, -1, dtype=torch.float32)
            if torch.is_grad_enabled():  # for second derivatives
                full = full * upstream
            else:
                full.mul_(upstream)
            full.sub_(ctx.smoothing / logits.shape[-1] * upstream)
            full.scatter_add_(
                1, labels[:, None], (ctx.smoothing - 1) * upstream
            )
            full.masked_fill_(~visible[:, None], 0.0)
            return full.to(logits.dtype), None, None, None


if keras.backend.backend() == "tensorflow":

    @xla_compiled
    def _tensorflow_losses(logits, labels, visible, smoothing):
        z = tf.cast(logits, tf.float32)
        highest = tf.reduce_max(z, axis=-1, keepdims=True)
        shifted = z - highest
        log_total = tf.math.log(tf.reduce_sum(tf.exp(shifted), axis=-1))
        losses = _smoothed(shifted, log_total, labels, visible, smoothing)
        return losses, highest, log_total[:, None]

    @xla_compiled
    def _tensorflow_slope(
        logits, highest, log_total, labels, visible, upstream, smoothing
    ):
        p = tf.exp(tf.cast(logits, tf.float32) - highest - log_total)
        full = (p - _target(logits, labels, smoothing)) * upstream[:, None]
        full = tf.where(visible[:, None], full, 0.0)
        return tf.cast(full, logits.dtype)

    def _tensorflow_curved(
        logits, labels, visible, upstream, direction, smoothing
    ):
        p = tf.nn.softmax(tf.cast(logits, tf.float32))
        direction = tf.where(
            visible[:, None], tf.cast(direction, tf.float32), 0.0
        )
        mean = tf.reduce_sum(p * direction, axis=-1, keepdims=True)
        curved = p * (direction - mean) * upstream[:, None]
        curved = tf.where(visible[:, None], curved, 0.0)
        slope = p - _target(logits, labels, smoothing)
        along = tf.reduce_sum(slope * direction, axis=-1)
        along = tf.where(visible, along, 0.0)
        return along, tf.cast(curved, logits.dtype)

    def _target(logits, labels, smoothing):
        # The number of classes may be known only at run time, as where they are
        # positions in a row.
        size = tf.shape(logits)[-1]
        classes = tf.range(tf.cast(size, labels.dtype))
        hit = tf.where(classes == labels[:, None], 1 - smoothing, 0.0)
        return smoothing / tf.cast(size, tf.float32) + hit
