"""Decoding with KerasHub's layers, caches and samplers."""

import keras
import numpy as np
from keras import ops
from keras_hub.layers import (
    ReversibleEmbedding,
    SinePositionEncoding,
    TransformerDecoder,
    TransformerEncoder,
)
from keras_hub.samplers import BeamSampler, GreedySampler

from benchmarks.decoding import task, weights


def prepare(case, **options):
    """Returns a callable that decodes batches."""
    drawn = weights.draw(case)
    return task.runner(decoder(case, drawn, **options), task.sources(case))


def decoder(case, drawn, lean=True, xla=True):
    """Returns a callable that decodes int32 (B, S) to int32 (B, new).

    Args:
        case: dict of sizes.
        drawn: nest of arrays, from `weights.draw`.
        lean: bool, as for `Translator`.
        xla: bool. Whether TensorFlow compiles with XLA, which Keras's default
            for `jit_compile` does on a GPU only.
    """
    model = Translator(case, drawn, lean)
    program = _compiled(model, xla)

    def decode(sources):
        found = program(ops.convert_to_tensor(sources))
        return ops.convert_to_numpy(found)[:, 1:]

    return decode


class Translator(keras.Model):
    """An encoder-decoder Transformer that generates as `BartSeq2SeqLM` does.

    Args:
        case: dict of sizes.
        drawn: nest of arrays, from `weights.draw`.
        lean: bool. Whether to skip two redundant parts of that model: the first
            pass over all target positions, and a gather of the source tensors
            at each step of a beam search.
    """

    def __init__(self, case, drawn, lean):
        super().__init__()
        self.case, self.lean = case, lean
        width = case["width"]
        sizes = {"intermediate_dim": case["inner"], "num_heads": case["heads"]}
        self.table = ReversibleEmbedding(case["vocabulary"], width)
        self.table.build()
        self.positions = SinePositionEncoding()
        self.encoder_layers, self.decoder_layers = (
            [kind(**sizes) for _ in range(case["layers"])]
            for kind in (TransformerEncoder, TransformerDecoder)
        )
        shape = (None, None, width)
        for layer in self.encoder_layers:
            layer.build(shape)
        for layer in self.decoder_layers:
            layer.build(shape, shape)
        self.built = True
        self.table.embeddings.assign(drawn["table"])
        self.bias = ops.convert_to_tensor(task.logits_bias(case))
        for layers, side in (
            (self.encoder_layers, "encoder"),
            (self.decoder_layers, "decoder"),
        ):
            for layer, parts in zip(layers, drawn[side], strict=True):
                _assign(layer, parts)
        self.sampler = GreedySampler()
        if case["beams"] > 1:
            self.sampler = BeamSampler(num_beams=case["beams"])

    def generate(self, sources):
        """Decodes int32 (B, S) to int32 (B, 1 + new), with the start token."""
        case, rows = self.case, sources.shape[0]
        token_mask = ops.not_equal(sources, task.PAD)
        memory = self._embedded(sources, 0)
        for layer in self.encoder_layers:
            memory = layer(memory, padding_mask=token_mask)
        heads = case["heads"], case["width"] // case["heads"]
        shape = rows, case["layers"], 2
        own = ops.zeros((*shape, 1 + case["new"], *heads))
        cross = ops.zeros((*shape, case["length"], *heads))
        prompt = np.full((rows, 1 + case["new"]), task.PAD, "int32")
        prompt[:, 0] = task.START
        given = ops.convert_to_tensor(prompt == task.START)
        prompt = ops.convert_to_tensor(prompt)
        first = prompt[:, :1] if self.lean else prompt
        _, own, cross = self._step(
            first, 0, own, cross, memory, token_mask, True
        )
        fixed = memory, token_mask, cross
        if self.lean:
            fixed = [ops.repeat(x, case["beams"], axis=0) for x in fixed]

        def following(prompt, cache, index):
            token = ops.slice(prompt, (0, index - 1), (prompt.shape[0], 1))
            if self.lean:
                (own,), (memory, token_mask, cross) = cache, fixed
            else:
                own, memory, token_mask, cross = cache
            logits, own, _ = self._step(
                token, index - 1, own, cross, memory, token_mask, False
            )
            cache = (own,) if self.lean else (own, memory, token_mask, cross)
            return ops.squeeze(logits, 1), None, cache

        return self.sampler(
            next=following,
            prompt=prompt,
            cache=(own,) if self.lean else (own, *fixed),
            index=1,
            mask=given,
            stop_token_ids=(task.END,),
            model=self,
        )

    def _step(self, ids, slot, own, cross, memory, token_mask, first):
        x = self._embedded(ids, slot)
        caches = []
        for number, layer in enumerate(self.decoder_layers):
            x, *pair = layer(
                x,
                memory,
                encoder_padding_mask=token_mask,
                self_attention_cache=own[:, number],
                self_attention_cache_update_index=slot,
                cross_attention_cache=cross[:, number],
                cross_attention_cache_update_index=0 if first else None,
            )
            caches.append(pair)
        own = ops.stack([one for one, _ in caches], axis=1)
        if first:
            cross = ops.stack([one for _, one in caches], axis=1)
        return self.table(x, reverse=True) + self.bias, own, cross

    def _embedded(self, ids, slot):
        x = self.table(ids) * self.case["width"] ** 0.5
        return x + self.positions(x, start_index=slot)


def _compiled(model, xla):
    """Compiles as KerasHub's models do."""
    backend = keras.backend.backend()
    if backend == "jax":
        import jax

        @jax.jit
        def program(values, sources):
            mapping = list(zip(model.variables, values, strict=True))
            with keras.StatelessScope(state_mapping=mapping):
                return model.generate(sources)

        return lambda sources: program(
            [variable.value for variable in model.variables], sources
        )
    if backend == "tensorflow":
        import tensorflow as tf

        return tf.function(model.generate, jit_compile=xla)
    import torch

    return torch.no_grad()(model.generate)


def _assign(layer, parts):
    names = {
        "self": ("_self_attention_layer", "_self_attention_layer_norm"),
        "cross": ("_cross_attention_layer", "_cross_attention_layer_norm"),
    }
    for sublayer, (attention, norm) in names.items():
        if sublayer in parts:
            attention = getattr(layer, attention)
            for name, inner in zip(
                "qkvo", ("query", "key", "value", "output"), strict=True
            ):
                dense = getattr(attention, f"_{inner}_dense")
                _set(dense, parts[sublayer], name)
            _norm(getattr(layer, norm), parts[sublayer])
    network = parts["network"]
    _set(layer._feedforward_intermediate_dense, network, "in")
    _set(layer._feedforward_output_dense, network, "out")
    _norm(layer._feedforward_layer_norm, network)


def _set(dense, parts, name):
    for variable, array in (
        (dense.kernel, parts[name]),
        (dense.bias, parts[f"{name}_bias"]),
    ):
        variable.assign(array.reshape(variable.shape))


def _norm(layer, parts):
    layer.gamma.assign(parts["scale"])
    layer.beta.assign(parts["shift"])
