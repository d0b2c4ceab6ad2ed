"""Hidden states and patches of loaded models against transformers."""

import numpy as np
import pytest

from keras_attn import pretrained
from keras_attn.explain import hidden_states, logit_lens, patch

torch = pytest.importorskip("torch")

import transformers

SIZE = 17
IDS = np.array([[5, 6, 7, 8, 2], [9, 4, 3, 15, 1]], "int32")
PAIR = IDS, IDS[:, 1:4]
ROTARY = {"num_key_value_heads": 1, "pad_token_id": None}
BLOCKS = {"hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2}
BLOCKS |= {"intermediate_size": 12, "max_position_embeddings": 8}
BART = {"d_model": 8, "max_position_embeddings": 8}
BART |= {"encoder_layers": 2, "decoder_layers": 1, "pad_token_id": 0}
BART |= {f"{side}_attention_heads": 2 for side in ("encoder", "decoder")}
BART |= {f"{side}_ffn_dim": 12 for side in ("encoder", "decoder")}
BART |= {"decoder_start_token_id": 2, "forced_eos_token_id": None}
PAIRED = "bart", "mbart", "t5"
FAMILIES = {
    "gpt2": ("GPT2LMHeadModel", {"n_embd": 8, "n_layer": 2, "n_head": 2}),
    "llama": ("LlamaForCausalLM", BLOCKS | ROTARY),
    "bert": ("BertForMaskedLM", BLOCKS),
    "bart": ("BartForConditionalGeneration", BART),
    "mbart": ("MBartForConditionalGeneration", BART),
    "t5": (
        "T5ForConditionalGeneration",
        {"d_model": 8, "d_kv": 4, "d_ff": 12, "num_layers": 2, "num_heads": 2},
    ),
}
TIED_T5 = 8**-0.5


def theirs(name, folder):
    """Returns a transformers model, its outputs, and ours with its weights."""
    kind, config = FAMILIES[name]
    config_class = getattr(transformers, kind).config_class
    model = getattr(transformers, kind)(
        config_class(vocab_size=SIZE, **config)
    ).eval()
    draw = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for key, tensor in model.state_dict().items():
            tensor.normal_(std=0.4, generator=draw)
            if "norm" in key and "weight" in key:
                tensor.add_(1.0)
    model.save_pretrained(folder)
    return model, pretrained.load(folder)


def outputs_of(model, two):
    """Returns what a transformers model returns for `IDS` or `PAIR`."""
    inputs = [torch.from_numpy(ids).long() for ids in (PAIR if two else [IDS])]
    names = "input_ids", "decoder_input_ids"
    with torch.no_grad():
        return model(
            **dict(zip(names, inputs, strict=False)), output_hidden_states=True
        )


@pytest.mark.every_backend
@pytest.mark.parametrize("name", FAMILIES)
def test_states_equal_output_hidden_states(name, tmp_path):
    two = name in PAIRED
    model, ours = theirs(name, tmp_path)
    outputs = outputs_of(model, two)
    for stack in ("encoder", "decoder") if two else (None,):
        key = f"{stack}_hidden_states" if two else "hidden_states"
        expected = [state.numpy() for state in outputs[key]]
        if name == "t5" and stack == "decoder":
            # Our last norm contains the factor of the tied output.
            expected[-1] = expected[-1] * TIED_T5
        found = hidden_states(ours, PAIR if two else IDS, stack)
        assert len(found) == len(expected) >= 2
        for state, reference in zip(found, expected, strict=True):
            assert state.dtype == "float32"
            np.testing.assert_allclose(state, reference, atol=2e-5)
    logits = logit_lens(ours, PAIR if two else IDS)
    expected = lens_of(name, model, outputs)
    np.testing.assert_allclose(logits, expected, atol=1e-4)
    np.testing.assert_allclose(logits[-1], outputs.logits.numpy(), atol=1e-4)
    assert np.abs(logits[0] - logits[-1]).max() > 0.1


def lens_of(name, model, outputs):
    """Returns logits of each state with the modules of transformers."""
    norm = {
        "gpt2": lambda: model.transformer.ln_f,
        "llama": lambda: model.model.norm,
        "mbart": lambda: model.model.decoder.layer_norm,
        "t5": lambda: model.decoder.final_layer_norm,
    }.get(name, lambda: torch.nn.Identity())()
    head = model.cls if name == "bert" else model.lm_head
    key = "decoder_hidden_states" if name in PAIRED else "hidden_states"
    *states, last = outputs[key]
    with torch.no_grad():
        states = [*(norm(state) for state in states), last]
        if name == "t5":
            states = [state * TIED_T5 for state in states]
        logits = torch.stack([head(state) for state in states])
        if name in ("bart", "mbart"):
            logits = logits + model.final_logits_bias
    return logits.numpy()


@pytest.mark.every_backend
@pytest.mark.parametrize("name", ["gpt2", "bart"])
def test_patches_equal_hooks_of_pytorch(name, tmp_path):
    model, ours = theirs(name, tmp_path)
    clean, corrupted = IDS[:1], IDS[:1].copy()
    corrupted[0, 1] = 11
    if name == "gpt2":
        stack, blocks = None, model.transformer.h
        arguments = clean, corrupted
    else:
        stack, blocks = "encoder", model.model.encoder.layers
        arguments = (clean, clean[:, 1:4]), (corrupted, clean[:, 1:4])
    expected = hooked(model, blocks, *arguments)
    # Three batches, and the last one is not full.
    found = patch(ours, *arguments, score, stack=stack, batch_size=7)
    np.testing.assert_allclose(found.scores, expected[0], atol=1e-4)
    np.testing.assert_allclose(found[1:], expected[1:], atol=1e-4)
    # Of the embeddings, only that of the changed token has an effect.
    restored = found.restored[0]
    np.testing.assert_allclose(restored, [0, 1, 0, 0, 0], atol=1e-2)
    assert np.abs(found.restored[1]).max() > 0.1


def score(logits):
    return logits[:, -1, 3] - logits[:, -1, 5]


def hooked(model, blocks, clean, corrupted):
    """Returns scores with a state replaced by a hook, and those without."""

    def run(inputs):
        names = "input_ids", "decoder_input_ids"
        inputs = inputs if isinstance(inputs, tuple) else [inputs]
        inputs = [torch.from_numpy(ids).long() for ids in inputs]
        with torch.no_grad():
            outputs = model(**dict(zip(names, inputs, strict=False)))
        return float(score(outputs.logits)[0])

    def hook(layer, change):
        """Changes the input of the first block, or the output of a block."""
        if layer == 0:
            return blocks[0].register_forward_pre_hook(
                lambda block, inputs: (change(inputs[0]), *inputs[1:])
            )
        return blocks[layer - 1].register_forward_hook(
            lambda block, inputs, state: change(state)
        )

    def replace(state):
        state = state.clone()
        state[:, position] = states[layer][:, position]
        return state

    states = {}
    layers = range(len(blocks) + 1)
    handles = [
        hook(layer, lambda state, layer=layer: states.setdefault(layer, state))
        for layer in layers
    ]
    of_clean = run(clean)
    for handle in handles:
        handle.remove()
    scores = np.empty((len(layers), states[0].shape[1]))
    for layer, position in np.ndindex(scores.shape):
        handle = hook(layer, replace)
        scores[layer, position] = run(corrupted)
        handle.remove()
    return scores, of_clean, run(corrupted)
