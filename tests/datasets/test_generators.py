"""What all generators have in common: digests, prefixes, splits and errors."""

import functools
import hashlib
import re

import numpy as np
import pytest

from keras_attn import datasets
from keras_attn.datasets import sampling
from keras_attn.datasets.scene_captions import caption_of
from tests.helpers.digest import digest

SPLITS = "train", "validation", "test"
SYMBOLS = {"length": 6, "min_length": 2, "num_symbols": 20}
MASKED, TWO = {"max_mask_rate": 0.9, **SYMBOLS}, {"max_digits": 2}


def joined(ids):
    """The text whose hash decides the split of a sequence of token ids."""
    return " ".join(str(one) for one in ids.tolist() if one >= 4)


def numbers(row):
    return joined(np.sort(row.numbers) + 4)


def nouns(one):
    return frozenset((one.words[one.antecedent], one.words[one.other]))


def captions(scene):
    return frozenset((caption_of(scene[2]), caption_of(scene[2][::-1])))


def field(name):
    def key(row):
        value = getattr(row, name)
        return joined(value) if isinstance(value, np.ndarray) else value

    return key


def case(name, key, expected, *counts, **options):
    make = functools.partial(getattr(datasets, name), **options)
    key = field(key) if isinstance(key, str) else key
    counts = counts or (300, 30, 60)
    return pytest.param(make, key, expected, counts, id=f"{name}{[*options]}")


# A generator, what of an example is in one split only (a function or the name
# of a field), the digest of three splits, and numbers of examples.
GENERATORS = [
    case("make_aligned_pairs", "source", "d54a82574c8bdb0f"),
    case("make_comparison_task", numbers, "7ff5fdda227f373f"),
    case("make_copy_task", "labels", "5a615a9b6be7600f", **SYMBOLS),
    case("make_dialogues", lambda row: row[0].lower(), "e57bb5783c9547bd"),
    case("make_digit_audio", "speaker", "b95205b04ca266e5", 40, 10, 20, **TWO),
    case("make_disfluent_questions", "context", "8e169683e360c247"),
    case("make_documents", tuple, "832a94db62e397cc"),
    case("make_entailment_pairs", "premise", "362a1fb18f20d8e1"),
    case("make_labeled_sentences", "text", "3a8def7a39366a78"),
    case("make_lookup_task", "tokens", "2ea2690a57c67675", num_pairs=5),
    case("make_misspellings", "right", "a8b3b0bca776e6bf"),
    case("make_morse_audio", "text", "d36ddc0c0e9174c7", 20, 5, 10),
    case("make_pronoun_sentences", nouns, "eaa39b6927508e0c"),
    case("make_questions", "context", "c2c70a733afce535"),
    case("make_recall_task", "tokens", "cbbfd26d559baa98", length=12),
    case("make_reversal_task", "labels", "3b1c47661e7bc8d7", **SYMBOLS),
    case("make_scenes", captions, "17dde64c0087d300", 60, 20, 40),
    case("make_sentence_pairs", lambda pair: pair[:2], "d983aba2972e0e8c"),
    case("make_sorting_task", "labels", "3f1962b299e4942f", **SYMBOLS),
    case("make_sorting_task", "labels", "58774e0d98f5fb5f", **MASKED),
    case("make_tagged_sentences", "words", "50b3fcb52c1702f5"),
    case("make_tagged_sentences", "words", "16362be80b6db6de", tags="roles"),
    # Several sources may have the same translation.
    case("make_translation_pairs", "target", "f36baedc2f10036f"),
]
# Their splits follow the rule of `split_by_hash`.
SEQUENCES = "comparison", "copy", "lookup", "recall", "reversal", "sorting"
HASHED = {"make_morse_audio", *(f"make_{name}_task" for name in SEQUENCES)}
# They may draw an example again.
REPEATED = {*HASHED, "make_pronoun_sentences"}


def rows(data):
    """The examples, also of data sets that are tuples of columns."""
    if isinstance(data, list):
        return data
    return [type(data)(*row) for row in zip(*data, strict=True)]


# Each run has another PYTHONHASHSEED than the one that stored the digests.
@pytest.mark.parametrize(("make", "key", "expected", "counts"), GENERATORS)
def test_a_generator(make, key, expected, counts):
    name = make.func.__name__
    splits = [
        make(count, seed=3, split=split)
        for split, count in zip(SPLITS, counts, strict=True)
    ]
    assert digest(tuple(splits)) == expected
    splits = list(map(rows, splits))
    assert tuple(map(len, splits)) == counts
    assert rows(make(0)) == []
    # More examples begin with the same examples; another seed has others.
    train = list(map(digest, splits[0]))
    assert list(map(digest, rows(make(9, seed=3)))) == train[:9]
    assert len(set(train)) == counts[0] or name in REPEATED
    splits[0] = splits[0] + (others := rows(make(counts[0], seed=4)))
    assert len({*train} & {*map(digest, others)}) < 0.2 * counts[0]
    keys = [set(map(key, split)) for split in splits]
    assert sum(map(len, keys)) == len(set().union(*keys))
    if name in HASHED:
        found = datasets.split_by_hash(list(set().union(*keys)))
        assert list(map(set, found)) == keys


