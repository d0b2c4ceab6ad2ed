"""Cross-entropy of a linear output layer, without all logits at once.

The logits of a language model, (tokens, vocabulary), are the largest array of
a training step, and their gradient is as large. Here both exist for a few
tokens at a time. The gradient is computed together with the loss, so that no
logits are computed twice, as in Liger Kernel (Hsu et al. 2024,
https://arxiv.org/abs/2410.10989).
"""

from typing import Any

import keras
from keras import ops

from keras_attn.backend.sharding import sequence_split
from keras_attn.backend.smoothed_nll import smoothed_losses, target_weights
from keras_attn.backend.xla_compiled import xla_compiled
from keras_attn.typing import TensorLike

if keras.backend.backend() == "jax":
    import functools

    import jax
elif keras.backend.backend() == "torch":
    import torch
elif keras.backend.backend() == "tensorflow":
    import tensorflow as tf

# Tokens whose logits exist at the same time. Each chunk takes one pass over the
# gradient of the matrix. PyTorch needs one array of a chunk, XLA several.
CHUNK = 256 if keras.backend.backend() == "torch" else 128


def linear_nll(
    hidden: TensorLike,
    matrix: TensorLike,
    bias: float | None,
    labels: TensorLike,
    visible: TensorLike,
    weights: TensorLike,
    smoothing: float = 0.0,
    class_weights: Any = None,
    transposed: bool = False,
    gradient: bool = True,
) -> Any:
    """Computes sum_i w_i loss_i of the logits z = h E^T + b, in chunks.

    The losses are those of `smoothed_nll`. The gradient with respect to
    `hidden`, `matrix` and `bias` is computed with them and can be used once;
    there is no second derivative. Sums over tokens are float32.

    Args:
        hidden: float (n, D). h, finite also where `visible` is False.
        matrix: float (V, D), E, or (D, V) if `transposed`, of the dtype of
            `hidden`.
        bias: float (V,), or None.
        labels: int32 (n,), in [0, V).
        visible: bool (n,). Tokens where it is False have a loss of 0.
        weights: float32 (n,). w, without a gradient. A token with weight 0 adds
            0, even if its loss is infinite.
        smoothing: float in [0, 1).
        class_weights: float32 (V,), without a gradient. Default None: 1.
        transposed: bool. Whether `matrix` is E^T. Default False.
        gradient: bool. Whether to compute the gradient. Default True; without
            it, the result is a constant.

    Returns:
        Float32 scalar, the weighted sum of the losses; and, without a gradient,
        float32 (n,), -log p(y) of each token without smoothing and class
        weights, and bool (n,), whether the label has the highest logit.
    """
    visible = ops.logical_and(visible, ops.not_equal(weights, 0))
    return _implementation(
        (smoothing, transposed, gradient),
        hidden,
        matrix,
        bias,
        labels,
        visible,
        weights,
        class_weights,
    )


def _logits(hidden, matrix, bias, transposed):
    """Returns float32 logits, rounded as those of an output layer are."""
    logits = hidden @ (matrix if transposed else ops.transpose(matrix))
    if bias is not None:
        logits = logits + ops.cast(bias, logits.dtype)
    return ops.cast(logits, "float32")


def _chunk(options, hidden, matrix, bias, labels, visible, weights, classes):
    """Returns total, nats, hits and the gradient of the logits of a chunk."""
    smoothing, transposed, gradient = options
    logits = _logits(hidden, matrix, bias, transposed)
    shifted = logits - ops.max(logits, axis=-1, keepdims=True)
    log_total = ops.log(ops.sum(ops.exp(shifted), axis=-1))
    losses = smoothed_losses(
        shifted, log_total, labels, visible, smoothing, classes
    )
    total = ops.sum(ops.where(visible, losses * weights, 0.0))
    every = ops.arange(ops.shape(logits)[-1], dtype="int32")
    is_label = ops.equal(every, labels[:, None])
    nats = log_total - ops.sum(ops.where(is_label, shifted, 0.0), axis=-1)
    hits = ops.equal(ops.cast(ops.argmax(logits, -1), "int32"), labels)
    if not gradient:
        return total, nats, hits, None
    p = ops.exp(shifted - log_total[:, None])
    label, others, whole = target_weights(
        labels, logits.shape[-1], smoothing, classes
    )
    full = p * whole - others - ops.where(is_label, label, 0.0)
    full = ops.where(visible[:, None], full * weights[:, None], 0.0)
    return total, nats, hits, ops.cast(full, hidden.dtype)


