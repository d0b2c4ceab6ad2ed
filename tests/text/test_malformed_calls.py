"""Malformed calls of the text package name the argument."""

import json
import pathlib

import keras
import numpy as np
import pytest

from keras_attn import text
from keras_attn.text.arguments import id_list

pytestmark = pytest.mark.one_backend

NAN = float("nan")
LINES = ["low lower lowest", "new newer newest"] * 4
IDS = [[2, 7, 8, 9, 3, 0]]
PIECES = "[PAD] [UNK] [CLS] [SEP] [MASK] un ##like ##ly you".split()
SYMBOL = keras.Input((3,))
CYCLE = []
CYCLE.append(CYCLE)
DEEP_LIST = []
for _ in range(10_000):
    DEEP_LIST = [DEEP_LIST]


class NoIds:
    """A tokenizer without ids."""

    def encode(self, texts):
        """Returns no ids."""
        return []


class Numbers(NoIds):
    """A tokenizer that encodes a list as too few rows."""

    pad_id, start_id, end_id = 0, 1, 2


class Half(Numbers):
    """A tokenizer with a padding id that is not an integer."""

    pad_id = 0.5


@pytest.fixture(scope="module")
def made():
    """A tokenizer of each class, without TensorFlow."""
    byte_pair = text.BytePairTokenizer.train_from_lines(
        LINES, 264, pad_token="<pad>"
    )
    word_piece = text.WordPieceTokenizer(PIECES)
    subword = text.SubwordTokenizer.train_from_lines(LINES, 290)
    return {
        "byte_pair": byte_pair,
        "word_piece": word_piece,
        "subword": subword,
    }


@pytest.fixture(scope="module")
def given(made, tmp_path_factory):
    """Functions, with valid arguments of each."""
    byte_pair, word_piece, subword = made.values()
    folder = tmp_path_factory.mktemp("files")
    (folder / "lines.txt").write_text("\n".join(LINES), encoding="utf-8")
    train = {"lines": LINES, "vocabulary_size": 290}
    return {
        "mask_tokens": (
            text.mask_tokens,
            {"token_ids": IDS, "vocabulary_size": 12, "mask_id": 4},
        ),
        "permute_tokens": (text.permute_tokens, {"token_ids": IDS}),
        "sentence_pairs": (
            text.sentence_pairs,
            {"documents": [[[5], [6], [7]], [[8], [9]]]},
        ),
        "token_batches": (
            text.token_batches,
            {
                "source": ["one two"],
                "target": ["two"],
                "tokenizer": subword,
                "tokens_per_batch": 12,
            },
        ),
        "token_blocks": (
            text.token_blocks,
            {"token_ids": np.arange(10), "length": 4, "batch_size": 2},
        ),
        "token_streams": (
            text.token_streams,
            {
                "documents": [[1, 2, 3, 4], [5, 6, 7]],
                "length": 2,
                "batch_size": 2,
                "shuffle": False,
            },
        ),
        "byte_pair": (
            text.BytePairTokenizer,
            {
                "vocab": {t: i for i, t in enumerate(byte_pair.vocabulary)},
                "merges": [("l", "o")],
            },
        ),
        "byte_pair.train": (text.BytePairTokenizer.train_from_lines, train),
        "byte_pair.encode": (byte_pair.encode, {"text": "low"}),
        "byte_pair.tokens": (byte_pair.tokens, {"text": "low"}),
        "byte_pair.decode": (byte_pair.decode, {"ids": [5, 6]}),
        "word_piece": (text.WordPieceTokenizer, {"vocab": PIECES}),
        "word_piece.train": (text.WordPieceTokenizer.train_from_lines, train),
        "word_piece.encode": (word_piece.encode, {"text": "you"}),
        "word_piece.tokens": (word_piece.tokens, {"text": "you"}),
        "word_piece.decode": (word_piece.decode, {"ids": [5, 6]}),
        "word_piece.pack": (
            word_piece.pack,
            {"text": ["you"], "text_pair": ["un"], "max_length": 8},
        ),
        "subword": (text.SubwordTokenizer, {"model": subword._model}),
        "subword.train": (
            text.SubwordTokenizer.train,
            {"files": folder / "lines.txt", "vocabulary_size": 290},
        ),
        "subword.train_from_lines": (
            text.SubwordTokenizer.train_from_lines,
            train,
        ),
        "subword.encode": (subword.encode, {"texts": "low"}),
        "subword.tokens": (subword.tokens, {"text": "low"}),
        "subword.pieces": (subword.pieces, {"ids": [5, 6]}),
        "subword.decode": (subword.decode, {"ids": [5, 6]}),
        "subword.tokenize": (subword.tokenize, {"texts": ["low"]}),
        "subword.detokenize": (subword.detokenize, {"ids": [[5, 6]]}),
        **{
            f"{name}.{method}": (
                getattr(tokenizer, method),
                {"path" if name == "subword" else "directory": None},
            )
            for name, tokenizer in made.items()
            for method in ("save", "load")
        },
    }