def test_a_stream_has_an_end():
    with pytest.raises(ValueError, match=r"^`n` must be at most 2, .* n=3$"):
        sampling.take_distinct(3, iter([(k % 2, k) for k in range(100_000)]))
    stream = iter([(0, "a"), None, (0, "b"), (1, "c")])
    assert sampling.take_distinct(2, stream) == ["a", "c"]


@pytest.mark.parametrize("parts", [3, 20])
def test_parts_of_a_hash_split(parts):
    pairs = [(f"sentence {n}", f"t{k}") for n in range(600) for k in (0, 1)]
    expected = train, validation, test = [], [], []
    for pair in pairs:
        hashed = hashlib.sha256(pair[0].encode()).digest()
        remainder = int.from_bytes(hashed, "big") % parts
        {0: test, 1: validation}.get(remainder, train).append(pair)
    assert datasets.split_by_hash(pairs, parts=parts) == expected
    assert all(expected)


def test_keys_of_a_hash_split():
    # The part of a text never changes; these are sha256("Go.") and so on.
    texts = ["Go.", "Hi.", "Run!", "Fire!", "a b", "ñ", "\ud800"]
    expected = datasets.split_by_hash(texts)
    assert [len(part) for part in expected] == [6, 1, 0]
    records = [([*text.split(" ")], text) for text in texts]
    for key in (None, lambda record: record[1]):
        parts = datasets.split_by_hash(iter(records), key)
        assert [[text for _, text in part] for part in parts] == list(expected)
    words = datasets.split_by_hash([text.split(" ") for text in texts])
    assert [[" ".join(w) for w in part] for part in words] == list(expected)
    assert datasets.split_by_hash([]) == ([], [], [])


def test_references():
    pairs = [("b", "1"), ("a", "2"), ("b", "3"), ("b", "1"), ("é", "2")]
    expected = ["b", "a", "é"], [["1", "3"], ["2"], ["2"]]
    assert datasets.group_references(pairs) == expected
    assert (
        datasets.group_references(datasets.TranslationPair(*p) for p in pairs)
        == expected
    )
    assert datasets.group_references([]) == ([], [])
    streams = datasets.reference_streams(expected[1])
    assert streams == [("1", "2", "2"), ("3", None, None)]
    assert datasets.reference_streams([]) == []
    # Either reference gives a perfect score.
    texts = ["the cat sat down", "so it goes on"]
    streams = datasets.reference_streams([["one two", texts[0]], [texts[1]]])
    bleu = pytest.importorskip("sacrebleu").corpus_bleu(texts, streams)
    assert bleu.score == pytest.approx(100)


IMAGES = np.ones((4, 8, 8))


def digits(images=IMAGES, count=4, **arguments):
    return {"digits": (images, np.arange(count)), **arguments}


SHORT = {"wpm": 12, "max_seconds": 2.6}
OWN = {"words": ["word"], "split": "test"}
ONE = {"length": 1, "num_symbols": 1, "split": "test"}
# A function, its arguments, and the message. `tests/malformed` has more.
ERRORS = [
    ("check_caption", {"scene": [1, 2], "caption": ""}, "`scene` must be a"),
    ("encode_morse", {"text": "A  B"}, "`text` must be words of letters"),
    ("encode_morse", {"text": "A" * 999, "wpm": 1}, "`text` must take at most"),
    ("make_cluttered_digits", digits(size=7), "`size` must be at least 8, the"),
    ("make_cluttered_digits", {"digits": 1}, "`digits` must be a pair"),
    ("make_cluttered_digits", digits(IMAGES[0]), "`digits` must have images"),
    ("make_cluttered_digits", digits(count=3), "`digits` must have an int"),
    ("make_cluttered_digits", digits(2 * IMAGES), "`digits` must"),
    ("make_copy_task", {"n": 10**7, "length": 99}, "`n` must be at most 26843"),
    ("make_copy_task", ONE, "`split` must be one that has sequences"),
    ("make_misspellings", {"words": []}, "`words` must have at least one word"),
    ("make_misspellings", {"words": ["a", ""]}, "`words` must be a list of"),
    ("make_misspellings", OWN, "`split` must be 'train' with `words`"),
    ("make_morse_audio", SHORT, "`max_seconds` must be at least 2.70"),
    ("make_morse_audio", {"wpm": (20, 10)}, "`wpm` must be a number in [1,"),
    ("make_scenes", {"n": 10**6, "size": 99}, "`n` must be at most 109554"),
    ("make_sorting_task", {"length": 41}, "`length` must be at most `num_sym"),
    ("misspell", {"word": "in"}, "`word` must have at least 3 characters"),
    ("read_lines", {"path": "a", "on_bad_lines": "x"}, "`on_bad_lines` must"),
    ("split_by_hash", {"records": [], "key": "a"}, "`key` must be a callable"),
    ("split_by_hash", {"records": [["a", 1]]}, "`key` must return a str or"),
    ("split_by_hash", {"records": ["a"], "key": len}, "`key` must return a"),
    ("word_stem", {"word": " "}, "`word` must"),
]


@pytest.mark.parametrize(("name", "arguments", "message"), ERRORS)
def test_invalid_arguments_raise(name, arguments, message):
    if name.startswith("make_"):
        arguments = {"n": 1} | arguments
    with pytest.raises(ValueError, match=f"^{re.escape(message)}.*Received: "):
        getattr(datasets, name)(**arguments)
