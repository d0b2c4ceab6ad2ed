"""Decoding as in TensorFlow's Transformer tutorial, without a cache.

https://www.tensorflow.org/text/tutorials/transformer: Keras layers in a loop
that runs the whole model, encoder included, on all tokens so far and keeps the
last prediction. Greedy search, one sentence at a time.
"""

import keras
import tensorflow as tf

from benchmarks.decoding import task, weights


def prepare(case, **options):
    """Returns a callable that decodes batches."""
    drawn = weights.draw(case)
    return task.runner(decoder(case, drawn, **options), task.sources(case))


def decoder(case, drawn, growing=True):
    """Returns a callable that decodes int32 (B, S) to int32 (B, new).

    Args:
        case: dict of sizes.
        drawn: nest of arrays, from `weights.draw`.
        growing: bool. Whether the target grows from step to step, as in the
            tutorial. Otherwise it has its full length from the start, so that
            XLA can compile the loop.
    """
    model = Transformer(case, drawn)
    search = _growing if growing else _fixed
    program = tf.function(
        lambda source: search(model, source, case["new"]),
        jit_compile=not growing,
        autograph=False,
    )

    def decode(sources):
        return [
            program(tf.constant(row[None])).numpy()[0].tolist()
            for row in sources
        ]

    return decode


def _growing(model, source, new):
    def unfinished(slot, target, ended):
        return (slot < new) & ~ended

    def advance(slot, target, ended):
        logits = model((source, target), training=False)
        found = tf.argmax(logits[:, -1:], axis=-1, output_type=tf.int32)
        target = tf.concat([target, found], axis=1)
        return slot + 1, target, tf.reduce_all(found == task.END)

    loop = 0, tf.fill((1, 1), task.START), False
    shapes = tf.TensorShape(()), tf.TensorShape((1, None)), tf.TensorShape(())
    _, target, _ = tf.while_loop(unfinished, advance, loop, shapes)
    missing = new + 1 - tf.shape(target)[1]
    target = tf.pad(target, [[0, 0], [0, missing]], constant_values=task.PAD)
    return target[:, 1:]


def _fixed(model, source, new):
    def unfinished(slot, target, ended):
        return (slot < new) & ~ended

    def advance(slot, target, ended):
        logits = model((source, target), training=False)[:, slot]
        found = tf.argmax(logits, axis=-1, output_type=tf.int32)
        target = tf.where(tf.range(new + 1) == slot + 1, found[:, None], target)
        return slot + 1, target, tf.reduce_all(found == task.END)

    target = tf.concat(
        [tf.fill((1, 1), task.START), tf.fill((1, new), task.PAD)], axis=1
    )
    loop = tf.while_loop(unfinished, advance, (0, target, False))
    return loop[1][:, 1:]


class Transformer(keras.Model):
    """The tutorial's model with the given weights.

    Args:
        case: dict of sizes.
        drawn: nest of arrays, from `weights.draw`.
    """

    def __init__(self, case, drawn):
        super().__init__()
        self.table = keras.layers.Embedding(case["vocabulary"], case["width"])
        self.table.build()
        self.table.embeddings.assign(drawn["table"])
        length = max(case["length"], case["new"] + 1)
        self.positions = tf.constant(weights.positions(length, case["width"]))
        self.bias = tf.constant(task.logits_bias(case))
        self.stacks = [
            [
                {name: _sublayer(case, p) for name, p in layer.items()}
                for layer in drawn[side]
            ]
            for side in ("encoder", "decoder")
        ]
        self.built = True

    def call(self, inputs):
        """Returns the logits, float (B, T, V)."""
        source, target = inputs
        token_mask = tf.not_equal(source, task.PAD)[:, None]
        encoder, decoder = self.stacks
        memory = self._embedded(source)
        for layer in encoder:
            attention, norm = layer["self"]
            mixed = attention(memory, memory, attention_mask=token_mask)
            memory = norm(memory + mixed)
            memory = _network(layer["network"], memory)
        x = self._embedded(target)
        for layer in decoder:
            attention, norm = layer["self"]
            x = norm(x + attention(x, x, use_causal_mask=True))
            attention, norm = layer["cross"]
            x = norm(x + attention(x, memory, attention_mask=token_mask))
            x = _network(layer["network"], x)
        return tf.matmul(x, self.table.embeddings, transpose_b=True) + self.bias

    def _embedded(self, ids):
        x = self.table(ids)
        x *= tf.sqrt(tf.cast(x.shape[-1], tf.float32))
        return x + self.positions[None, : tf.shape(ids)[1]]


def _network(parts, x):
    inner, outer, norm = parts
    return norm(x + outer(inner(x)))


def _sublayer(case, parts):
    """Returns Keras layers with the weights of a sublayer."""
    width = case["width"]
    norm = keras.layers.LayerNormalization(epsilon=1e-5)
    norm.build((None, None, width))
    norm.set_weights([parts["scale"], parts["shift"]])
    if "in" in parts:
        inner = keras.layers.Dense(case["inner"], activation="relu")
        outer = keras.layers.Dense(width)
        inner.build((None, None, width))
        outer.build((None, None, case["inner"]))
        inner.set_weights([parts["in"], parts["in_bias"]])
        outer.set_weights([parts["out"], parts["out_bias"]])
        return inner, outer, norm
    attention = keras.layers.MultiHeadAttention(
        case["heads"], width // case["heads"]
    )
    attention.build((None, None, width), (None, None, width))
    arrays = [parts[name + end] for name in "qkvo" for end in ("", "_bias")]
    attention.set_weights(
        [
            array.reshape(variable.shape)
            for array, variable in zip(arrays, attention.weights, strict=True)
        ]
    )
    return attention, norm
