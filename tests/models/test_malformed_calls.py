"""Malformed arguments of layers, blocks, kernels and models are named."""

import numpy as np
import pytest
from keras import ops

from keras_attn import blocks, layers, models
from keras_attn.ops import Visibility, attend

RNG = np.random.default_rng(0)
X = RNG.normal(size=(2, 4, 8)).astype("float32")
HEADS = RNG.normal(size=(2, 4, 2, 4)).astype("float32")
IDS = np.int32([[5, 6, 7, 2], [8, 2, 3, 4]])
MASK = np.ones((2, 4), bool)
SIZES = {"num_layers": 1, "num_heads": 2, "hidden_dim": 8}
BLOCK = {"num_heads": 2, "intermediate_dim": 12}
NAN = float("nan")


def attention(**arguments):
    return layers.MultiHeadAttention(2, 4, **arguments)


def encoder_block(**arguments):
    return blocks.EncoderBlock(**BLOCK, **arguments)


def gpt(**arguments):
    return models.GPT(12, **{"max_sequence_length": 8, **SIZES, **arguments})


# Constructor, its arguments, and the argument that the message names.
CONSTRUCTORS = [
    (encoder_block, {"epsilon": -1}, "epsilon"),
    (encoder_block, {"epsilon": NAN}, "epsilon"),
    (encoder_block, {"epsilon": "x"}, "epsilon"),
    (encoder_block, {"dropout": NAN}, "dropout"),
    (encoder_block, {"gated": "yes"}, "gated"),
    (encoder_block, {"normalize_first": 1}, "normalize_first"),
    (encoder_block, {"use_bias": None}, "use_bias"),
    (gpt, {"epsilon": 0}, "epsilon"),
    (gpt, {"pad_id": "a"}, "pad_id"),
    (gpt, {"pad_id": 12}, "pad_id"),
    (gpt, {"end_id": 1.5}, "end_id"),
    (gpt, {"num_layers": True}, "num_layers"),
    (gpt, {"hidden_dim": 2.5}, "hidden_dim"),
    (gpt, {"attention_position": "rotary"}, "attention_position"),
    (gpt, {"sliding_window": 0}, "sliding_window"),
    (attention, {"use_bias": "a"}, "use_bias"),
    (attention, {"use_gate": 1}, "use_gate"),
    (attention, {"causal": "yes"}, "causal"),
    (attention, {"flash_attention": "auto"}, "flash_attention"),
    (attention, {"seed": "a"}, "seed"),
    (attention, {"seed": 1.5}, "seed"),
    (attention, {"sliding_window": 0}, "sliding_window"),
    (layers.ScoredAttention, {"seed": "a"}, "seed"),
    (lambda **a: layers.FeedForward(4, **a), {"gated": 0}, "gated"),
    (lambda **a: layers.FeedForward(4, **a), {"dropout": NAN}, "dropout"),
    (lambda **a: layers.TokenEmbedding(12, 8, **a), {"pad_id": "a"}, "pad_id"),
    (lambda **a: layers.TokenEmbedding(12, 8, **a), {"pad_id": 1.5}, "pad_id"),
    (lambda **a: layers.TokenEmbedding(12, 8, **a), {"scale": 2}, "scale"),
    (
        lambda **a: layers.T5Position(2, 8, **a),
        {"max_distance": 10**9},
        "max_distance",
    ),
    (layers.GlimpseSensor, {"patch_size": 10**6}, "patch_size"),
    (
        lambda **a: layers.GlimpseSensor(4, **a),
        {"num_patches": 40},
        "num_patches",
    ),
    (Visibility, {"window": 0}, "window"),
    (Visibility, {"window": -1}, "window"),
    (Visibility, {"window": 1.5}, "window"),
    (Visibility, {"padding": "left"}, "padding"),
    (
        lambda **a: models.Encoder(12, **SIZES, **a),
        {"character_vocabulary_size": 0},
        "character_vocabulary_size",
    ),
    (
        lambda **a: models.TransformerXL(12, **SIZES, **a),
        {"memory_length": -1},
        "memory_length",
    ),
    (
        lambda encoder: models.SequenceClassifier(encoder, 2),
        {"encoder": "bert"},
        "encoder",
    ),
    (models.MultipleChoice, {"classifier": 3}, "classifier"),
]


@pytest.mark.one_backend
@pytest.mark.parametrize("make, arguments, name", CONSTRUCTORS)
def test_arguments_of_constructors(make, arguments, name):
    with pytest.raises(ValueError, match=f"`{name}`") as info:
        make(**arguments)
    assert "Received: " in str(info.value)


def block_then(*args, **kwargs):
    """A block that was built with other inputs."""

    def call():
        block = blocks.EncoderBlock(**BLOCK)
        block(X)
        return block(*args, **kwargs)

    return call


def of(make, *args, **kwargs):
    return lambda: make()(*args, **kwargs)


def decoder_block():
    return blocks.DecoderBlock(**BLOCK)


def segment_block():
    return blocks.SegmentBlock(**BLOCK)


def two_stream_block():
    return blocks.TwoStreamBlock(**BLOCK)


def token_embedding():
    return layers.TokenEmbedding(12, 8)


def tensor(array):
    return ops.convert_to_tensor(array)


