"""pack_segments against the rows of `WordPieceTokenizer.pack`."""

import numpy as np
import pytest

from keras_attn.text import WordPieceTokenizer, pack_segments

pytestmark = pytest.mark.one_backend
SPECIAL = {"start_id": 2, "end_id": 3}
RNG = np.random.default_rng(0)


def rows(least=0):
    # 0 is an id like others.
    sizes = RNG.integers(least, 9, 20)
    return [RNG.choice([0, 5, 6, 7], size).tolist() for size in sizes]


# If both segments are truncated and one more id fits, `pack_segments` gives it
# to the first segment, as BERT's original code, and `tokenizers` to the second.
@pytest.mark.parametrize("length", [None, 7, 11, 30])
@pytest.mark.parametrize("pad_to_length", [False, True])
def test_rows_equal_those_of_the_tokenizer_of_bert(length, pad_to_length):
    if length is None and pad_to_length:
        pytest.skip("needs a length")
    tokenizer = WordPieceTokenizer(
        "[PAD] [UNK] [CLS] [SEP] [MASK] a b c".split()
    )
    options = {"length": length, "pad_to_length": pad_to_length}
    for sides in ([rows()], [rows(), rows()]):
        inputs = pack_segments(*sides, **SPECIAL, **options)
        mask = inputs.pop("padding_mask")
        expected = tokenizer.pack(
            *sides, max_length=length, pad_to_max_length=pad_to_length
        )
        assert inputs.keys() == expected.keys()
        for name, found in inputs.items():
            assert found.dtype == "int32"
            np.testing.assert_array_equal(found, expected[name])
        sizes = [
            1 + sum(len(x) + 1 for x in row) for row in zip(*sides, strict=True)
        ]
        sizes = np.minimum(sizes, length or np.inf)
        assert mask.dtype == bool
        np.testing.assert_array_equal(
            mask, np.arange(mask.shape[1]) < sizes[:, None]
        )


@pytest.mark.parametrize(
    "options, message",
    [
        ({"second": [[1], [2]]}, "`second` must have as many rows as `first`"),
        ({"length": 2}, "`length` must be at least 3"),
        ({"pad_to_length": True}, "`length` must be given"),
        ({"first": "abc"}, "`first` must be a list of lists of ids"),
        ({"end_id": -1}, "`end_id` must be at least 0"),
    ],
)
def test_invalid_arguments_raise(options, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        pack_segments(**({"first": [[5]]} | SPECIAL | options))
