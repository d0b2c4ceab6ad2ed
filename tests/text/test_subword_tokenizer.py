"""SubwordTokenizer: every text round-trips, in Python and in a graph."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

from keras_attn.text import SubwordTokenizer
from tests.text.samples import HARD, SCRIPTS, UNSEEN

pytestmark = pytest.mark.one_backend

ALL = [text for texts in SCRIPTS.values() for text in texts]


@pytest.fixture(scope="module")
def tokenizer():
    return SubwordTokenizer.train_from_lines(ALL * 3, 700)


def in_graph(tokenizer, texts):
    """Ids and texts from a compiled `tf.data` pipeline."""
    dataset = tf.data.Dataset.from_tensor_slices(texts).batch(len(texts))
    ids = next(iter(dataset.map(tokenizer.tokenize)))
    back = dataset.map(lambda x: tokenizer.detokenize(tokenizer.tokenize(x)))
    return ids, [text.decode() for text in next(iter(back)).numpy()]


@pytest.mark.parametrize("script", SCRIPTS)
def test_each_script_learns_its_pieces_and_round_trips(script):
    texts = SCRIPTS[script]
    learned = SubwordTokenizer.train_from_lines(texts * 3, 400)
    ids = learned.encode(texts)
    assert learned.decode(ids) == texts
    # Its own script is not encoded as bytes.
    own = [i for row in ids for i in row]
    assert np.mean(np.array(own) < 4 + 256) < 0.05
    everything = ALL + UNSEEN + HARD
    assert learned.decode(learned.encode(everything)) == everything


@pytest.mark.parametrize(
    "texts", [ALL, UNSEEN, HARD], ids="all new hard".split()
)
def test_python_and_graph_agree_and_round_trip(tokenizer, texts):
    ids, back = in_graph(tokenizer, texts)
    assert ids.dtype == tf.int32
    assert ids.to_list() == tokenizer.encode(texts)
    assert back == texts
    assert [tokenizer.decode(tokenizer.encode(text)) for text in texts] == texts


@given(text=st.text())
def test_any_text_round_trips(tokenizer, text):
    ids = tokenizer.encode(text)
    assert tokenizer.decode(ids) == text
    assert tokenizer.tokenize(text).numpy().tolist() == ids
    ragged = tf.RaggedTensor.from_row_lengths(
        tf.constant(ids, tf.int32), [len(ids)]
    )
    assert tokenizer.detokenize(ragged).numpy()[0].decode() == text
    # Text never becomes a special token.
    assert all(4 <= i < tokenizer.vocabulary_size for i in ids)


@given(text=st.text("\x1a\u258101 ", max_size=12))
def test_any_mixture_of_escapes_round_trips(tokenizer, text):
    assert tokenizer.decode(tokenizer.encode(text)) == text


def test_an_unseen_character_is_encoded_as_bytes(tokenizer):
    spelled = [f"<0x{byte:02X}>" for byte in "𓀀".encode()]
    assert tokenizer.tokens("𓀀") == ["▁", *spelled]
    assert tokenizer.encode("\x00")[-1] == 4


def test_a_word_has_the_same_pieces_first_and_later(tokenizer):
    assert tokenizer.tokens("la la") == ["▁la", "▁la"]
    first, second = tokenizer.encode(["la", "la la"])
    assert second == first * 2


def test_digits_stay_single(tokenizer):
    lines = ["1999 1999 1999"] * 9
    learned = SubwordTokenizer.train_from_lines(lines, 300)
    assert learned.tokens("1999") == ["▁", "1", "9", "9", "9"]


def test_one_text_or_many(tokenizer):
    one = tokenizer.encode("la montaña")
    assert tokenizer.encode(["la montaña", ""]) == [one, []]
    assert tokenizer.encode(t for t in ["la montaña"]) == [one]
    assert tokenizer.encode([]) == []
    assert tokenizer.encode(np.array(["la montaña"])) == [one]
    assert tokenizer.tokens(["la", ""]) == [["▁la"], []]


def test_special_ids(tokenizer):
    assert (tokenizer.pad_id, tokenizer.start_id, tokenizer.end_id) == (0, 1, 2)
    assert tokenizer.unknown_id == 3


def test_decode_leaves_out_special_ids_and_stops_at_the_end(tokenizer):
    ids = tokenizer.encode("la montaña")
    rows = [
        [0, 1, *ids, 2, *ids],
        [1, *ids, 0, 0] + [0] * len(ids),
        [2, *ids] + [0] * (2 + len(ids)),
    ]
    expected = ["la montaña", "la montaña", ""]
    assert tokenizer.decode(rows) == expected
    assert tokenizer.decode(np.array(rows)) == expected
    assert tokenizer.decode(keras.ops.convert_to_tensor(rows)) == expected
    assert tokenizer.decode([np.array(row) for row in rows]) == expected
    assert tokenizer.decode(tf.ragged.constant(rows)) == expected
    assert tokenizer.decode(np.array([rows])) == [expected]
    graph = tokenizer.detokenize(tf.constant(rows)).numpy().tolist()
    assert [text.decode() for text in graph] == expected
    assert tokenizer.decode([]) == ""
    assert tokenizer.decode([[], ids]) == ["", "la montaña"]


def test_pieces_of_ids_are_those_of_the_text(tokenizer):
    for text in [*ALL, *UNSEEN]:
        ids = tokenizer.encode(text)
        assert tokenizer.pieces(ids) == tokenizer.tokens(text)
        assert tokenizer.pieces(np.array(ids, "int32")) == tokenizer.tokens(
            text
        )
    assert tokenizer.pieces([0, 1, 2, 3]) == ["<pad>", "<s>", "</s>", "<unk>"]
    assert tokenizer.pieces(keras.ops.convert_to_tensor([2, 0])) == [
        "</s>",
        "<pad>",
    ]
    assert tokenizer.pieces([]) == []
    # `encode` would not encode these as bytes.
    letters = [4 + ord(letter) for letter in "la"]
    assert tokenizer.pieces(letters) == ["<0x6C>", "<0x61>"]
    assert tokenizer.decode(letters) == "la"


def test_unknown_and_invalid_bytes_decode_to_the_replacement_character(
    tokenizer,
):
    half = tokenizer.encode("𓀀")[:-1]
    assert "\ufffd" in tokenizer.decode(half)
    assert tokenizer.decode([3]) == "\ufffd"
    graph = tokenizer.detokenize(tf.constant([[3]])).numpy()[0].decode()
    assert graph == "\ufffd"


def test_strings_of_any_shape_in_a_graph(tokenizer):
    ids = tokenizer.encode(["la", "a la"])
    assert tokenizer.tokenize([["la"], ["a la"]]).to_list() == [
        [r] for r in ids
    ]
    assert tokenizer.tokenize("la").numpy().tolist() == ids[0]
    assert tokenizer.tokenize([""]).to_list() == [[]]


def test_tokenize_in_a_traced_function_and_afterwards(tokenizer):
    ids = [tokenizer.encode("a la")]
    dataset = tf.data.Dataset.from_tensors(["a la"]).map(tokenizer.tokenize)
    for _ in range(2):
        assert tf.function(tokenizer.tokenize)(["a la"]).to_list() == ids
        assert tokenizer.tokenize(["a la"]).to_list() == ids
        assert next(iter(dataset)).to_list() == ids
        # This clears TensorFlow's caches, and the resources of eager ops with
        # them.
        keras.utils.set_random_seed(1)
        tf.random.set_seed(1)


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda t: t.encode(3), "must be a str"),
        (lambda t: t.encode(b"abc"), "must be a str"),
        (lambda t: t.encode(["a", None]), "must be a str"),
        (lambda t: t.encode("\ud800"), "surrogates"),
        (lambda t: t.decode([-1]), "ids from -1"),
        (lambda t: t.decode([[5], [700]]), r"\[0, 700\)"),
        (lambda t: t.pieces([700]), r"\[0, 700\)"),
        (lambda t: SubwordTokenizer(b""), "`model`"),
        (lambda t: SubwordTokenizer(b"\x00junk"), "`model`"),
    ],
)
def test_invalid_arguments_raise(tokenizer, call, message):
    with pytest.raises(ValueError, match=message) as info:
        call(tokenizer)
    assert "\n" not in str(info.value)
