"""Word alignment, against a dictionary."""

import collections

import pytest

from keras_attn.datasets import make_aligned_pairs

pytestmark = pytest.mark.one_backend


def test_aligned_words_translate_each_other():
    translations, sizes = collections.defaultdict(set), collections.Counter()
    for source, target, alignment in make_aligned_pairs(5000):
        words, sizes[source.count(" and ")] = source.split(), 1
        assert sorted(alignment) == list(range(len(words)))
        for word, index in zip(target.split(), alignment, strict=True):
            translations[words[index]].add(word)
    assert set(sizes) == {0, 1, 2}
    assert translations["cat"] == {"gato"}
    assert translations["keys"] == {"llaves"}
    assert translations["red"] == {"rojo", "roja", "rojos", "rojas"}
    assert translations["the"] == {"el", "la", "los", "las"}
    assert translations["my"] == {"mi", "mis"}
    assert translations["and"] == {"y"}
    nouns = [word for word, found in translations.items() if len(found) == 1]
    assert len(nouns) > 40


def test_number_of_phrases():
    pairs = make_aligned_pairs(50, min_phrases=4, max_phrases=5)
    assert {pair.source.count(" and ") for pair in pairs} == {3, 4}
    with pytest.raises(ValueError, match=r"`max_phrases` must be at least 3"):
        make_aligned_pairs(1, min_phrases=3, max_phrases=2)
    with pytest.raises(ValueError, match="`min_phrases` must be"):
        make_aligned_pairs(1, min_phrases=0)


def test_all_single_phrases():
    with pytest.raises(ValueError, match=r"^`n` must be at most") as error:
        make_aligned_pairs(330, split="test", max_phrases=1)
    most = int(str(error.value).split(",")[0].split()[-1])
    pairs = make_aligned_pairs(most, seed=1, split="test", max_phrases=1)
    # 10 % of those that exist.
    assert 230 < len({pair.source for pair in pairs}) == most < 300