NO_COUNT = (0, -1, 1.5, True, None, "4", NAN)
NO_INDEX = (-1, 1.5, True, None, "a", NAN)
NO_FLAG = (None, 0, 1, "yes", NAN)
NO_RATE = (0, 1, 1.5, -0.1, NAN, None, "a", True)
NO_SEED = (-1, 1.5, True, "a", NAN, [1.5], (1, -1), (1, None), [])
NO_TEXT = (
    None,
    3,
    1.5,
    b"low",
    [None],
    ["low", 3],
    [b"low"],
    {"low": 1},
    {"low"},
    SYMBOL,
)
NO_LINES = (None, 3, "low", b"low", [None], ["low", 3], [["low"]], {"low": 1})
NO_LINES = (*NO_LINES, {"low"}, SYMBOL)
NO_IDS = (
    *(None, 5, 1.5, True, "56", b"56", {5: 6}, object()),
    *([1.5], [True], [None], ["5"], [-1], [2**31], [2**70], [5, -(2**70)]),
    *([[[5]], 6], np.array([1.5]), np.array([True]), np.array(5), [5, [6]]),
    *(np.array(["5"]), {5}, SYMBOL, DEEP_LIST),
)
NO_ROWS = (
    *(None, "abc", 5, [5], [[1.5]], [[True]], [["5"]], [[5], [6, 7]]),
    *([[None]], [[-1]], [[2**31]], [[2**70]], [[[5]]], [[2**63]], [[NAN]]),
    *(np.ones((2, 3)), SYMBOL, DEEP_LIST),
)
NO_SPECIAL = (
    None,
    {0: 1},
    SYMBOL,
    0,
    "0",
    [1.5],
    [True],
    [None],
    [[0]],
    [-1],
    [2**70],
)
NO_PATH = (None, 3, b"x", "", ["x"], "a\0b", "\ud800", DEEP_LIST)
HUGE = (10**9, 2**31, 2**40, 2**70)

