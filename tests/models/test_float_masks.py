"""Float masks: 0 and 1 are accepted, additive masks are not."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_attn import blocks, layers, models
from keras_attn.backend import bool_mask, inspection
from keras_attn.ops import (
    Visibility,
    attend,
    packed_positions,
    positions_from_mask,
)

RNG = np.random.default_rng(0)
X = RNG.normal(size=(2, 4, 8)).astype("float32")
HEADS = RNG.normal(size=(2, 4, 2, 4)).astype("float32")
IDS = np.array([[5, 6, 7, 2], [8, 2, 3, 4]], "int32")
TOKENS = np.array([[1, 1, 1, 1], [1, 1, 0, 0]], "float32")
GRID = np.tril(np.ones((4, 4), "float32"))
SIZES = {"num_layers": 1, "num_heads": 2, "hidden_dim": 8}
BLOCK = {"num_heads": 2, "intermediate_dim": 12}


def with_kwargs(make, *args):
    return lambda name: lambda mask: make()(*args, **{name: mask})


def with_input(make):
    return lambda name: lambda mask: make()({"token_ids": IDS, name: mask})


def fresh(make):
    """A layer with the same weights at every call."""

    def seeded():
        keras.utils.set_random_seed(0)
        return make()

    return seeded


attention = with_kwargs(
    fresh(lambda: layers.MultiHeadAttention(2, 4)), X, X, X[:, ::-1]
)
scored = with_kwargs(fresh(layers.ScoredAttention), X, X, X[:, ::-1])
encoder_block = with_kwargs(fresh(lambda: blocks.EncoderBlock(**BLOCK)), X)
decoder_block = with_kwargs(fresh(lambda: blocks.DecoderBlock(**BLOCK)), X, X)
segment_block = with_kwargs(fresh(lambda: blocks.SegmentBlock(**BLOCK)), X, X)
span = fresh(lambda: models.SpanExtractor(models.Encoder(11, **SIZES)))

# Name of the argument, the valid mask, and a function of the mask.
CASES = {
    "MultiHeadAttention, query": ("query_mask", TOKENS, attention),
    "MultiHeadAttention, value": ("value_mask", TOKENS, attention),
    "MultiHeadAttention, key": ("key_mask", TOKENS, attention),
    "MultiHeadAttention, attention": ("attention_mask", GRID, attention),
    "ScoredAttention, query": ("query_mask", TOKENS, scored),
    "ScoredAttention, attention": ("attention_mask", GRID, scored),
    "PositionalEmbedding": (
        "mask",
        TOKENS,
        with_kwargs(fresh(layers.PositionalEmbedding), X),
    ),
    "EncoderBlock": ("mask", TOKENS, encoder_block),
    "EncoderBlock, attention": ("attention_mask", GRID, encoder_block),
    "DecoderBlock": ("mask", TOKENS, decoder_block),
    "DecoderBlock, memory": ("memory_mask", TOKENS, decoder_block),
    "DecoderBlock, attention": ("attention_mask", GRID, decoder_block),
    "SegmentBlock": ("mask", TOKENS, segment_block),
    "SegmentBlock, past": ("past_mask", TOKENS, segment_block),
    "Encoder": (
        "padding_mask",
        TOKENS,
        with_input(fresh(lambda: models.Encoder(11, **SIZES))),
    ),
    "GPT": (
        "padding_mask",
        TOKENS,
        with_input(
            fresh(lambda: models.GPT(11, max_sequence_length=4, **SIZES))
        ),
    ),
    "SpanExtractor": ("answerable", TOKENS, with_input(span)),
    "TransformerXL": (
        "document_starts",
        TOKENS,
        with_input(
            fresh(lambda: models.TransformerXL(11, memory_length=2, **SIZES))
        ),
    ),
    "XLNet": (
        "permutation_mask",
        np.stack([GRID, GRID]),
        with_input(fresh(lambda: models.XLNet(11, **SIZES))),
    ),
    "Visibility": (
        "attention_mask",
        GRID[None, None],
        lambda name: (
            lambda mask: attend(HEADS, HEADS, HEADS, Visibility(**{name: mask}))
        ),
    ),
    "positions_from_mask": (
        "mask",
        TOKENS,
        lambda name: lambda mask: positions_from_mask(mask),
    ),
    "packed_positions": (
        "mask",
        TOKENS,
        lambda name: lambda mask: packed_positions(IDS, mask),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_zeros_and_ones_are_a_bool_mask(case):
    name, mask, make = CASES[case]
    call = make(name)
    expected, *found = (
        ops.convert_to_numpy(call(ops.convert_to_tensor(mask.astype(dtype))))
        for dtype in ("bool", "float32", "int32")
    )
    for one in found:
        np.testing.assert_array_equal(one, expected)


@pytest.mark.parametrize("case", CASES)
def test_additive_masks_raise(case):
    name, mask, make = CASES[case]
    call = make(name)
    for low in (-1e9, -np.inf):
        additive = np.where(mask, 0, low).astype("float32")
        with pytest.raises(ValueError, match=f"`{name}.*`mask == 0`"):
            call(ops.convert_to_tensor(additive))


def run_unread(function, mask, monkeypatch):
    """Calls a function in compiled code or, on PyTorch, as on a GPU."""
    mask = ops.convert_to_tensor(mask)
    if keras.backend.backend() == "torch":
        monkeypatch.setattr(inspection, "is_on_host", lambda tensor: False)
        function(mask)
    elif keras.backend.backend() == "jax":
        import jax

        jax.eval_shape(function, mask)
    else:
        import tensorflow as tf

        tf.function(function).get_concrete_function(mask)


@pytest.mark.parametrize("case", CASES)
def test_float_masks_that_cannot_be_read_raise(case, monkeypatch):
    name, mask, make = CASES[case]
    with pytest.raises(ValueError, match=f"`{name}.*`mask == 0`"):
        run_unread(make(name), mask, monkeypatch)


@pytest.mark.parametrize("make", [attention, scored])
def test_symbolic_float_masks_raise(make):
    symbolic = keras.KerasTensor(TOKENS.shape, "float32")
    with pytest.raises(ValueError, match=r"`key_mask`.*`mask == 0`"):
        make("key_mask")(symbolic)


def test_fit_takes_arrays_of_zeros_and_ones():
    model = models.GPT(11, max_sequence_length=4, **SIZES)
    model.compile("sgd", "mse")
    inputs = {"token_ids": IDS, "padding_mask": TOKENS}
    labels = np.zeros((2, 4, 11), "float32")
    history = model.fit(inputs, labels, verbose=0)
    assert np.isfinite(history.history["loss"]).all()
    inputs["padding_mask"] = np.where(TOKENS, 0, -1e9)
    with pytest.raises(ValueError, match=r"`padding_mask`.*`mask == 0`"):
        model.fit(inputs, labels, verbose=0)


def test_the_message_shows_a_value():
    mask = ops.convert_to_tensor(np.float32([[0, -10000]]))
    with pytest.raises(ValueError, match=r"value -10000\.0"):
        bool_mask("mask", mask)
