"""Hidden states, logit lens and patches.

tests/pretrained/test_hidden_states.py compares them with transformers.
"""

import keras
import numpy as np
import pytest

from keras_attn.explain import hidden_states, logit_lens, patch
from keras_attn.models import (
    GPT,
    Bert,
    BertPretrainer,
    Encoder,
    SequenceClassifier,
    TokenClassifier,
    Transformer,
    TransformerXL,
    VisionTransformer,
    XLNet,
)

SIZE = 17
IDS = np.array([[5, 6, 7, 8, 2], [9, 4, 3, 15, 1]], "int32")
PAIR = IDS, IDS[:, 1:4]


def score(logits):
    return logits[:, -1, 3] - logits[:, -1, 5]


def small(kind, *arguments, **options):
    keras.utils.set_random_seed(0)
    sizes = {"num_layers": 2, "num_heads": 2, "hidden_dim": 8}
    model = kind(*arguments, **(sizes | {"intermediate_dim": 12} | options))
    draw = np.random.default_rng(0)
    model.set_weights([draw.normal(0, 0.5, x.shape) for x in model.weights])
    return model


def to_numpy(tensor):
    return keras.ops.convert_to_numpy(tensor)


ENCODERS = {
    "pre-norm": (lambda: small(Encoder, SIZE, normalize_first=True), IDS),
    "shared": (lambda: small(Encoder, SIZE, share_blocks=True), IDS),
    "projected": (lambda: small(Encoder, SIZE, embedding_dim=4), IDS),
    "images": (
        lambda: small(VisionTransformer, (4, 4, 3), patch_size=2),
        np.random.default_rng(0).normal(size=(2, 4, 4, 3)).astype("float32"),
    ),
}


@pytest.mark.parametrize("name", ENCODERS)
def test_last_state_is_the_output(name):
    make, inputs = ENCODERS[name]
    model = make()
    states = hidden_states(model, inputs)
    assert len(states) == 3
    # Each block of ours, called alone, turns a state into the next one.
    x = keras.ops.convert_to_tensor(states[0])
    for number in range(2):
        x = model._blocks[number % len(model._blocks)](x)
        if number == 0:
            np.testing.assert_allclose(states[1], to_numpy(x), atol=1e-5)
    expected, _ = model.encode(inputs)
    np.testing.assert_allclose(states[-1], to_numpy(expected), atol=1e-5)


def test_states_of_transformer_xl_are_its_memory():
    model = small(TransformerXL, SIZE, memory_length=5)
    _, memory = model.advance(IDS)
    states = hidden_states(model, IDS)
    for state, reference in zip(states[:-1], memory.states, strict=True):
        np.testing.assert_allclose(state, to_numpy(reference), atol=1e-5)
    np.testing.assert_allclose(
        logit_lens(model, IDS)[-1], to_numpy(model(IDS)), atol=1e-5
    )


def test_models_with_a_head():
    encoder = small(Encoder, SIZE, normalize_first=True)
    model = TokenClassifier(encoder, 4)
    logits = logit_lens(model, IDS)
    assert logits.shape == (3, *IDS.shape, 4)
    np.testing.assert_allclose(logits[-1], to_numpy(model(IDS)), atol=1e-5)
    for one, other in zip(
        hidden_states(model, IDS), hidden_states(encoder, IDS), strict=True
    ):
        np.testing.assert_array_equal(one, other)
    model = SequenceClassifier(encoder, 3)
    corrupted = IDS[:1].copy()
    corrupted[0, 2] = 11
    found = patch(model, IDS[:1], corrupted, lambda x: x[:, 1])
    # The class is read at the first token.
    np.testing.assert_allclose(found.restored[2], [1, 0, 0, 0, 0], atol=1e-3)