# Function, argument, wrong values.
WRONG = [
    ("mask_tokens", "token_ids", (*NO_ROWS, [[12]])),
    ("mask_tokens", "vocabulary_size", (*NO_COUNT, 2**40)),
    ("mask_tokens", "mask_id", (*NO_INDEX, 12, 2**70)),
    ("mask_tokens", "special_ids", (*NO_SPECIAL, [12], range(10**12))),
    ("mask_tokens", "mask_rate", NO_RATE),
    (
        "mask_tokens",
        "continuations",
        (3, "abc", [True], [None] * 12, [NAN] * 12, ["a"] * 12),
    ),
    ("mask_tokens", "max_predictions", (0, -1, 1.5, True, *HUGE)),
    ("mask_tokens", "seed", NO_SEED),
    ("permute_tokens", "token_ids", NO_ROWS),
    ("permute_tokens", "special_ids", (*NO_SPECIAL, range(10**12))),
    ("permute_tokens", "prediction_rate", NO_RATE),
    ("permute_tokens", "max_span_length", (*NO_COUNT, 2**40)),
    ("permute_tokens", "seed", NO_SEED),
    (
        "sentence_pairs",
        "documents",
        (
            *(None, 3, "abc", ["abc", "def"], [[5, 6], [7]], [["ab"], ["c"]]),
            *([[[1.5], [2]], [[3]]], [[[None], [2]], [[3]]], [[], []]),
            {"a": 1},
        ),
    ),
    ("sentence_pairs", "length", (0, -1, 1, 1.5, True, "4", NAN)),
    ("sentence_pairs", "seed", NO_SEED),
    ("token_batches", "source", NO_LINES),
    ("token_batches", "target", NO_LINES),
    (
        "token_batches",
        "tokenizer",
        (None, "subword", 3, (), NoIds(), Numbers(), Half(), NoIds),
    ),
    ("token_batches", "tokens_per_batch", (*NO_COUNT, *HUGE)),
    ("token_batches", "max_length", (*NO_COUNT, 1)),
    ("token_batches", "buckets", NO_COUNT),
    ("token_batches", "shuffle", NO_FLAG),
    ("token_batches", "seed", (*NO_SEED, None)),
    ("token_batches", "initial_epoch", NO_INDEX),
    ("token_batches", "labels", NO_FLAG),
    (
        "token_blocks",
        "token_ids",
        (None, "abc", 5, [1.5], [True], ["5"], [[5]], [-1] * 10, [2**31] * 10),
    ),
    ("token_blocks", "length", NO_COUNT),
    ("token_blocks", "batch_size", (*NO_COUNT, *HUGE)),
    ("token_blocks", "shuffle", NO_FLAG),
    ("token_blocks", "seed", (*NO_SEED, None)),
    ("token_blocks", "initial_epoch", NO_INDEX),
    ("token_blocks", "pad_id", (*NO_INDEX, 2**31)),
    (
        "token_streams",
        "documents",
        (
            *(None, "abc", 5, [5, 6], [[1.5]], [["5"]], [[-1]], [[2**31]]),
            *(["abc"], [None], [[[5]]], {"a": 1}, [[]], np.ones((2, 2))),
        ),
    ),
    ("token_streams", "length", (*NO_COUNT, *HUGE)),
    ("token_streams", "batch_size", (*NO_COUNT, *HUGE)),
    ("token_streams", "shuffle", NO_FLAG),
    ("token_streams", "pad_id", (*NO_INDEX, 2**31)),
    (
        "byte_pair",
        "vocab",
        (None, 3, "abc", [], {}, {"a": 0}, {"a": "b"}, {5: 0}, [("a", 0)]),
    ),
    (
        "byte_pair",
        "merges",
        (
            *(None, 3, "ab", ["ab"], [("a",)], [("a", "b", "c")], [(1, 2)]),
            *([("l", "o")] * 2, [("☃", "☃")], [None]),
        ),
    ),
    ("byte_pair", "bos_token", (None, 3, "", "<end>")),
    ("byte_pair.train", "lines", NO_LINES),
    ("byte_pair.train", "vocabulary_size", (*NO_COUNT, 256)),
    ("byte_pair.encode", "text", (*NO_TEXT, [["low"]], CYCLE)),
    ("byte_pair.tokens", "text", (*NO_TEXT, ["low"])),
    ("byte_pair.decode", "ids", (*NO_IDS, [264])),
    ("word_piece", "vocab", (None, 3, "abc", [], [5], PIECES * 2, {})),
    ("word_piece", "vocab", ([*PIECES, "\ud800"], [*PIECES, None])),
    ("word_piece", "do_lower_case", NO_FLAG),
    ("word_piece", "strip_accents", NO_FLAG[1:]),
    ("word_piece", "tokenize_chinese_chars", NO_FLAG),
    ("word_piece", "mask_token", (None, 3, "", b"[MASK]")),
    ("word_piece.train", "lines", (*NO_LINES, [], [" "])),
    ("word_piece.train", "vocabulary_size", (*NO_COUNT, 6)),
    ("word_piece.encode", "text", (*NO_TEXT, [["low"]], CYCLE)),
    ("word_piece.tokens", "text", (*NO_TEXT, ["low"])),
    ("word_piece.decode", "ids", (*NO_IDS, [9])),
    (
        "word_piece.pack",
        "text",
        (
            None,
            3,
            "you",
            [3],
            ["you", [5]],
            [[5], None],
            [[1.5]],
            [[9]],
        ),
    ),
    (
        "word_piece.pack",
        "text_pair",
        (3, "you", [3], [[True]], [[9]], ["un", "you"]),
    ),
    ("word_piece.pack", "max_length", (0, -1, 4, 1.5, True, "8", NAN, *HUGE)),
    ("word_piece.pack", "pad_to_max_length", NO_FLAG),
    ("subword", "model", (None, 3, 10**12, "abc", b"", b"abc", [1, 2])),
    ("subword.train", "files", (None, 3, b"x", [None], [3], "")),
    ("subword.train_from_lines", "lines", (*NO_LINES, [], ["\ud800"])),
    (
        "subword.train_from_lines",
        "vocabulary_size",
        (*NO_COUNT, 1, 4, 2**31, 2**40, 2**70),
    ),
    (
        "subword.train_from_lines",
        "character_coverage",
        (0, -1, 0.97, 1.5, NAN, None, "1"),
    ),
    ("subword.encode", "texts", (*NO_TEXT, [["low"]], "\ud800", CYCLE)),
    ("subword.tokens", "text", (*NO_TEXT, [["low"]])),
    ("subword.pieces", "ids", (*NO_IDS, [[5]], [290])),
    ("subword.decode", "ids", (*NO_IDS, [290], [[5], None], CYCLE)),
    ("subword.tokenize", "texts", (None, 3, [3], ["low", None], {"a": "b"})),
    (
        "subword.detokenize",
        "ids",
        (
            None,
            3,
            "abc",
            [5],
            [[1.5]],
            [[True]],
            [["5"]],
            [[5], [6, 7]],
            [[-1]],
            [[2**40]],
            [[290]],
        ),
    ),
    ("byte_pair.save", "directory", NO_PATH),
    ("byte_pair.load", "directory", (*NO_PATH, "no such folder")),
    ("word_piece.save", "directory", NO_PATH),
    ("word_piece.load", "directory", (*NO_PATH, "no such folder")),
    ("subword.save", "path", NO_PATH),
    ("subword.load", "path", NO_PATH),
]
CALLS = [
    pytest.param(function, name, value, id=f"{function}-{name}-{number}")
    for function, name, values in WRONG
    for number, value in enumerate(values)
]