def _chunks(tensor, count):
    """Splits n = count * c rows into chunks: (count, c, ...).

    Each chunk has rows from all parts of a batch, so that devices that share a
    batch share each chunk too.
    """
    rows = ops.shape(tensor)[0] // count
    split = ops.reshape(tensor, (rows, count, *tensor.shape[1:]))
    return ops.swapaxes(split, 0, 1)


def _joined(chunks):
    """Puts the rows of (count, c, ...) into the order they had."""
    rows = ops.swapaxes(chunks, 0, 1)
    return ops.reshape(rows, (-1, *chunks.shape[2:]))


def _padded(tensors, more):
    """Appends `more` rows of zeros to each tensor."""
    return [
        ops.concatenate(
            [x, ops.zeros((more, *x.shape[1:]), dtype=x.dtype)], axis=0
        )
        for x in tensors
    ]


if keras.backend.backend() == "jax":

    @functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
    def _jax_nll(options, *args):
        smoothing, transposed, _ = options
        return _jax_scan((smoothing, transposed, False), *args)[0]

    def _jax_forward(options, *args):
        return _jax_scan(options, *args)

    def _jax_backward(options, gradients, upstream):
        slope, others = upstream[0], (None,) * 4
        if gradients is None:
            return (None,) * 7
        return (
            *(None if x is None else (x * slope) for x in gradients),
            *others,
        )

    def _jax_scan(options, *args):
        split = sequence_split()
        axes = split and split.axes_of_tokens(args[0].shape[0])
        if not axes:
            return _device_scan(options, *args)
        # Each device scans its own tokens: a loop over chunks of tokens of all
        # devices would sum the gradient of the matrix in each step.
        tokens = jax.sharding.PartitionSpec(axes)
        whole = jax.sharding.PartitionSpec()

        def scan(*args):
            (total, *scores), gradients = _device_scan(options, *args)
            slopes = sums = None
            if gradients is not None:
                slopes, *sums = gradients
            total, sums = jax.lax.psum((total, sums), axes)
            return total, scores, slopes, sums

        kinds = tokens, whole, whole, tokens, tokens, tokens, whole
        total, scores, slopes, sums = jax.shard_map(
            scan,
            mesh=split.mesh,
            in_specs=kinds,
            out_specs=(whole, tokens, tokens, whole),
            axis_names=set(axes),
            check_vma=False,
        )(*args)
        found = total, *scores
        return found, None if sums is None else (slopes, *sums)

    def _device_scan(
        options, hidden, matrix, bias, labels, visible, weights, classes
    ):
        _, transposed, gradient = options
        rows = hidden.shape[0]
        count = -(-rows // CHUNK)
        parts = [hidden, labels, visible, weights]
        parts = _padded(parts, -rows % count)
        sums = None
        if gradient:
            sums = [
                None if x is None else jax.numpy.zeros(x.shape, "float32")
                for x in (matrix, bias)
            ]

        def step(carry, part):
            total, sums = carry
            h, y, seen, w = part
            more, nats, hits, g = _chunk(
                options, h, matrix, bias, y, seen, w, classes
            )
            slope = None
            if gradient:
                slope = g @ (matrix.T if transposed else matrix)
                pair = (h, g) if transposed else (g, h)
                to_matrix = jax.lax.dot_general(
                    *pair,
                    (((0,), (0,)), ((), ())),
                    preferred_element_type="float32",
                )
                to_bias = None
                if bias is not None:
                    to_bias = sums[1] + jax.numpy.sum(g, 0, dtype="float32")
                sums = [sums[0] + to_matrix, to_bias]
            return (total + more, sums), (nats, hits, slope)

        start = jax.numpy.zeros((), "float32"), sums
        (total, sums), (nats, hits, slopes) = jax.lax.scan(
            step, start, [_chunks(x, count) for x in parts]
        )
        found = total, _joined(nats)[:rows], _joined(hits)[:rows]
        if not gradient:
            return found, None
        to_bias = None if bias is None else sums[1].astype(bias.dtype)
        slopes = _joined(slopes)[:rows]
        return found, (slopes, sums[0].astype(matrix.dtype), to_bias)

    _jax_nll.defvjp(_jax_forward, _jax_backward)
    _implementation = _jax_nll

elif keras.backend.backend() == "torch":

    def _torch(options, hidden, matrix, bias, labels, *others):
        return _TorchLinearNLL.apply(
            options, hidden, matrix, bias, labels.long(), *others
        )

    class _TorchLinearNLL(torch.autograd.Function):
        @staticmethod
        def forward(
            ctx,
            options,
            hidden,
            matrix,
            bias,
            labels,
            visible,
            weights,
            classes,
        ):
            _, transposed, gradient = options
            weights = torch.where(visible, weights, 0.0)
            gradient = gradient and any(ctx.needs_input_grad[1:4])
            to_hidden = torch.empty_like(hidden) if gradient else None
            to_matrix = to_bias = None
            if gradient and ctx.needs_input_grad[2]:
                to_matrix = torch.zeros_like(matrix, dtype=torch.float32)
            if gradient and ctx.needs_input_grad[3]:
                to_bias = torch.zeros_like(bias, dtype=torch.float32)
            total = hidden.new_zeros((), dtype=torch.float32)
            nats = torch.empty_like(weights)
            hits = torch.empty_like(visible)
            # One buffer for all chunks.
            size = matrix.shape[1 if transposed else 0]
            buffer = hidden.new_empty((min(CHUNK, len(hidden)), size))
            for start in range(0, len(hidden), CHUNK):
                rows = slice(start, start + CHUNK)
                h = hidden[rows]
                logits = torch.mm(
                    h,
                    matrix if transposed else matrix.t(),
                    out=buffer[: len(h)],
                )
                if bias is not None:
                    logits.add_(bias.to(logits.dtype))
                g, losses, nats[rows], hits[rows] = _torch_chunk(
                    (*options[:2], gradient),
                    logits.float(),
                    labels[rows],
                    visible[rows],
                    weights[rows],
                    classes,
                )
                total += (losses * weights[rows]).sum()
                if not gradient:
                    continue
                g = g.to(hidden.dtype)
                torch.mm(
                    g,
                    matrix.t() if transposed else matrix,
                    out=to_hidden[rows],
                )
                if to_matrix is not None:
                    pair = (h.t(), g) if transposed else (g.t(), h)
                    if hidden.dtype == torch.float32:
                        to_matrix.addmm_(*pair)
                    else:
                        to_matrix += torch.mm(*pair)
                if to_bias is not None:
                    to_bias += g.sum(0, dtype=torch.float32)
            if gradient:
                ctx.gradients = [
                    None if x is None else x.to(hidden.dtype)
                    for x in (to_hidden, to_matrix, to_bias)
                ]
            ctx.mark_non_differentiable(nats, hits)
            return total, nats, hits

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx, upstream, *_):
            if ctx.gradients is None:
                raise RuntimeError(
                    "The gradient of `linear_nll` can be computed once only."
                )
            # In place: the gradient of the matrix is large.
            found = [
                None if x is None else x.mul_(upstream) for x in ctx.gradients
            ]
            ctx.gradients = None
            return (None, *found, None, None, None, None)

    def _torch_chunk(options, z, labels, visible, weights, classes):
        """Returns g, losses, nats and hits. Overwrites the logits with g."""
        smoothing, _, gradient = options
        highest, best = z.max(-1, keepdim=True)
        z.sub_(highest)
        target = z.gather(1, labels[:, None])[:, 0]
        mean = 0.0
        if smoothing:
            mean = z.mean(-1) if classes is None else z @ classes / z.shape[-1]
        z.exp_()
        normalizer = z.sum(-1)
        log_total = normalizer.log()
        nats = log_total - target
        if classes is None:
            losses = log_total - (1 - smoothing) * target - smoothing * mean
        else:
            losses = (1 - smoothing) * classes[labels] * nats
            losses += smoothing * (log_total * classes.mean() - mean)
        losses = torch.where(visible, losses, 0.0)
        hits = best[:, 0] == labels
        if gradient:
            label, every, whole = target_weights(
                labels, z.shape[-1], smoothing, classes
            )
            scale = weights[:, None]
            z.mul_(whole * scale / normalizer[:, None])
            if smoothing:
                z.sub_(every * scale)
            z.scatter_add_(1, labels[:, None], -label * scale)
            z.masked_fill_(~visible[:, None], 0.0)
        return z, losses, nats, hits

    _implementation = _torch

