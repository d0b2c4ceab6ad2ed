"""What a layer with dropout needs so that Keras may compute it twice."""

import contextlib
import inspect

import keras
from keras import ops, tree

from keras_attn.layers.dropout_seed import (
    DropoutSeeds,
    dropout_depth,
    dropout_seed,
)
from keras_attn.ops.capture import forbid_capture
from keras_attn.ops.mask_carriers import with_mask
from keras_attn.ops.visibility import implicit_mask


class Rematerialized(keras.layers.Layer):
    """A layer that a `keras.RematScope` may compute twice.

    Abstract. Three things do not survive the second computation, and go in as
    arguments: the seed of what it draws, implicit masks, and, on TensorFlow,
    whatever was given by keyword.
    """

    def rematerialized_call(self, layer_call, *args, **kwargs):
        """Returns `layer_call`, made to be computed twice."""
        remat = super().rematerialized_call
        generators = [
            layer.seed_generator
            for layer in self._flatten_layers()
            if isinstance(getattr(layer, "seed_generator", None), DropoutSeeds)
        ]

        def call(*args, **kwargs):
            leaves = tree.flatten((args, kwargs))
            places = [n for n, x in enumerate(leaves) if ops.is_tensor(x)]
            tensors = [leaves[n] for n in places]
            masks = [implicit_mask(x) for x in tensors]
            masked = [n for n, mask in enumerate(masks) if mask is not None]
            given = inspect.signature(self.call).bind_partial(*args, **kwargs)
            drops = generators and given.arguments.get("training")
            seeds = [generators[0].next()] if drops else []
            depth = dropout_depth() + 1

            def twice(*given):
                given = [
                    ops.cast(x, "bool") if was_bool else x
                    for x, was_bool in zip(given, booleans, strict=True)
                ]
                given, rest = given[: len(places)], given[len(places) :]
                for n, mask in zip(masked, rest, strict=False):
                    given[n] = with_mask(given[n], mask)
                filled = list(leaves)
                for place, tensor in zip(places, given, strict=True):
                    filled[place] = tensor
                inner = tree.pack_sequence_as((args, kwargs), filled)
                with contextlib.ExitStack() as around:
                    if seeds:
                        around.enter_context(dropout_seed(rest[-1], depth))
                    if computed_twice:
                        around.enter_context(forbid_capture("a RematScope"))
                    return layer_call(*inner[0], **inner[1])

            # Keras decides whether the scope is for this layer.
            function = remat(twice, *args, **kwargs)
            computed_twice = (
                function is not twice and self._remat_mode.mode != "activations"
            )
            given = [*tensors, *(masks[n] for n in masked), *seeds]
            # TensorFlow cannot take the derivative at a boolean.
            booleans = [
                keras.backend.standardize_dtype(x.dtype) == "bool"
                for x in given
            ]
            return function(
                *(
                    ops.cast(x, "int32") if is_bool else x
                    for x, is_bool in zip(given, booleans, strict=True)
                )
            )

        return call
