"""All translations of each source."""

import pytest

from keras_attn.datasets import TranslationPair, group_references

pytestmark = pytest.mark.one_backend


def test_references():
    pairs = [("b", "1"), ("a", "2"), ("b", "3"), ("b", "1"), ("é", "2")]
    expected = ["b", "a", "é"], [["1", "3"], ["2"], ["2"]]
    assert group_references(pairs) == expected
    assert group_references(TranslationPair(*p) for p in pairs) == expected
    assert group_references([]) == ([], [])
