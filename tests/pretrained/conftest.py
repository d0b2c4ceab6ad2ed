"""Fixtures with transformers models and ours with the same weights."""

import pytest

from keras_attn import pretrained
from tests.pretrained import hugging_face
from tests.pretrained.hugging_face import CASES


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """Returns a function from a case number to their model and ours.

    Ours is always the same model with new weights, so that a search is compiled
    once.
    """
    ours, weights = None, []
    for case in CASES:
        directory = tmp_path_factory.mktemp("marian")
        theirs = hugging_face.talkative(*case)
        theirs.save_pretrained(directory)
        ours = pretrained.load(directory)
        weights.append((theirs, ours.get_weights()))

    def models(number):
        theirs, arrays = weights[number]
        ours.set_weights(arrays)
        return theirs, ours

    return models
