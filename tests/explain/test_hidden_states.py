"""Hidden states, logit lens and patching against transformers and by hand."""

import keras
import numpy as np
import pytest

from keras_attn import pretrained
from keras_attn.explain import hidden_states, logit_lens, patch
from keras_attn.models import GPT, Bert, Encoder, Transformer

SIZE = 17
IDS = np.array([[5, 6, 7, 8, 2], [9, 4, 3, 15, 1]], "int32")


def theirs(kind, config, folder):
    """Returns a transformers model, ours with its weights, and its states."""
    torch = pytest.importorskip("torch")
    import transformers

    model = getattr(transformers, f"{kind}Model")(
        getattr(transformers, f"{kind}Config")(vocab_size=SIZE, **config)
    ).eval()
    draw = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for tensor in model.state_dict().values():
            tensor.normal_(std=0.4, generator=draw)
        outputs = model(torch.from_numpy(IDS).long(), output_hidden_states=True)
    model.save_pretrained(folder)
    states = [state.numpy() for state in outputs.hidden_states]
    return model, pretrained.load(folder), states


GPT2 = {
    "n_embd": 8,
    "n_layer": 2,
    "n_head": 2,
    "n_positions": 8,
    "bos_token_id": 16,
    "eos_token_id": 16,
}
BERT = {
    "hidden_size": 8,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 12,
    "max_position_embeddings": 8,
}


@pytest.mark.every_backend
@pytest.mark.parametrize(
    ("kind", "config"), [("GPT2", GPT2), ("Bert", BERT)], ids=["gpt2", "bert"]
)
def test_states_equal_output_hidden_states(kind, config, tmp_path):
    model, ours, expected = theirs(kind, config, tmp_path)
    ours = getattr(ours, "encoder", ours)
    found = hidden_states(ours, IDS)
    assert len(found) == len(expected) == 3
    for state, reference in zip(found, expected, strict=True):
        np.testing.assert_allclose(state, reference, atol=1e-5)
    if kind == "GPT2":
        # Their last state is normalized already, the others are not.
        import torch

        with torch.no_grad():
            normalized = [model.ln_f(torch.tensor(x)) for x in expected[:-1]]
        normalized = [*(x.numpy() for x in normalized), expected[-1]]
        logits = np.stack(normalized) @ model.wte.weight.detach().numpy().T
        np.testing.assert_allclose(logit_lens(ours, IDS), logits, atol=1e-4)


def small(kind, **options):
    keras.utils.set_random_seed(0)
    options = {"hidden_dim": 8, "intermediate_dim": 12} | options
    model = kind(SIZE, num_layers=2, num_heads=2, **options)
    draw = np.random.default_rng(0)
    model.set_weights([draw.normal(0, 0.5, x.shape) for x in model.weights])
    return model


def last(outputs):
    if isinstance(outputs, dict):
        outputs = outputs["sequence_output"]
    return outputs[:, -1, 3]


MODELS = {
    "gpt": (GPT, {"max_sequence_length": 8}),
    "post-norm gpt": (GPT, {"normalize_first": False}),
    "encoder": (Encoder, {"normalize_first": True}),
    "shared blocks": (Encoder, {"share_blocks": True}),
    "bert": (Bert, {}),
}


def by_hand(model, clean, corrupted):
    """Runs the blocks one by one, with one state replaced."""

    def embedded(ids):
        parts = ids if isinstance(model, GPT) else {"token_ids": ids}
        return model._embed(parts, np.arange(ids.shape[1])[None])

    def run(x, start, stop):
        for i in range(start, stop):
            x = model._blocks[i % len(model._blocks)](x)
        return x

    scores = np.empty((3, clean.shape[1]))
    for layer in range(3):
        of_clean, of_corrupted = (
            keras.ops.convert_to_numpy(run(embedded(ids), 0, layer))
            for ids in (clean, corrupted)
        )
        for t in range(clean.shape[1]):
            mixed = of_corrupted.copy()
            mixed[0, t] = of_clean[0, t]
            x = run(keras.ops.convert_to_tensor(mixed), layer, 2)
            if model._norm is not None:
                x = model._norm(x)
            outputs = model._logits(x) if isinstance(model, GPT) else x
            scores[layer, t] = keras.ops.convert_to_numpy(last(outputs))[0]
    return scores


