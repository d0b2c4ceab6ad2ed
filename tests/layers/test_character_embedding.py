"""CharacterEmbedding compared with its equation."""

import keras
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keras_attn.layers import CharacterEmbedding
from tests.helpers.arrays import named_arrays, to_numpy
from tests.helpers.contract import check_layer, randomize

# Words of 3, 1, 0 and 5 characters; nothing but padding in the last row.
WORDS = np.array(
    [
        [[3, 4, 5, 0, 0], [7, 0, 0, 0, 0], [0, 0, 0, 0, 0]],
        [[1, 2, 3, 4, 5], [8, 8, 0, 0, 0], [6, 1, 6, 0, 0]],
    ],
    "int32",
)


def make(**kwargs):
    options = {"character_dim": 4, "kernel_sizes": (2, 3), "filters": 5}
    return CharacterEmbedding(9, 6, **(options | kwargs))


def expected(layer, words):
    """Evaluates the equation per character, in float64."""
    named = {
        name: array.astype("float64")
        for name, array in named_arrays(layer).items()
    }
    table = named["table/embeddings"]
    result = np.zeros((*words.shape[:2], layer.hidden_dim))
    for index in np.ndindex(words.shape[:2]):
        word = [i for i in words[index] if i != layer.pad_id]
        if not word:
            continue
        features = []
        for size in layer.kernel_sizes:
            kernel = named[f"window_{size}/kernel"]
            before = (size - 1) // 2
            padded = np.zeros((len(word) + size - 1, layer.character_dim))
            padded[before : before + len(word)] = table[word]
            windows = [
                np.tanh(
                    np.einsum("we,wef->f", padded[i : i + size], kernel)
                    + named[f"window_{size}/bias"]
                )
                for i in range(len(word))
            ]
            features.append(np.max(windows, axis=0))
        result[index] = (
            np.concatenate(features) @ named["output/kernel"]
            + named["output/bias"]
        )
    return result


@pytest.mark.every_backend
@pytest.mark.parametrize("sizes", [(2, 3), (1,), (4, 2)])
def test_equals_its_equation(sizes):
    layer = make(kernel_sizes=sizes)
    layer(WORDS)
    randomize(layer)
    np.testing.assert_allclose(
        to_numpy(layer(WORDS)), expected(layer, WORDS), atol=1e-5
    )


def test_contract():
    check_layer(make, WORDS, masks=False)


@given(extra=st.integers(1, 6))
def test_padding_of_words_does_not_change_outputs(extra):
    layer = make()
    layer(WORDS)
    randomize(layer)
    wider = np.pad(WORDS, ((0, 0), (0, 0), (0, extra)))
    np.testing.assert_allclose(
        to_numpy(layer(wider)), to_numpy(layer(WORDS)), atol=1e-6
    )


def test_empty_words_are_masked_and_zero():
    layer = make()
    y = layer(WORDS)
    token_mask = (WORDS != 0).any(-1)
    np.testing.assert_array_equal(to_numpy(y._keras_mask), token_mask)
    assert not to_numpy(y)[~token_mask].any()
    assert to_numpy(y)[token_mask].all()


@pytest.mark.parametrize(
    "change, message",
    [
        ({"kernel_sizes": ()}, "`kernel_sizes` must be a tuple of at least"),
        ({"kernel_sizes": (2, 0)}, "`kernel_sizes` must be a positive integer"),
        ({"kernel_sizes": (2, 2)}, "`kernel_sizes` must not repeat a size"),
        ({"filters": 0}, "`filters` must be a positive integer"),
        ({"character_dim": 1.5}, "`character_dim` must be a positive integer"),
    ],
)
def test_invalid_arguments_raise(change, message):
    with pytest.raises(ValueError, match=message):
        make(**change)


@pytest.mark.every_backend
def test_invalid_ids_raise():
    layer = make()
    with pytest.raises(ValueError, match="`character_ids` must have rank 3"):
        layer(WORDS[0])
    with pytest.raises(ValueError, match="`character_ids` must hold integers"):
        layer(keras.ops.full((1, 2, 3), 0.5))
