"""Rematerialization of layers with dropout."""

import contextlib
import inspect
from collections.abc import Callable
from typing import Any

import keras
from keras import ops, tree

from keras_attn.backend import TorchNames
from keras_attn.layers.added_losses import add_loss, collect_losses
from keras_attn.layers.checked_call import CheckedCall
from keras_attn.layers.dropout_seed import (
    DropoutSeeds,
    dropout_depth,
    dropout_seed,
)
from keras_attn.ops.capture import forbid_capture
from keras_attn.ops.mask_carriers import with_mask
from keras_attn.ops.visibility import implicit_mask


class Rematerialized(CheckedCall, TorchNames, keras.layers.Layer):
    """Base class of layers that support `keras.RematScope`.

    Abstract. Three things are lost in the recomputation and are passed as
    arguments instead: the dropout seed, implicit masks and, on TensorFlow,
    keyword arguments (keras-team/keras#21207, all as of Keras 3.15.1). Losses
    of sublayers are results, and added outside.
    """

    def rematerialized_call(
        self, layer_call: Callable[..., Any], *args: Any, **kwargs: Any
    ) -> Callable[..., Any]:
        """Returns `layer_call`, wrapped for rematerialization."""
        remat = super().rematerialized_call
        # Private: no public method lists nested layers, as of Keras 3.15.1.
        generators = [
            layer.seed_generator
            for layer in self._flatten_layers()
            if isinstance(getattr(layer, "seed_generator", None), DropoutSeeds)
        ]

        def call(*args, **kwargs):
            leaves = tree.flatten((args, kwargs))
            indices = [n for n, x in enumerate(leaves) if ops.is_tensor(x)]
            tensors = [leaves[n] for n in indices]
            masks = [implicit_mask(x) for x in tensors]
            masked = [n for n, mask in enumerate(masks) if mask is not None]
            given = inspect.signature(self.call).bind_partial(*args, **kwargs)
            drops = generators and given.arguments.get("training")
            seeds = [generators[0].next()] if drops else []
            depth = dropout_depth() + 1

            def recomputable(*given):
                given = [
                    ops.cast(x, "bool") if was_bool else x
                    for x, was_bool in zip(given, booleans, strict=True)
                ]
                given, rest = given[: len(indices)], given[len(indices) :]
                for n, mask in zip(masked, rest, strict=False):
                    given[n] = with_mask(given[n], mask)
                filled = list(leaves)
                for index, tensor in zip(indices, given, strict=True):
                    filled[index] = tensor
                inner = tree.pack_sequence_as((args, kwargs), filled)
                with contextlib.ExitStack() as stack:
                    if seeds:
                        stack.enter_context(dropout_seed(rest[-1], depth))
                    if recomputed:
                        stack.enter_context(forbid_capture("a RematScope"))
                    losses = stack.enter_context(collect_losses())
                    return layer_call(*inner[0], **inner[1]), tuple(losses)

            # Keras decides whether the scope applies to this layer.
            function = remat(recomputable, *args, **kwargs)
            # Private: no public attribute has the mode, as of Keras 3.15.1.
            recomputed = (
                function is not recomputable
                and self._remat_mode.mode != "activations"
            )
            given = [*tensors, *(masks[n] for n in masked), *seeds]
            # `tf.recompute_grad` fails for booleans, as of TensorFlow 2.21.0.
            booleans = [
                keras.backend.standardize_dtype(x.dtype) == "bool"
                for x in given
            ]
            outputs, losses = function(
                *(
                    ops.cast(x, "int32") if is_bool else x
                    for x, is_bool in zip(given, booleans, strict=True)
                )
            )
            for loss in losses:
                add_loss(self, loss)
            return outputs

        return call