COMPLEX = X.astype("complex64")
WIDE = np.concatenate([X, X], axis=-1)
# Name of the argument, and a call.
CALLS = {
    "ids, huge in a list": ("token_ids", of(gpt, [[5, 2**40]])),
    "ids, huge in an array": ("token_ids", of(gpt, np.array([[5, 2**40]]))),
    "ids, fractions": ("token_ids", of(gpt, [[5, 1.5]])),
    "ids, None": ("token_ids", of(gpt, None)),
    "ids, text": ("token_ids", of(gpt, "abc")),
    "ids, None in a dict": ("token_ids", of(gpt, {"token_ids": None})),
    "ids, ragged": ("token_ids", of(gpt, [[5, 6], [7]])),
    "ids, None of an encoder": (
        "token_ids",
        of(lambda: models.Encoder(12, **SIZES), None),
    ),
    "ids, None of a pair": (
        "source_ids",
        of(lambda: models.Transformer(12, **SIZES), (None, IDS)),
    ),
    "embedding, negative": (
        "token_ids",
        of(token_embedding, tensor(np.int32([[-1]]))),
    ),
    "embedding, too large": (
        "token_ids",
        of(token_embedding, tensor(np.int32([[12]]))),
    ),
    "characters, negative": (
        "character_ids",
        of(
            lambda: layers.CharacterEmbedding(12, 8),
            tensor(np.int32([[[1, -1]]])),
        ),
    ),
    "attention, complex": ("query", of(attention, COMPLEX, X)),
    "attention, integers": ("value", of(attention, X, X.astype("int32"))),
    "attention, batches of a mask": (
        "attention_mask",
        of(attention, X, X, attention_mask=np.ones((5, 4, 4), bool)),
    ),
    "attention, heads of a mask": (
        "attention_mask",
        of(attention, X, X, attention_mask=np.ones((2, 3, 4, 4), bool)),
    ),
    "attention, length of a mask": (
        "attention_mask",
        of(attention, X, X, attention_mask=np.ones((3, 3), bool)),
    ),
    "attention, list as a mask": (
        "attention_mask",
        of(attention, X, X, attention_mask=[[True] * 4] * 4),
    ),
    "attention, rows of a mask": (
        "query_mask",
        of(attention, X, X, query_mask=np.ones((3, 4), bool)),
    ),
    "attention, float positions": (
        "query_positions",
        of(attention, X, X, query_positions=IDS.astype("float32")),
    ),
    "attention, one side of segments": (
        "query_segment_ids",
        of(attention, X, X, query_segment_ids=IDS),
    ),
    "scored attention, complex": (
        "query",
        of(layers.ScoredAttention, COMPLEX, X),
    ),
    "feed-forward, complex": (
        "inputs",
        of(lambda: layers.FeedForward(4), COMPLEX),
    ),
    "positions, complex": ("inputs", of(layers.PositionalEmbedding, COMPLEX)),
    "encoder block, complex": ("inputs", of(encoder_block, COMPLEX)),
    "encoder block, width": ("inputs", block_then(WIDE)),
    "encoder block, length of a mask": (
        "mask",
        of(encoder_block, X, mask=MASK[:, :3]),
    ),
    "encoder block, rows of a mask": (
        "mask",
        of(encoder_block, X, mask=np.ones((3, 4), bool)),
    ),
    "encoder block, length of positions": (
        "positions",
        of(encoder_block, X, positions=IDS[:, :2]),
    ),
    "encoder block, length of segments": (
        "segment_ids",
        of(encoder_block, X, segment_ids=IDS[:, :2]),
    ),
    "decoder block, mask without memory": (
        "memory_mask",
        of(decoder_block, X, memory_mask=MASK),
    ),
    "decoder block, positions without memory": (
        "memory_positions",
        of(decoder_block, X, memory_positions=IDS),
    ),
    "decoder block, rows of the memory": (
        "memory",
        of(decoder_block, X, X[:1]),
    ),
    "decoder block, complex memory": ("memory", of(decoder_block, X, COMPLEX)),
    "segment block, mask without past": (
        "past_mask",
        of(segment_block, X, past_mask=MASK),
    ),
    "segment block, segments without past": (
        "past_segment_ids",
        of(segment_block, X, past_segment_ids=IDS),
    ),
    "segment block, width of the past": ("past", of(segment_block, X, WIDE)),
    "segment block, rows of the past": ("past", of(segment_block, X, X[:1])),
    "two-stream block, rows of the past": (
        "past",
        of(two_stream_block, X, past=X[:1]),
    ),
    "two-stream block, width of the queries": (
        "queries",
        of(two_stream_block, X, queries=WIDE, query_visibility=Visibility()),
    ),
    "two-stream block, queries alone": (
        "query_visibility",
        of(two_stream_block, X, queries=X),
    ),
    "attend, None": ("query", of(lambda: attend, None, HEADS, HEADS)),
    "attend, complex": (
        "key",
        of(lambda: attend, HEADS, HEADS.astype("complex64"), HEADS),
    ),
    "attend, visibility": (
        "visibility",
        of(lambda: attend, HEADS, HEADS, HEADS, "causal"),
    ),
    "attend, mask": (
        "attention_mask",
        of(
            lambda: attend,
            HEADS,
            HEADS,
            HEADS,
            Visibility(attention_mask=np.ones((3, 1, 4, 4), bool)),
        ),
    ),
}


@pytest.mark.parametrize("case", CALLS)
def test_arguments_of_calls(case):
    name, call = CALLS[case]
    with pytest.raises(ValueError, match=f"`{name}`") as info:
        call()
    assert "Received: " in str(info.value)
