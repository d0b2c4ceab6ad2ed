"""WordPieceTokenizer: compared with BERT's tokenizer in transformers."""

import json

import numpy as np
import pytest
import transformers
from hypothesis import given, settings
from hypothesis import strategies as st

from keras_attn.text import WordPieceTokenizer, packages
from tests.helpers.full_disk import full_disk
from tests.text.samples import SCRIPTS, varied_texts

pytestmark = pytest.mark.one_backend

LINES = [line for lines in SCRIPTS.values() for line in lines] * 3 + [
    "The quick brown fox doesn't jump; it's 12:30 and they'll wait.",
    "Unbelievable! Naïve café-owners re-opened (again) at £5 or $6 ^_^",
    "She was walking, he is talking, they walked and talked.",
] * 5
PARTS = [
    *LINES,
    "[MASK]",
    "[mask]",
    "[SEP][CLS] [UNK]",
    "[PAD",
    "İstanbul ΟΔΥΣΣΕΥΣ ẞ",
    "x" * 100,
    "y" * 101,
    "غ" * 70,
    "\u200b\u200d\u00ad",
    "`~@#%&*<>|",
    "walking" * 9,
]
FORMS = [
    {},
    {"do_lower_case": False},
    {"strip_accents": False},
    {"do_lower_case": False, "strip_accents": True},
    {"tokenize_chinese_chars": False},
]


@pytest.fixture(scope="module")
def tokenizer():
    return WordPieceTokenizer.train_from_lines(LINES, 600)


def in_form(tokenizer, **form):
    return WordPieceTokenizer(tokenizer.vocabulary, **form)


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_same_ids_on_a_thousand_texts(form, tokenizer, tmp_path):
    # Trained per form: capitals, if kept, have their own pieces.
    ours = WordPieceTokenizer.train_from_lines(LINES, 600, **form)
    ours.save(tmp_path)
    theirs = transformers.BertTokenizer.from_pretrained(tmp_path)
    texts = varied_texts(PARTS, 1000)
    assert len(texts) == 1000
    expected = theirs(texts, add_special_tokens=False)["input_ids"]
    wrong = [
        (text, ours.tokens(text), theirs.convert_ids_to_tokens(ids))
        for text, found, ids in zip(
            texts, ours.encode(texts), expected, strict=True
        )
        if found != ids
    ]
    assert not wrong, wrong[:3]
    known = sum(i != ours.unknown_id for ids in expected for i in ids)
    assert known > 0.5 * sum(map(len, expected))
    assert ours.encode(texts[80]) == expected[80]


def test_nothing_needs_tensorflow(tokenizer, tmp_path, monkeypatch):
    def missing():
        raise ImportError("keras_attn.text needs tensorflow-text")

    monkeypatch.setattr(packages, "tensorflow", missing)
    monkeypatch.setattr(packages, "tensorflow_text", missing)
    tokenizer.save(tmp_path)
    loaded = WordPieceTokenizer.load(tmp_path)
    assert loaded.pack(["walking"])["token_ids"][0, 0] == loaded.start_id
    assert WordPieceTokenizer.train_from_lines(LINES, 600).vocabulary == (
        tokenizer.vocabulary
    )


def test_pieces_that_occur_in_no_word():
    special = "[PAD] [UNK] [CLS] [SEP] [MASK]".split()
    odd = ["", "##", "a b", "a\0", "a" * 300, "##" + "b" * 300]
    tokenizer = WordPieceTokenizer([*special, *odd, "a", "##b", "#"])
    assert tokenizer.tokens("abb a\0b ## ab") == (
        ["a", "##b", "##b", "a", "##b", "#", "#", "a", "##b"]
    )


@pytest.mark.parametrize("length", [None, 5, 6, 9, 21, 22])
@pytest.mark.parametrize("pairs", [False, True])
def test_pack_matches_transformers(pairs, length, tokenizer, tmp_path):
    tokenizer.save(tmp_path)
    theirs = transformers.BertTokenizer.from_pretrained(tmp_path)
    texts = [t for t in varied_texts(PARTS, 300, seed=3) if len(t) < 200]
    first, second = texts[::2][:90], texts[1::2][:90]
    given = (first, second) if pairs else (first,)
    expected = theirs(
        *given,
        truncation=length and "longest_first",
        max_length=length,
        padding=True,
        return_tensors="np",
    )
    ours = tokenizer.pack(*given, max_length=length)
    for name, key in (
        ("token_ids", "input_ids"),
        ("segment_ids", "token_type_ids"),
    ):
        assert ours[name].dtype == "int32"
        np.testing.assert_array_equal(ours[name], expected[key])
    ids = [tokenizer.encode(side) for side in given]
    again = tokenizer.pack(*map(list, ids), max_length=length)
    np.testing.assert_array_equal(again["token_ids"], ours["token_ids"])


