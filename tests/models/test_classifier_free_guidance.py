"""ClassifierFreeGuidance against transformers and a search with lists."""

import functools

import keras
import numpy as np
import pytest
from keras import ops

from keras_attn import pretrained
from keras_attn.decoding import BeamSearch, GreedySearch, loop
from keras_attn.models import GPT, ClassifierFreeGuidance, TransformerXL
from tests.helpers.cases import once
from tests.helpers.decoding_reference import assert_equals, beam_search

torch = pytest.importorskip("torch")

import transformers
from transformers.generation import logits_process

SIZE, END = 17, 16
PROMPTS = [[5, 6, 7, 8, 2], [9, 4, 3], [1]]
NEGATIVE = [[3, 3], [7, 2, 8, 5, 4, 1], [6]]
SIZES = {"num_layers": 1, "num_heads": 2, "hidden_dim": 8}


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    """A GPT-2 of transformers with random weights, and ours."""
    config = transformers.GPT2Config(
        vocab_size=SIZE,
        n_embd=8,
        n_layer=1,
        n_head=2,
        n_positions=16,
        bos_token_id=END,
        eos_token_id=END,
        pad_token_id=None,
    )
    theirs = transformers.GPT2LMHeadModel(config).eval()
    draw = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for name, tensor in theirs.named_parameters():
            tensor.normal_(std=0.4, generator=draw)
            if "ln_" in name and "weight" in name:
                tensor.add_(1.0)
        matrix = theirs.transformer.wte.weight.mul_(3)
        theirs.transformer.ln_f.bias.add_(0.2 * matrix[END])
    directory = tmp_path_factory.mktemp("gpt2")
    theirs.save_pretrained(directory)
    return theirs, pretrained.load(directory)


def guided_inputs(prompts, negative):
    return {"inputs": prompts, "negative_prompt_ids": negative}


@pytest.mark.every_backend
@pytest.mark.parametrize("scale", [2.5, *once([0.5])])
def test_scores_equal_the_processor(pair, scale):
    theirs, ours = pair
    prompts = np.array([[5, 6, 7, 8, 2], [9, 4, 3, 1, 1]], "int32")
    negative = np.array([[3, 3], [7, 2]], "int32")
    added = np.array([[4, 9, 2], [11, 12, 0]], "int32")
    processor = logits_process.UnbatchedClassifierFreeGuidanceLogitsProcessor(
        scale, theirs, torch.from_numpy(negative).long()
    )
    model = ClassifierFreeGuidance(ours, scale)
    state = model.start_decoding(guided_inputs(prompts, negative), 4)
    tokens, so_far = state.tokens, torch.from_numpy(prompts).long()
    for step in range(4):
        scores, state = model.decode_step(tokens, state)
        with torch.no_grad():
            logits = theirs(so_far).logits[:, -1]
            expected = processor(so_far, logits)
        np.testing.assert_allclose(
            ops.convert_to_numpy(scores)[:, 0], expected, rtol=1e-4, atol=1e-4
        )
        if step < 3:
            column = added[:, step : step + 1]
            tokens = ops.convert_to_tensor(column)
            so_far = torch.cat([so_far, torch.from_numpy(column).long()], 1)


@pytest.mark.parametrize("negative", [NEGATIVE, *once([None])])
@pytest.mark.every_backend
def test_greedy_search_equals_theirs(pair, negative):
    theirs, ours = pair
    model = ClassifierFreeGuidance(ours, 2.0)
    inputs = PROMPTS if negative is None else guided_inputs(PROMPTS, negative)
    found = model.generate(inputs, 6).tokens[:, 0]
    plain = ours.generate(PROMPTS, 6).tokens[:, 0]
    expected = np.full_like(found, END)
    for row, prompt in enumerate(PROMPTS):
        given = negative and torch.tensor([negative[row]])
        tokens = theirs.generate(
            input_ids=torch.tensor([prompt]),
            attention_mask=torch.ones((1, len(prompt)), dtype=torch.long),
            max_new_tokens=6,
            pad_token_id=END,
            do_sample=False,
            guidance_scale=2.0,
            negative_prompt_ids=given,
        )[0, len(prompt) :]
        expected[row, : len(tokens)] = tokens
    np.testing.assert_array_equal(found, expected)
    assert (found != plain).any()


def log_softmax(logits):
    logits = np.asarray(logits, "float64")
    logits = logits - logits.max()
    return logits - np.log(np.exp(logits).sum())