@pytest.mark.parametrize("function, name, value", CALLS)
def test_wrong_arguments_raise(function, name, value, given):
    call, arguments = given[function]
    with pytest.raises(ValueError) as error:
        call(**(arguments | {name: value}))
    message = str(error.value)
    assert f"`{name}`" in message and "Received: " in message, message
    assert "\n" not in message and len(message) < 400


def test_the_valid_arguments_are_accepted(given):
    for name, (call, arguments) in given.items():
        if not name.endswith((".save", ".load")):
            assert call(**arguments) is not None


def test_large_arguments_that_need_no_memory_are_accepted(made):
    pairs = ["one two"], ["two"]
    huge = 2**40
    batches = text.token_batches(
        *pairs, made["subword"], max_length=huge, buckets=huge
    )
    assert len(batches) == 1
    assert text.permute_tokens(
        IDS, prediction_rate=1e-300, max_span_length=2**31, seed=0
    ).labels.shape == (1, 1)
    assert (
        made["word_piece"].pack(["you"], max_length=2**20)["token_ids"].size
        == 3
    )


def test_ids_of_any_integer_type(made):
    expected = made["byte_pair"].decode([70, 71])
    for ids in (
        (70, 71),
        range(70, 72),
        iter([70, 71]),
        np.array([70, 71], "uint8"),
        [np.int32(70), np.int64(71)],
        [np.array(70), 71],
    ):
        assert made["byte_pair"].decode(ids) == expected
    for tokenizer in made.values():
        assert tokenizer.decode([]) == tokenizer.decode(np.array([])) == ""
    assert id_list("ids", [2**40], 2**41) == [2**40]