def test_default_score_is_the_logit_difference():
    # An untrained model with tied embeddings predicts the last token again.
    keras.utils.set_random_seed(0)
    sizes = {"num_layers": 2, "num_heads": 2, "hidden_dim": 8}
    model = GPT(SIZE, max_sequence_length=8, **sizes)
    clean, corrupted = IDS[:1], IDS[1:]
    ends = [to_numpy(model(ids))[0, -1] for ids in (clean, corrupted)]
    right, wrong = (end.argmax() for end in ends)
    assert right != wrong
    found = patch(model, clean, corrupted)
    for number, end in zip(found[1:], ends, strict=True):
        np.testing.assert_allclose(number, end[right] - end[wrong], rtol=1e-4)
    # The state of the last position decides at the last layer.
    np.testing.assert_allclose(found.restored[-1], [0, 0, 0, 0, 1], atol=1e-4)
    with pytest.raises(ValueError, match="`score` must be given if the most"):
        patch(model, clean, clean)
    with pytest.raises(ValueError, match="different scores"):
        _ = patch(model, clean, clean, score).restored


def test_half_precision_and_soft_cap():
    model = small(
        GPT,
        SIZE,
        max_sequence_length=8,
        logits_soft_cap=2.0,
        dtype="mixed_bfloat16",
    )
    before = model.get_weights()
    logits = logit_lens(model, IDS)
    expected = keras.ops.cast(model(IDS), "float32")
    np.testing.assert_array_equal(logits[-1], to_numpy(expected))
    found = patch(model, IDS[:1], IDS[1:], score, batch_size=4)
    assert np.isfinite(found.scores).all()
    for old, new in zip(before, model.get_weights(), strict=True):
        np.testing.assert_array_equal(old, new)


def test_padding_does_not_restore_anything():
    model = small(Encoder, SIZE)
    mask = np.array([[True, True, True, True, False]])
    clean, corrupted = (
        {"token_ids": ids, "padding_mask": mask} for ids in (IDS[:1], IDS[1:])
    )
    found = patch(model, clean, corrupted, lambda outputs: outputs[:, 0, 3])
    np.testing.assert_allclose(found.restored[:, 4], 0, atol=1e-4)
    assert abs(found.restored[0, 1]) > 1e-3


def test_other_models_and_arguments_raise():
    encoder = small(Encoder, SIZE)
    transformer = small(Transformer, SIZE, max_sequence_length=8)
    xlnet = XLNet(SIZE, num_layers=1, num_heads=2, hidden_dim=8)
    one = IDS[:1]
    for function in (hidden_states, logit_lens):
        with pytest.raises(ValueError, match=r"`model`.*: XLNet"):
            function(xlnet, IDS)
        with pytest.raises(ValueError, match=r"`inputs` .*: inputs=None"):
            function(transformer, None)
    with pytest.raises(ValueError, match=r"`stack` .*'encoder' for Encoder"):
        hidden_states(encoder, IDS, stack="encoder")
    with pytest.raises(ValueError, match=r"`stack` .*both"):
        hidden_states(transformer, PAIR, stack="both")
    for model in (
        encoder,
        SequenceClassifier(encoder, 2),
        BertPretrainer(small(Bert, SIZE), masked_lm=False),
    ):
        with pytest.raises(ValueError, match="`model` must have logits"):
            logit_lens(model, IDS)
    for clean, corrupted, message in (
        (IDS, IDS, r"`clean` must be one sequence.*\(2, 5\)"),
        (one, one[:, :3], "`corrupted` must have the structure and shapes"),
        (one, {"token_ids": one}, "`corrupted` must have the structure"),
        (None, one, "`clean` must be inputs"),
    ):
        with pytest.raises(ValueError, match=message):
            patch(encoder, clean, corrupted, score)
    for options, message in (
        ({"score": 3}, "`score` must be callable"),
        ({"score": lambda outputs: outputs}, "number for each of 1 rows"),
        ({}, "`score` must be given for a model"),
        ({"score": score, "batch_size": 0}, "`batch_size`"),
    ):
        with pytest.raises(ValueError, match=message):
            patch(encoder, one, one, **options)
