"""Our models pass `check_generative_model`; wrong ones fail the right check."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_attn import models
from keras_attn.testing import (
    GENERATIVE_MODEL_CHECKS,
    CheckFailure,
    check_generative_model,
)
from tests.helpers.cases import once
from tests.test_host_reads import FRAMES, IMAGES, SIZES

NOT_IDS = ("padding_invariance", "fully_masked_rows")


def gpt(kind=models.GPT, **arguments):
    return kind(11, max_sequence_length=8, **(SIZES | arguments))


def left_to_right(model, inputs, tokens):
    """A full pass of `XLNet` whose order is that of the text."""
    before = inputs.shape[1] - 1
    ids = ops.concatenate([inputs[:, :before], tokens], axis=1)
    # The last position is predicted, and no other sees its token.
    ids = ops.pad(ids, ((0, 0), (0, 1)), constant_values=5)
    order = ops.zeros_like(ids) + ops.arange(ids.shape[1], dtype="int32")
    parts = {
        "token_ids": ids,
        "order": order,
        "target_positions": order[:, before + 1 :],
    }
    return model(parts, training=False)


MODELS = {
    "GPT": (gpt, {}, ()),
    "Transformer": (lambda: models.Transformer(11, **SIZES), {}, ()),
    "RecurrentSeq2Seq": (
        lambda: models.RecurrentSeq2Seq(11, hidden_dim=8, num_layers=1),
        {},
        (),
    ),
    "TransformerXL": (
        lambda: models.TransformerXL(11, memory_length=2, **SIZES),
        {},
        (),
    ),
    "XLNet": (
        lambda: models.XLNet(11, memory_length=2, **SIZES),
        {"full_pass": left_to_right},
        ("fully_masked_rows",),
    ),
    "SpeechTransformer": (
        lambda: models.SpeechTransformer(
            11, 5, 2, num_decoder_layers=1, **SIZES
        ),
        {"inputs": FRAMES},
        NOT_IDS,
    ),
    "ImageCaptioner": (
        lambda: models.ImageCaptioner(11, (5, 6, 3), hidden_dim=8, filters=2),
        {"inputs": IMAGES},
        NOT_IDS,
    ),
}
first, *others = MODELS


@pytest.mark.every_backend
@pytest.mark.parametrize("name", [first, *once(others)])
def test_our_models_pass(name):
    make, arguments, without = MODELS[name]
    ran = check_generative_model(make(), **arguments)
    assert ran == tuple(n for n in GENERATIVE_MODEL_CHECKS if n not in without)


class WrongGPT(models.GPT):
    """A language model of which subclasses replace a part."""

    def call(self, inputs, training=None):
        return super().call(inputs, training=training)


class AveragesTheBatch(WrongGPT):
    def call(self, inputs, training=None):
        logits = super().call(inputs, training=training)
        return logits - ops.mean(logits, axis=0)


class SeesTheFuture(WrongGPT):
    def call(self, inputs, training=None):
        logits = super().call(inputs, training=training)
        return logits + ops.mean(logits, axis=1, keepdims=True)


class ForgetsThePrompt(WrongGPT):
    def start_decoding(self, inputs, max_new_tokens):
        return super().start_decoding(inputs[:, -1:], max_new_tokens)


class KeepsItsState(WrongGPT):
    """The state is an attribute instead of the argument."""

    def start_decoding(self, inputs, max_new_tokens):
        state = super().start_decoding(inputs, max_new_tokens)
        self.kept = [state]
        return state._replace(hypothesis=inputs)

    def decode_step(self, tokens, state):
        logits, kept = super().decode_step(tokens, self.kept[0])
        self.kept[0] = kept
        return logits, state


class CountsPadding(WrongGPT):
    def start_decoding(self, inputs, max_new_tokens):
        inputs = ops.where(inputs == self.pad_id, 5, inputs)
        return super().start_decoding(inputs, max_new_tokens)


class ReadsTokens(WrongGPT):
    def decode_step(self, tokens, state):
        logits, state = super().decode_step(tokens, state)
        if int(ops.max(tokens)) == self.end_id:
            return 0 * logits, state
        return logits, state


class PromisesOtherLogits(WrongGPT):
    def compute_output_spec(self, inputs, training=None):
        return keras.KerasTensor((*inputs.shape, 7), dtype=self.compute_dtype)


WRONG = {
    AveragesTheBatch: ("batch_invariance", (2, 1), (2, 1)),
    SeesTheFuture: ("causality", (1, 1), (1, 2)),
    ForgetsThePrompt: ("cached_decoding", (1, 2), (1, 1)),
    KeepsItsState: ("beam_reordering", (1, 1), (1, 1)),
    CountsPadding: ("padding_invariance", (1, 1), (1, 1)),
    PromisesOtherLogits: ("symbolic_shapes", (1, 1), (1, 1)),
    ReadsTokens: ("host_reads", (1, 1), (1, 1)),
}


# No wrong model is for these.
SLOW = ("serialization", "dtype_policies")


@pytest.mark.parametrize("kind", WRONG)
def test_a_wrong_model_fails_its_check(kind):
    name, inputs, tokens = WRONG[kind]
    with pytest.raises(CheckFailure) as caught:
        check_generative_model(gpt(kind), except_for=SLOW)
    assert caught.value.check == name
    assert caught.value.shapes == {"inputs": inputs, "tokens": tokens}


def test_a_compiled_search_is_compared_with_full_passes(monkeypatch):
    """The weights of the search are not those of the model."""
    model = gpt()
    prepare = model.prepare_weights

    def others():
        return keras.tree.map_structure(lambda x: 1 - x, prepare())

    monkeypatch.setattr(model, "prepare_weights", others)
    with pytest.raises(CheckFailure) as caught:
        check_generative_model(model, except_for=("cached_decoding",))
    assert caught.value.check == "greedy_search"
    with pytest.raises(CheckFailure, match="`prepare_weights` must equal"):
        check_generative_model(model, only=("cached_decoding",))


def test_arguments():
    with pytest.raises(ValueError, match="without `start_decoding`"):
        check_generative_model(keras.Sequential())
    with pytest.raises(ValueError, match=r"`inputs` must .* 2 or more"):
        check_generative_model(gpt(), inputs=np.ones((1, 3)))