DEEP = "[" * 10_000 + "]" * 10_000
FILES = [
    ("byte_pair", "vocab.json", DEEP.encode()),
    ("byte_pair", "vocab.json", b'{"a": ' + DEEP.encode() + b"}"),
    ("byte_pair", "vocab.json", b""),
    ("byte_pair", "vocab.json", b"\xff\xfe"),
    ("byte_pair", "vocab.json", bytes(range(256))),
    ("byte_pair", "vocab.json", b"null"),
    ("byte_pair", "vocab.json", b'{"a": 0, "a": 0}'),
    ("byte_pair", "vocab.json", b'{"a": [0]}'),
    ("byte_pair", "vocab.json", b'{"a": ' + b"9" * 5000 + b"}"),
    ("byte_pair", "merges.txt", b"\xff\xfe"),
    ("byte_pair", "merges.txt", b"\x00\x01\x02"),
    ("byte_pair", "merges.txt", b"l o\nl o\n"),
    ("byte_pair", "merges.txt", b"l o w\n"),
    ("word_piece", "vocab.txt", b""),
    ("word_piece", "vocab.txt", b"\xff\xfe"),
    ("word_piece", "vocab.txt", bytes(range(256))),
    ("word_piece", "vocab.txt", "\n".join([*PIECES, "you"]).encode()),
    ("word_piece", "tokenizer_config.json", DEEP.encode()),
    ("word_piece", "tokenizer_config.json", b""),
    ("word_piece", "tokenizer_config.json", b"\xff"),
    ("word_piece", "tokenizer_config.json", b'{"a": 1, "a": 2}'),
]


@pytest.mark.parametrize("name, file, content", FILES)
def test_damaged_files_raise(name, file, content, made, tmp_path):
    made[name].save(tmp_path)
    (tmp_path / "tokenizer.json").unlink()
    (tmp_path / file).write_bytes(content)
    with pytest.raises(ValueError) as error:
        type(made[name]).load(tmp_path)
    message = str(error.value)
    assert "`directory`" in message and file in message, message
    assert "\n" not in message and len(message) < 500


@pytest.mark.parametrize(
    "key, value",
    [
        ("do_lower_case", 1),
        ("strip_accents", "no"),
        ("max_input_chars_per_word", True),
        ("max_input_chars_per_word", 0),
        ("max_input_chars_per_word", 1.5),
        ("mask_token", ""),
        ("mask_token", {"content": ["[MASK]"]}),
        ("mask_token", ["[MASK]"]),
    ],
)
def test_wrong_values_of_a_config_raise(key, value, made, tmp_path):
    made["word_piece"].save(tmp_path)
    path = tmp_path / "tokenizer_config.json"
    path.write_text(json.dumps({key: value}), encoding="utf-8")
    with pytest.raises(ValueError, match=f"`{key}` in tokenizer_config.json"):
        text.WordPieceTokenizer.load(tmp_path)


def sparse(path):
    """Makes a file of a terabyte that takes no room on the disk."""
    with open(path, "wb") as file:
        file.truncate(2**40)


def test_huge_files_are_not_read(made, tmp_path):
    for name, file in (
        ("byte_pair", "merges.txt"),
        ("byte_pair", "vocab.json"),
        ("byte_pair", "tokenizer.json"),
        ("word_piece", "tokenizer_config.json"),
        ("word_piece", "vocab.txt"),
    ):
        folder = tmp_path / f"{name} {file}"
        made[name].save(folder)
        (folder / "tokenizer.json").unlink()
        sparse(folder / file)
        with pytest.raises(ValueError, match=f"`directory` .* {file} of at m"):
            type(made[name]).load(folder)
    sparse(tmp_path / "model")
    with pytest.raises(ValueError, match=r"`path` must .*1099511627776 bytes"):
        text.SubwordTokenizer.load(tmp_path / "model")
    with pytest.raises(OSError):
        text.SubwordTokenizer.load(tmp_path)
    assert pathlib.Path(tmp_path, "model").stat().st_size == 2**40


def test_detokenize_checks_ids_in_graphs(made):
    import tensorflow as tf

    tokenizer = made["subword"]
    ids = np.array([tokenizer.encode("low low")])
    graph = tf.function(tokenizer.detokenize)
    assert graph(ids).numpy().tolist() == [b"low low"]
    for wrong in (ids - 300, ids + 2**40):
        with pytest.raises(tf.errors.InvalidArgumentError, match="`ids` must"):
            graph(wrong)


def test_special_tokens_with_any_letters_are_decoded(made):
    tokenizer = made["byte_pair"]
    pieces = {token: i for i, token in enumerate(tokenizer.vocabulary)}
    added = ["<| a ☃ |>"]
    longer = text.BytePairTokenizer(pieces, [], additional_special_tokens=added)
    ids = [len(pieces), 70]
    shown = longer.decode(ids, skip_special_tokens=False)
    assert shown.startswith("<| a ☃ |>")
    assert longer.decode(ids) == longer.decode([70])
