"""Inputs of `generate` and `stream` that are no rows of token ids."""

import re

import keras
import numpy as np
import pytest
from keras import ops

from keras_attn import decoding
from keras_attn.models import GPT, RecurrentSeq2Seq, Transformer

MODELS = {
    "GPT": lambda: GPT(
        20, num_layers=1, num_heads=1, hidden_dim=4, max_sequence_length=32
    ),
    "Transformer": lambda: Transformer(
        20, num_layers=1, num_heads=1, hidden_dim=4, intermediate_dim=4
    ),
    "RecurrentSeq2Seq": lambda: RecurrentSeq2Seq(20, hidden_dim=4),
}


@pytest.fixture(scope="module", params=MODELS)
def model(request):
    return MODELS[request.param]()


ROWS = "`inputs` must be rows of token ids"
INPUTS = {
    "None": (None, ROWS),
    "text": ("abc", f"{ROWS}, not text.*`encode` of a tokenizer"),
    "texts": (["abc", "d"], f"{ROWS}, not text"),
    "bytes": (b"abc", f"{ROWS}, not text"),
    "int": (5, ROWS),
    "NaN": (float("nan"), ROWS),
    "set": ({1, 2}, ROWS),
    "generator": ((row for row in [[1]]), ROWS),
    "object": (object(), ROWS),
    "function": (len, ROWS),
    "no rows": ([], "`inputs` must hold at least one row"),
    "empty row": ([[5], []], "`inputs` must hold a token in every row"),
    "flat list": ([3, 4], ROWS),
    "deeper": ([[[1], [2, 3]]], ROWS),
    "mixed": ([[1, 2], 3], f"{ROWS}.*for row 1"),
    "None in a row": ([[None, 1]], "`inputs` must hold integers"),
    "text in a row": ([[1, "a"]], ROWS),
    "floats": ([[1.0, 2.0]], "`inputs` must hold integers"),
    "bools": ([[True, False]], "`inputs` must hold integers"),
    "NaNs": ([[float("nan")]], "`inputs` must hold integers"),
    "past int32": (
        [[5, 2**40]],
        r"`inputs` must lie in \[0, 20\).*1099511627776",
    ),
    "past int64": ([[5, 2**70]], "`inputs` must hold integers"),
    "negative": ([[-1, 5]], r"`inputs` must lie in \[0, 20\)"),
    "1-D": (np.array([3, 4]), "`inputs` must have"),
    "3-D": (np.ones((1, 2, 3), int), "`inputs` must have"),
    "0-D": (np.array(3), "`inputs` must have"),
    "float array": (np.ones((1, 2)), "`inputs` must hold integers"),
    "complex": (np.ones((1, 2), complex), "`inputs` must hold integers"),
    "int64 array": (np.array([[5, 2**40]]), r"`inputs` must lie in \[0, 20\)"),
    "no row": (np.zeros((0, 3), int), "`inputs` must hold at least one row"),
    "symbolic": (
        keras.KerasTensor((None, 3), dtype="int32"),
        "`inputs` must have values, which a symbolic tensor",
    ),
}


@pytest.mark.one_backend
@pytest.mark.parametrize("case", INPUTS)
def test_inputs(model, case):
    inputs, message = INPUTS[case]
    for method in (model.generate, model.stream):
        with pytest.raises(ValueError, match=message) as raised:
            method(inputs, 3)
        assert "Received: " in str(raised.value)


@pytest.mark.one_backend
@pytest.mark.parametrize(
    "inputs, message",
    [
        ({}, "`inputs` must contain token_ids and padding_mask"),
        ({"token_ids": [[3]]}, "`inputs` must contain.*'token_ids'"),
        ({1: 2}, r"`inputs` must contain.*\[1\]"),
        (
            {"token_ids": "abc", "padding_mask": [[1]]},
            "`token_ids` must be rows of token ids, not text",
        ),
        (
            {"token_ids": None, "padding_mask": [[1]]},
            "`token_ids` must be rows of token ids",
        ),
        (
            {"token_ids": [[3, 4], [5]], "padding_mask": [[1, 1], [1]]},
            "`token_ids` must have padded rows of equal length",
        ),
        (
            {"token_ids": [[3, 4]], "padding_mask": [[1]]},
            r"`padding_mask` must have shape \(1, 2\)",
        ),
        (
            {"token_ids": [[3, 4]], "padding_mask": [[0.0, -1e9]]},
            "`padding_mask` must be bool.*`mask == 0`",
        ),
        (
            {"token_ids": [3, 4], "padding_mask": [1, 1]},
            "`token_ids` must have rank 2",
        ),
    ],
)
def test_dicts_of_prompts(inputs, message):
    with pytest.raises(ValueError, match=message):
        MODELS["GPT"]().generate(inputs, 3)


def ragged_tensors():
    """Yields the ragged tensors of this backend."""
    if keras.backend.backend() == "tensorflow":
        import tensorflow as tf

        yield tf.ragged.constant([[3, 4], [5]]), "x.to_list()"
    if keras.backend.backend() == "torch":
        import torch

        rows = [torch.tensor([3, 4]), torch.tensor([5])]
        yield torch.nested.nested_tensor(rows), "list(x.unbind())"


# PyTorch says that nested tensors are a prototype.
@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_ragged_tensors(model):
    for inputs, way_out in ragged_tensors():
        message = f"`inputs` must be a list.*{re.escape(way_out)}"
        with pytest.raises(ValueError, match=message):
            model.generate(inputs, 3)
        with pytest.raises(ValueError, match=message):
            decoding.generate(model, inputs, 3, "greedy")


def test_tensors_are_accepted(model):
    rows = [[5, 6, 7], [8, 9, 3]]
    expected = model.generate(rows, 3)
    for inputs in (ops.convert_to_tensor(np.array(rows, "int32")), rows):
        found = model.generate(inputs, 3)
        np.testing.assert_array_equal(found.tokens, expected.tokens)
    arrays = [ops.convert_to_tensor(np.array(row, "int32")) for row in rows]
    found = model.generate(arrays, 3)
    np.testing.assert_array_equal(found.tokens, expected.tokens)