@pytest.mark.every_backend
@pytest.mark.parametrize("name", MODELS)
def test_patches_equal_a_loop_over_layers_and_positions(name):
    kind, options = MODELS[name]
    model = small(kind, **options)
    clean, corrupted = IDS[:1], IDS[:1].copy()
    corrupted[0, 1] = 11
    before = model.get_weights()
    found = patch(model, clean, corrupted, last, batch_size=3)
    reference = by_hand(model, clean, corrupted)
    np.testing.assert_allclose(found, reference, atol=1e-4, rtol=1e-4)
    # Only a patch of the changed token restores the score in the embeddings.
    ends = [
        keras.ops.convert_to_numpy(last(model(x))) for x in (clean, corrupted)
    ]
    assert abs(ends[0] - ends[1]) > 1e-3
    np.testing.assert_allclose(found[0, 1], ends[0][0], atol=1e-4)
    np.testing.assert_allclose(found[0, 3], ends[1][0], atol=1e-4)
    for old, new in zip(before, model.get_weights(), strict=True):
        np.testing.assert_array_equal(old, new)


def test_the_last_logits_are_those_of_the_model():
    model = small(GPT, max_sequence_length=8, logits_soft_cap=2.0)
    logits = logit_lens(model, IDS)
    expected = keras.ops.convert_to_numpy(model(IDS))
    np.testing.assert_allclose(logits[-1], expected, atol=1e-5)
    assert np.abs(logits[0] - logits[-1]).max() > 0.1
    encoder = small(Encoder)
    expected = encoder.token_logits(encoder(IDS))
    np.testing.assert_allclose(
        logit_lens(encoder, IDS)[-1],
        keras.ops.convert_to_numpy(expected),
        atol=1e-5,
    )


def test_patching_reads_a_padding_mask():
    model = small(Encoder)
    mask = np.array([[True, True, True, True, False]])
    clean, corrupted = (
        {"token_ids": ids, "padding_mask": mask} for ids in (IDS[:1], IDS[1:])
    )
    found = patch(model, clean, corrupted, lambda outputs: outputs[:, 0, 3])
    padded = keras.ops.convert_to_numpy(model(corrupted))[0, 0, 3]
    # No token attends to padding.
    np.testing.assert_allclose(found[:, 4], padded, atol=1e-5)
    assert abs(found[0, 1] - padded) > 1e-3


def test_other_models_and_arguments_raise():
    transformer = Transformer(
        SIZE, num_layers=1, num_heads=2, hidden_dim=8, intermediate_dim=12
    )
    for function in (hidden_states, logit_lens):
        with pytest.raises(ValueError, match=r"`model`.*: Transformer"):
            function(transformer, IDS)
        with pytest.raises(ValueError, match="`inputs` must be the inputs"):
            function(small(Encoder), None)
    with pytest.raises(ValueError, match=r"`model`.*: Transformer"):
        patch(transformer, IDS, IDS, last)
    model = small(Encoder)
    one = IDS[:1]
    for clean, corrupted, message in (
        (IDS, IDS, r"`clean` must be one sequence.*\(2, 5\)"),
        (one, one[:, :3], "`corrupted` must have the inputs and shapes"),
        (None, one, "`clean` must be the inputs"),
    ):
        with pytest.raises(ValueError, match=message):
            patch(model, clean, corrupted, last)
    with pytest.raises(ValueError, match="`score` must be callable"):
        patch(model, one, one, 3)
    with pytest.raises(ValueError, match="one number for each of 5 rows"):
        patch(model, one, one, lambda outputs: outputs)
    with pytest.raises(ValueError, match="`batch_size`"):
        patch(model, one, one, last, batch_size=0)
    narrow = small(Encoder, embedding_dim=4)
    with pytest.raises(ValueError, match="embedding_dim=4"):
        logit_lens(narrow, IDS)
