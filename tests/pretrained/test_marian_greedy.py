"""Greedy search of Marian models against `generate` of transformers."""

import numpy as np
import pytest

from keras_attn import pretrained
from keras_attn.decoding import BeamSearch
from tests.pretrained import hugging_face
from tests.pretrained.hugging_face import CASES, END, LENGTH, PAD, SOURCES


@pytest.mark.every_backend
@pytest.mark.parametrize("number", range(len(CASES)))
def test_same_tokens_and_scores(number, models):
    theirs, ours = models(number)
    expected, result = hugging_face.generated(
        theirs, num_beams=1, do_sample=False
    )
    found = ours.generate(SOURCES, max_new_tokens=LENGTH)
    np.testing.assert_array_equal(found.tokens, expected)
    logits = np.stack(result.logits, axis=1).astype("float64")
    log_probs = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    steps = expected[:, 0, : logits.shape[1]]
    gained = np.take_along_axis(log_probs, steps[..., None], -1)[..., 0]
    scores = np.where(steps == PAD, 0, gained).sum(-1)
    np.testing.assert_allclose(found.scores[:, 0], scores, atol=1e-3)
    np.testing.assert_array_equal(found.lengths, (expected != PAD).sum(-1))
    assert len(set(found.lengths[:, 0])) > 2


@pytest.mark.every_backend
@pytest.mark.parametrize("beams", [1, 3])
def test_unequal_stacks(beams, tmp_path):
    sizes = {"decoder_attention_heads": 4, "decoder_ffn_dim": 20}
    theirs = hugging_face.talkative(
        6, 0.25, 0.5, 1.0, decoder_layers=1, **sizes
    )
    theirs.save_pretrained(tmp_path)
    ours = pretrained.load(tmp_path)
    expected, _ = hugging_face.generated(
        theirs, num_beams=beams, do_sample=False, length_penalty=0.0
    )
    strategy = BeamSearch(beams, length_penalty=0)
    found = ours.generate(SOURCES, LENGTH, strategy)
    np.testing.assert_array_equal(found.tokens, expected)
    assert len(set(found.lengths[:, 0])) > 2


def test_only_transformers_forces_an_end_token(models):
    theirs, ours = models(0)
    forced, _ = hugging_face.generated(
        theirs, num_beams=1, do_sample=False, forced_eos_token_id=END
    )
    found = ours.generate(SOURCES, max_new_tokens=LENGTH).tokens
    cut = (found != END).all(-1)
    assert cut.any() and not cut.all()
    np.testing.assert_array_equal(found[~cut], forced[~cut])
    np.testing.assert_array_equal(found[cut][:, :-1], forced[cut][:, :-1])
    assert (forced[cut][:, -1] == END).all()
