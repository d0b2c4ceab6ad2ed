"""What all generators of text have in common."""

import functools

import pytest

from keras_attn import datasets
from keras_attn.datasets import sampling
from tests.helpers.digest import digest

pytestmark = pytest.mark.one_backend


def case(name, key, expected, **options):
    function = functools.partial(getattr(datasets, name), **options)
    return pytest.param(function, key, expected, id=f"{name}{options or ''}")


# The key is what is in one split only.
GENERATORS = [
    case("make_aligned_pairs", lambda pair: pair.source, "d54a82574c8bdb0f"),
    case("make_dialogues", lambda turn: turn.text.lower(), "e57bb5783c9547bd"),
    case(
        "make_disfluent_questions", lambda one: one.context, "8e169683e360c247"
    ),
    case("make_documents", tuple, "832a94db62e397cc"),
    case(
        "make_entailment_pairs", lambda pair: pair.premise, "362a1fb18f20d8e1"
    ),
    case(
        "make_labeled_sentences",
        lambda sentence: sentence.text,
        "3a8def7a39366a78",
    ),
    case(
        "make_questions", lambda question: question.context, "c2c70a733afce535"
    ),
    case("make_sentence_pairs", lambda pair: pair[:2], "d983aba2972e0e8c"),
    case("make_tagged_sentences", lambda one: one.words, "50b3fcb52c1702f5"),
    case(
        "make_tagged_sentences",
        lambda one: one.words,
        "16362be80b6db6de",
        tags="roles",
    ),
    # Several sources may have the same translation.
    case(
        "make_translation_pairs", lambda pair: pair.target, "f36baedc2f10036f"
    ),
]


# Each run has another PYTHONHASHSEED than the one that stored the digests.
@pytest.mark.parametrize(("make", "key", "expected"), GENERATORS)
def test_a_generator(make, key, expected):
    train, validation, test = (
        make(count, seed=3, split=split)
        for split, count in (("train", 300), ("validation", 30), ("test", 60))
    )
    assert digest((train, validation, test)) == expected
    assert [len(train), len(validation), len(test)] == [300, 30, 60]
    examples = [repr(example) for example in train]
    assert len(set(examples)) == 300
    assert make(40, seed=3) == train[:40]
    assert make(0) == []
    others = make(300, seed=4)
    assert sum(repr(example) in examples for example in others) < 60
    seen = {key(example) for example in train + others}
    held_out = {key(example) for example in validation}
    assert seen.isdisjoint(held_out)
    assert (seen | held_out).isdisjoint(map(key, test))
    for name, value in (("n", -1), ("seed", -1), ("split", "dev")):
        with pytest.raises(ValueError, match=f"^`{name}` must be .* Received:"):
            make(**{"n": 1, name: value})


def test_a_stream_has_an_end():
    with pytest.raises(ValueError, match=r"^`n` must be at most 2, .* n=3$"):
        sampling.take_distinct(3, iter([(k % 2, k) for k in range(100_000)]))
    assert sampling.take_distinct(
        2, iter([(0, "a"), None, (0, "b"), (1, "c")])
    ) == ["a", "c"]