def test_pack_to_a_fixed_length(tokenizer):
    rows = tokenizer.pack(["walking", ""], max_length=9, pad_to_max_length=True)
    assert rows["token_ids"].shape == rows["segment_ids"].shape == (2, 9)
    assert rows["token_ids"][1].tolist() == [2, 3] + [0] * 7
    assert tokenizer.pack([])["token_ids"].shape == (0, 0)


def test_lines_may_have_windows_line_endings(tokenizer, tmp_path):
    (tmp_path / "vocab.txt").write_bytes(
        "\r\n".join(tokenizer.vocabulary).encode()
    )
    bare = WordPieceTokenizer.load(tmp_path)
    assert bare.vocabulary == tokenizer.vocabulary
    assert bare.encode("Walking") == tokenizer.encode("Walking")


def test_save_and_load(tokenizer, tmp_path):
    ours = in_form(tokenizer, do_lower_case=False, strip_accents=True)
    ours.save(tmp_path / "new")
    loaded = WordPieceTokenizer.load(tmp_path / "new")
    assert loaded.vocabulary == ours.vocabulary
    texts = varied_texts(PARTS, 200, seed=2)
    assert loaded.encode(texts) == ours.encode(texts)
    before = (tmp_path / "new" / "vocab.txt").read_bytes()
    other = WordPieceTokenizer.train_from_lines(LINES, 500)
    with full_disk(100), pytest.raises(OSError):
        other.save(tmp_path / "new")
    assert (tmp_path / "new" / "vocab.txt").read_bytes() == before


def test_train_from_lines(tokenizer):
    again = WordPieceTokenizer.train_from_lines(reversed(LINES), 600)
    assert again.vocabulary == tokenizer.vocabulary
    assert tokenizer.vocabulary_size <= 600
    assert tokenizer.vocabulary[:5] == (
        "[PAD]",
        "[UNK]",
        "[CLS]",
        "[SEP]",
        "[MASK]",
    )
    # The training text has no unknown tokens.
    for ids in tokenizer.encode(LINES):
        assert tokenizer.unknown_id not in ids
    assert len(tokenizer.tokens("walking")) <= 2
    small = WordPieceTokenizer.train_from_lines(["ab ab b"] * 9, 9)
    assert small.vocabulary_size == 9
    assert small.decode(small.encode("ab ba")) == "ab ba"


@pytest.mark.parametrize("size", [9, 10, 11])
def test_a_small_vocabulary_keeps_the_characters(size):
    lines = ["aaaa bbbb abab baba"] * 50
    small = WordPieceTokenizer.train_from_lines(lines, size)
    assert small.vocabulary_size == size
    assert {"a", "b", "##a", "##b"} <= set(small.vocabulary)
    assert small.decode(small.encode("abba bab")) == "abba bab"


def test_white_space_in_a_vocabulary(tmp_path):
    lines = ["[PAD]", "[UNK] ", "[CLS]", "[SEP]", "[MASK]\t", "a \u3000", "b\r"]
    lines += ["", "\u2028", " c"]
    (tmp_path / "vocab.txt").write_bytes("\n".join(lines).encode())
    theirs = transformers.BertTokenizer.from_pretrained(tmp_path)
    ours = WordPieceTokenizer.load(tmp_path)
    text = "a b c [MASK] [UNK] \u2028 a"
    expected = theirs(text, add_special_tokens=False)["input_ids"]
    assert ours.encode(text) == expected == [5, 6, 1, 4, 1, 5]


