# ruff: noqa: RUF001
"""`pack` of the tokenizers of published models: compared with transformers."""

import numpy as np
import pytest
import transformers

from keras_attn.text import (
    BytePairTokenizer,
    UnigramTokenizer,
    WordPieceTokenizer,
)

pytestmark = pytest.mark.one_backend

LINES = [
    "Who sleeps? The cat sleeps on the mat, and the dog sleeps too.",
    "Où est le chat ? Il dort sur le tapis; l'été, il dort dehors.",
    "Το σκυλί κοιμάται. 12 cats and 7 dogs slept until 9:30!",
] * 4
CONTEXT = " ".join(LINES[:3])
KINDS = {
    "bert": (WordPieceTokenizer, {}),
    "gpt2": (BytePairTokenizer, {"pad_token": "<pad>"}),
    "t5": (UnigramTokenizer, {}),
    "xlnet": (UnigramTokenizer, {"tokenizer_class": "XLNetTokenizer"}),
}
KEYS = {"token_ids": "input_ids", "segment_ids": "token_type_ids"}


@pytest.fixture(scope="module", params=KINDS)
def both(request, tmp_path_factory):
    """One of our tokenizers, and the one of transformers."""
    kind, options = KINDS[request.param]
    sizes = {WordPieceTokenizer: 200, BytePairTokenizer: 330}
    ours = kind.train_from_lines(LINES, sizes.get(kind, 90), **options)
    folder = tmp_path_factory.mktemp(request.param)
    ours.save(folder)
    return ours, transformers.AutoTokenizer.from_pretrained(folder)


def check(packed, expected):
    for ours, theirs in KEYS.items():
        if ours in packed:
            assert packed[ours].dtype == "int32"
            np.testing.assert_array_equal(packed[ours], expected[theirs])
    if "offsets" not in packed:
        return
    for row, spans in enumerate(expected["offset_mapping"]):
        np.testing.assert_array_equal(packed["offsets"][row], spans)
        for name in ("word_ids", "sequence_ids"):
            values = getattr(expected, name)(row)
            values = [-1 if value is None else value for value in values]
            assert packed[name][row].tolist() == values


@pytest.mark.parametrize("pad", [False, True])
@pytest.mark.parametrize("truncation", ["longest_first", "only_first"])
@pytest.mark.parametrize("pairs", [False, True])
def test_rows_equal_those_of_transformers(pairs, truncation, pad, both):
    ours, theirs = both
    first, second = [*LINES[:3], ""], ["dog", "a b", LINES[2], "no"]
    given = (first, second) if pairs else (first,)
    for length in (20, 21, 200):
        if truncation == "only_first":
            given = (first, ["dog"] * 4) if pairs else given
        expected = theirs(
            *given,
            max_length=length,
            truncation=truncation,
            padding="max_length" if pad else True,
            return_offsets_mapping=True,
            return_token_type_ids=True,
        )
        packed = ours.pack(
            *given,
            max_length=length,
            truncation=truncation,
            pad_to_max_length=pad,
            return_offsets=True,
        )
        check(packed, expected)
        assert packed["rows"].tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("stride", [1, 5])
def test_a_stride_gives_the_rows_of_transformers(stride, both):
    ours, theirs = both
    texts = ["Who sleeps?", "Où ?", "dog"], [CONTEXT, LINES[1], "cat"]
    for given, truncation in (
        (texts, "only_second"),
        (texts[::-1], "only_first"),
        (texts[1:], "longest_first"),
    ):
        expected = theirs(
            *given,
            max_length=40,
            truncation=truncation,
            stride=stride,
            padding=True,
            return_overflowing_tokens=True,
            return_offsets_mapping=True,
            return_token_type_ids=True,
        )
        packed = ours.pack(
            *given, max_length=40, truncation=truncation, stride=stride
        )
        check(packed, expected)
        rows = expected["overflow_to_sample_mapping"]
        assert packed["rows"].tolist() == rows
        assert len(rows) > 3


def test_words_are_tagged(both):
    ours, theirs = both
    words = [["Who", "sleeps", "?"], ["The", "cat", "été"]]
    packed = ours.pack(words, return_offsets=True)
    if isinstance(ours, BytePairTokenizer):
        assert packed["word_ids"].max() == 2
        return
    expected = theirs(
        words,
        is_split_into_words=True,
        padding=True,
        return_offsets_mapping=True,
        return_token_type_ids=True,
    )
    check(packed, expected)


def test_rows_of_ids(both):
    ours, _ = both
    texts = [LINES[0], "a cat", ""]
    ids = [ours.encode(text) for text in texts]
    for options in ({}, {"max_length": 12, "pad_to_max_length": True}):
        expected = ours.pack(texts, texts[::-1], **options)
        packed = ours.pack(ids, ids[::-1], **options)
        assert packed.keys() == expected.keys()
        for name, rows in packed.items():
            np.testing.assert_array_equal(rows, expected[name])
    with pytest.raises(ValueError, match="`text` must be a list of texts or"):
        ours.pack(ids, return_offsets=True)


def test_segments_depend_on_the_family(both):
    ours, _ = both
    has = "segment_ids" in ours.pack(["a"])
    assert has == (ours._settings.name in ("BertTokenizer", "XLNetTokenizer"))


def test_without_a_padding_token_rows_have_one_length():
    tokenizer = BytePairTokenizer.train_from_lines(LINES, 300)
    rows = tokenizer.pack(["ab", "ba"])["token_ids"]
    assert rows.tolist() == tokenizer.encode(["ab", "ba"])
    with pytest.raises(ValueError, match="no padding token; `pack_segments`"):
        tokenizer.pack(["ab", "bab xyz"])


@pytest.mark.parametrize(
    "options, message",
    [
        ({"max_length": 4}, "`max_length` must be at least 5"),
        ({"stride": 2}, "`max_length` must be given"),
        ({"pad_to_max_length": True}, "`max_length` must be given"),
        ({"truncation": "last"}, "`truncation` must be one of longest_first"),
        (
            {"max_length": 9, "stride": 2},
            "`truncation` must be 'only_first' or 'only_second'",
        ),
        (
            {"max_length": 9, "stride": 9, "truncation": "only_second"},
            "`max_length` must leave room for more than `stride`=9 tokens",
        ),
        (
            {"max_length": 5, "truncation": "only_second"},
            "`max_length` must leave room",
        ),
        ({"stride": -1}, "`stride` must be at least 0"),
    ],
)
def test_invalid_arguments_raise(options, message):
    tokenizer = WordPieceTokenizer.train_from_lines(LINES, 200)
    with pytest.raises(ValueError, match=f"^{message}"):
        tokenizer.pack(["the cat"], [CONTEXT], **options)
    if options.get("truncation") == "only_second":
        with pytest.raises(ValueError, match="`text_pair` must be given"):
            tokenizer.pack(["the cat"], **options)