elif keras.backend.backend() == "tensorflow":

    def _tensorflow(options, hidden, matrix, bias, *others):
        bias_given = bias is not None
        if not bias_given:
            bias = tf.zeros((), hidden.dtype)

        @tf.custom_gradient
        def nll(hidden, matrix, bias):
            *found, to_hidden, to_matrix, to_bias = _tensorflow_loop(
                options,
                hidden,
                matrix,
                bias if bias_given else None,
                *others,
            )

            def gradient(slope, *_):
                parts = [
                    x * tf.cast(slope, x.dtype)
                    for x in (to_hidden, to_matrix, to_bias)
                ]
                return parts if bias_given else (*parts[:2], None)

            return tuple(found), gradient

        total, nats, hits = nll(hidden, matrix, bias)
        return total, tf.stop_gradient(nats), hits

    @xla_compiled
    def _tensorflow_loop(
        options, hidden, matrix, bias, labels, visible, weights, classes
    ):
        _, transposed, gradient = options
        rows = tf.shape(hidden)[0]
        count = -(-rows // CHUNK)
        parts = [hidden, labels, visible, weights]
        parts = [_chunks(x, count) for x in _padded(parts, -rows % count)]
        start = [tf.zeros((), tf.float32)]
        if gradient:
            start.append(tf.zeros(tf.shape(matrix), tf.float32))
            start.append(tf.zeros(tf.shape(matrix)[:1], tf.float32))
            if bias is not None:
                start[-1] = tf.zeros(tf.shape(bias), tf.float32)
        written = [tf.float32, tf.bool, *([hidden.dtype] if gradient else [])]
        arrays = [tf.TensorArray(dtype, count) for dtype in written]

        def step(i, sums, arrays):
            h, y, seen, w = (x[i] for x in parts)
            more, nats, hits, g = _chunk(
                options, h, matrix, bias, y, seen, w, classes
            )
            sums, outputs = [sums[0] + more, *sums[1:]], [nats, hits]
            if gradient:
                slope = tf.matmul(g, matrix, transpose_b=transposed)
                outputs.append(slope)
                pair = (h, g) if transposed else (g, h)
                product = tf.matmul(*pair, transpose_a=True)
                sums[1] += tf.cast(product, tf.float32)
                if bias is not None:
                    sums[2] += tf.reduce_sum(tf.cast(g, tf.float32), 0)
            arrays = [
                array.write(i, x)
                for array, x in zip(arrays, outputs, strict=True)
            ]
            return i + 1, sums, arrays

        _, sums, arrays = tf.while_loop(
            lambda i, *_: i < count, step, (0, start, arrays)
        )
        outputs = [_joined(array.stack())[:rows] for array in arrays]
        if not gradient:
            zero = tf.zeros(())
            return sums[0], *outputs, zero, zero, zero
        nats, hits, slope = outputs
        sums[1:] = [tf.cast(x, hidden.dtype) for x in sums[1:]]
        return sums[0], nats, hits, slope, *sums[1:]

    _implementation = _tensorflow