@settings(max_examples=100, deadline=None)
@given(st.lists(st.text("abcdxyz", min_size=1, max_size=8), max_size=8))
def test_known_words_round_trip(words):
    tokenizer = WordPieceTokenizer(
        [
            *"[PAD] [UNK] [CLS] [SEP] [MASK]".split(),
            *"abcdxyz",
            *("##" + letter for letter in "abcdxyz"),
            *"ab ##ab abc ##xyz cab".split(),
        ]
    )
    text = " ".join(words)
    ids = tokenizer.encode(text)
    assert tokenizer.decode(ids) == text
    assert tokenizer.decode([2, *ids, 3, 0]) == text


def test_ids_for_masking(tokenizer):
    assert tokenizer.special_ids == (0, 1, 2, 3, 4)
    continuations = tokenizer.continuations
    assert continuations.shape == (tokenizer.vocabulary_size,)
    assert continuations.any() and not continuations[:5].any()
    assert tokenizer.tokens("a [MASK]!") == ["a", "[MASK]", "!"]
    assert (tokenizer.pad_id, tokenizer.mask_id) == (0, 4)
    assert (tokenizer.start_id, tokenizer.end_id) == (2, 3)


@pytest.mark.parametrize(
    "name, content, message",
    [
        ("vocab.txt", None, "a folder that contains vocab.txt"),
        ("vocab.txt", b"\xff", "UTF-8 text in vocab.txt"),
        ("vocab.txt", b"[PAD]\n[CLS]\n", "contain the token `unk_token`"),
        ("vocab.txt", b"[PAD]\nx\nx\n", "not have duplicates. Received: 'x'"),
        ("tokenizer_config.json", b"{", "a JSON object in tokenizer_c"),
        ("tokenizer_config.json", b"[]", "a JSON object in.*list"),
        (
            "tokenizer_config.json",
            b'{"do_lower_case": "yes"}',
            "`do_lower_case` in tokenizer_config.json of `directory` must be "
            "bool",
        ),
        (
            "tokenizer_config.json",
            b'{"mask_token": {"content": ""}}',
            "`mask_token` in tokenizer_config.json of `directory` must be a "
            "token",
        ),
        (
            "tokenizer_config.json",
            b'{"max_input_chars_per_word": 50}',
            "`max_input_chars_per_word` in tokenizer_config.json of "
            "`directory` must be 100",
        ),
        (
            "tokenizer_config.json",
            b'{"tokenizer_class": "AlbertTokenizer"}',
            "`tokenizer_class` of `directory` must be one of BertTokenizer",
        ),
    ],
)
def test_corrupt_files_raise(name, content, message, tokenizer, tmp_path):
    tokenizer.save(tmp_path)
    (tmp_path / "tokenizer.json").unlink()
    if content is None:
        (tmp_path / name).unlink()
    else:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=message) as info:
        WordPieceTokenizer.load(tmp_path)
    assert "\n" not in str(info.value)


def test_saved_settings(tokenizer, tmp_path):
    in_form(tokenizer, tokenize_chinese_chars=False).save(tmp_path)
    config = json.loads((tmp_path / "tokenizer_config.json").read_text("utf-8"))
    assert config["tokenize_chinese_chars"] is False
    assert config["strip_accents"] is None and config["do_lower_case"] is True


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda t: t.encode(3), "`text` must be a str.*type int"),
        (
            lambda t: type(t)([*t.vocabulary, 5]),
            "tokens of type str. Received: 5",
        ),
        (lambda t: t.decode([-1]), r"`ids` must lie in \[0, "),
        (lambda t: t.pack("abc"), "`text` must be a list of texts"),
        (lambda t: t.pack(["a"], "b"), "`text_pair` must be a list of texts"),
        (lambda t: t.pack(["a"], ["b", "c"]), "as many rows as `text`, 1"),
        (
            lambda t: t.pack(["a"], max_length=2),
            "`max_length` must be at least 3",
        ),
        (lambda t: t.pack(["a"], ["b"], max_length=4), "must be at least 5"),
        (
            lambda t: t.pack(["a"], pad_to_max_length=True),
            "`max_length` must be",
        ),
        (lambda t: t.train_from_lines("abc", 300), "an iterable of texts"),
        (lambda t: t.train_from_lines(["a"], 6), "must be at least 7 here"),
        (lambda t: t.train_from_lines([" "], 60), "must hold words"),
    ],
)
def test_invalid_arguments_raise(call, message, tokenizer):
    with pytest.raises(ValueError, match=message):
        call(tokenizer)
