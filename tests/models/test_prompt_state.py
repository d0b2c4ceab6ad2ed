"""`read` and `state`: equal to reading everything again, at less cost."""

import itertools

import numpy as np
import pytest

from keras_attn import decoding, layers, models
from keras_attn.decoding import BeamSearch, RepetitionPenalty, Sampling

FIRST = [[4, 5, 6, 7, 8], [9]]
SECOND = [[3, 4], [5, 6, 7]]
THIRD = [[11, 12, 13], [14]]


def gpt(kind=models.GPT, torch_steps="plain", **options):
    model = kind(
        20,
        num_layers=2,
        num_heads=2,
        hidden_dim=8,
        **{"max_sequence_length": 48, "end_id": 2, **options},
    )
    random = np.random.default_rng(0)
    for weight in model.weights:
        weight.assign(random.normal(size=weight.shape))
    model.torch_steps = torch_steps
    return model


MODELS = {
    "rotary, windows": {
        "position_embedding": None,
        "attention_position": layers.RotaryPosition(),
        "num_key_value_heads": 1,
        "sliding_window": [4, None],
    },
    "learned": {},
    "ALiBi": {
        "position_embedding": None,
        "attention_position": layers.ALiBiPosition(2),
    },
}


def joined(*parts):
    return [[*itertools.chain(*rows)] for rows in zip(*parts, strict=True)]


def best(decoded):
    return [
        row[0, :length].tolist()
        for row, length in zip(
            decoded.tokens, decoded.lengths[:, 0], strict=True
        )
    ]


@pytest.mark.every_backend
@pytest.mark.parametrize("name", MODELS)
def test_turns_equal_one_prompt(name):
    model = gpt(torch_steps="captured", **MODELS[name])
    first = model.read(FIRST)
    strategies = ["greedy"]
    if name == "learned":
        rules = [RepetitionPenalty(1.3)]
        strategies = [BeamSearch(2, 2), Sampling(seed=1, rules=rules)]
    for strategy in strategies:
        turn = model.generate(SECOND, 5, strategy, state=first)
        once = model.generate(joined(FIRST, SECOND), 5, strategy)
        np.testing.assert_array_equal(turn.tokens, once.tokens)
        np.testing.assert_allclose(turn.scores, once.scores, rtol=1e-4)
        so_far = joined(FIRST, SECOND, best(turn))
        assert [row.tolist() for row in turn.state.tokens] == so_far
        turn = model.generate(THIRD, 4, strategy, state=turn.state)
        once = model.generate(joined(so_far, THIRD), 4, strategy)
        np.testing.assert_array_equal(turn.tokens, once.tokens)
        np.testing.assert_allclose(turn.scores, once.scores, rtol=1e-4)
        assert once.state is None


@pytest.mark.one_backend
def test_state_can_be_used_again_and_without_inputs():
    model = gpt()
    state = model.read(SECOND, model.read(FIRST))
    copies = [part.copy() for part in (*state.keys, *state.values)]
    once = model.generate(joined(FIRST, SECOND), 4)
    for _ in range(2):
        found = model.generate(max_new_tokens=4, state=state)
        np.testing.assert_array_equal(found.tokens, once.tokens)
    for before, after in zip(copies, (*state.keys, *state.values), strict=True):
        np.testing.assert_array_equal(before, after)
    *_, last = model.stream(max_new_tokens=4, state=state)
    np.testing.assert_array_equal(last.tokens, once.tokens)
    found = model.generate(max_new_tokens=4, state=state, batch_size=1)
    np.testing.assert_array_equal(found.tokens, once.tokens)


class Counted(models.GPT):
    """Records how many tokens it reads in each call, padding included."""

    calls = ()

    def _decode_tokens(self, tokens, *args, **kwargs):
        self.calls = (*self.calls, tokens.shape[1])
        return super()._decode_tokens(tokens, *args, **kwargs)


@pytest.mark.one_backend
def test_turn_computes_its_new_tokens_only():
    model = gpt(Counted, max_sequence_length=200, end_id=None)
    long = [list(range(3, 20)) * 6]
    state = model.read(long)
    assert model.calls == (200,)
    model.calls = ()
    turn = model.generate([[4, 5, 6]], 4, state=state)
    # The turn in a chunk of 16, then one token per step.
    assert model.calls[0] == 16
    assert set(model.calls[1:]) == {1}
    assert len(model.calls) <= 5
    model.calls = ()
    model.generate([[7]], 4, state=turn.state)
    # The answer and the next turn, then one token per step.
    assert model.calls[:1] == (16,)
    assert set(model.calls[1:]) <= {1}
    model.calls = ()
    model.generate([long[0] + [4, 5, 6]], 4)
    assert max(model.calls) > 100


@pytest.mark.one_backend
def test_half_precision():
    model = gpt(dtype="mixed_bfloat16")
    turn = model.generate(SECOND, 4, state=model.read(FIRST))
    once = model.generate(joined(FIRST, SECOND), 4)
    np.testing.assert_array_equal(turn.tokens, once.tokens)


@pytest.mark.one_backend
def test_bad_arguments():
    model = gpt()
    state = model.read(FIRST)
    with pytest.raises(ValueError, match="`inputs` must have the 2 rows of"):
        model.read([[3]], state)
    with pytest.raises(ValueError, match="`inputs` must not exceed the posit"):
        model.read([[3] * 44, [4]], state)
    with pytest.raises(ValueError, match="`inputs` and `max_new_tokens` toge"):
        model.generate([[3] * 40, [4]], 9, state=state)
    with pytest.raises(ValueError, match="`state` must be a `PromptState`"):
        model.generate(SECOND, 3, state=3)
    with pytest.raises(ValueError, match="`state` must be of a model with the"):
        gpt(num_key_value_heads=1).read(SECOND, state)
    with pytest.raises(ValueError, match="`inputs` must be"):
        model.generate()
    scaling = {
        "rope_type": "dynamic",
        "factor": 2.0,
        "original_max_position_embeddings": 16,
    }
    position = layers.RotaryPosition(scaling=scaling)
    grows = gpt(position_embedding=None, attention_position=position)
    with pytest.raises(ValueError, match="`state` needs positions that do not"):
        grows.read(FIRST)
    other = models.TransformerXL(
        20, num_layers=1, num_heads=1, hidden_dim=4, memory_length=4
    )
    with pytest.raises(ValueError, match="`state` needs a model with `read`"):
        other.generate(SECOND, 3, state=state)
    assert decoding.Decoded(None, None, None).state is None