@pytest.mark.one_backend
def test_beam_search_equals_a_search_with_lists(pair):
    _, ours = pair
    model = ClassifierFreeGuidance(ours, 2.0)
    strategy = BeamSearch(3, 2, 0.0)
    found = model.generate(guided_inputs(PROMPTS, NEGATIVE), 4, strategy)

    @functools.cache
    def log_probs(row, tokens):
        parts = [
            log_softmax(
                ops.convert_to_numpy(ours(np.array([[*prompt[row], *tokens]])))[
                    0, -1
                ]
            )
            for prompt in (PROMPTS, NEGATIVE)
        ]
        return log_softmax(parts[1] + 2.0 * (parts[0] - parts[1]))

    expected = [
        beam_search(
            lambda tokens, row=row: log_probs(row, tuple(tokens)),
            lambda tokens: range(SIZE),
            *(4, END, 3, 2),
        )
        for row in range(len(PROMPTS))
    ]
    assert_equals(found, expected, pad_id=END)


@pytest.fixture(scope="module")
def xl():
    keras.utils.set_random_seed(0)
    model = TransformerXL(12, memory_length=4, intermediate_dim=8, **SIZES)
    for variable in model.trainable_variables:
        variable.assign(variable + 0.3 * keras.random.normal(variable.shape))
    return model


@pytest.mark.one_backend
@pytest.mark.parametrize("scale", [1, 0])
def test_scales_that_leave_one_of_the_prompts(xl, scale):
    model = ClassifierFreeGuidance(xl, scale)
    prompts = [[5, 6, 7], [4, 8, 9, 10]]
    strategy = BeamSearch(3, 2)
    found = model.generate(guided_inputs(prompts, [[9]]), 5, strategy)
    plain = xl.generate(prompts if scale else [[9], [9]], 5, strategy)
    np.testing.assert_array_equal(found.tokens, plain.tokens)
    np.testing.assert_allclose(found.scores, plain.scores, rtol=1e-4)


@pytest.mark.one_backend
def test_slots_are_added(xl, monkeypatch):
    model = ClassifierFreeGuidance(xl, 1.7)
    inputs = guided_inputs([[5, 6, 7], [4]], [[9, 8]])
    expected = model.generate(inputs, 5, "beam")
    monkeypatch.setattr(loop, "FIRST_LENGTH", 2)
    found = ClassifierFreeGuidance(xl, 1.7).generate(inputs, 5, "beam")
    np.testing.assert_array_equal(found.tokens, expected.tokens)
    np.testing.assert_allclose(found.scores, expected.scores, rtol=1e-5)


@pytest.mark.one_backend
def test_a_program_reads_the_scale(xl):
    model = ClassifierFreeGuidance(xl, 1.0)
    inputs = guided_inputs([[5, 6, 7]], [[9, 8]])
    first = model.generate(inputs, 5).scores
    model.guidance_scale = 3.0
    assert (model.generate(inputs, 5).scores != first).all()
    *_, last = model.stream(inputs, 5)
    np.testing.assert_allclose(last.scores, model.generate(inputs, 5).scores)
    assert model.variables and len(model.variables) == len(xl.variables)


@pytest.mark.one_backend
def test_invalid_arguments_raise(xl):
    model = ClassifierFreeGuidance(xl)
    for inputs, message in (
        (guided_inputs([[5], [6], [7]], [[3], [4]]), "`negative_prompt_ids` m"),
        ({"negative_prompt_ids": [[3]]}, "`inputs` must be a dict of inputs"),
        (guided_inputs([[5]], [[99]]), "must lie in"),
    ):
        with pytest.raises(ValueError, match=message):
            model.generate(inputs, 2)
    with pytest.raises(ValueError, match="`model` must be a `GPT`"):
        ClassifierFreeGuidance(GreedySearch())
    with pytest.raises(ValueError, match="`guidance_scale` must"):
        ClassifierFreeGuidance(xl, "a")
    gpt = GPT(12, max_sequence_length=8, intermediate_dim=8, **SIZES)
    with pytest.raises(ValueError, match=r"8 rows. Received: 6 tokens"):
        ClassifierFreeGuidance(gpt).generate(
            guided_inputs([[5]], [[4, 4, 4, 4, 4, 4]]), 4
        )


@pytest.mark.one_backend
def test_saved_and_loaded(xl, tmp_path):
    model = ClassifierFreeGuidance(xl, 1.7)
    model.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    assert again.guidance_scale == 1.7
    inputs = guided_inputs([[5, 6, 7], [4]], [[9, 8], [3]])
    found, expected = again.generate(inputs, 4), model.generate(inputs, 4)
    np.testing.assert_array_equal(found.tokens, expected.tokens)
    np.testing.assert_allclose(found.scores, expected.scores, rtol=1e-6)
