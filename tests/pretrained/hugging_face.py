"""Small transformers models with random weights."""

import numpy as np
import pytest

from keras_attn.decoding import BeamSearch

torch = pytest.importorskip("torch")

import transformers

SIZE = 17  # of the vocabulary
PAD = 16  # also the start token of targets
END = 0
SOURCE = np.array([[5, 6, 7, 8, END], [9, 4, END, PAD, PAD]], "int32")
TARGET = np.array([[PAD, 9, 4, 3], [PAD, 7, PAD, PAD]], "int32")

# Arguments of `talkative` whose sequences end early, late or not at all. In a
# float64 beam search, kept and dropped scores differ by at least 6e-5: rounding
# decides nothing.
CASES = [
    (5, 0.25, 0.5, 0.0),
    (1, 0.25, 0.5, 1.0),
    (20, 0.4, 0.5, 1.0),
    (11, 0.6, 0.5, 1.0),
]
LENGTH = 12  # maximum sequence length
SOURCES = np.array(
    [
        [13, 10, 8, 5, 5, END],
        [1, 2, 1, 3, END, PAD],
        [13, 10, 14, END, PAD, PAD],
        [8, 10, END, PAD, PAD, PAD],
        [15, 11, 10, 9, 9, END],
        [15, END, PAD, PAD, PAD, PAD],
    ],
    "int32",
)

CONFIG = {
    "vocab_size": SIZE,
    "d_model": 8,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 2,
    "encoder_ffn_dim": 12,
    "decoder_ffn_dim": 12,
    "max_position_embeddings": 32,
    "activation_function": "swish",
    "scale_embedding": True,
    "pad_token_id": PAD,
    "decoder_start_token_id": PAD,
    "eos_token_id": END,
    "forced_eos_token_id": None,
    "bad_words_ids": [[PAD]],
}


def marian(seed=0, scale=0.4, **config):
    """Returns a `MarianMTModel` with random weights, in eval mode."""
    model = transformers.MarianMTModel(
        transformers.MarianConfig(**(CONFIG | config))
    )
    draw = torch.Generator().manual_seed(seed)
    fixed = "embed_positions"
    with torch.no_grad():
        for name, tensor in model.state_dict().items():
            if fixed not in name:
                tensor.normal_(std=scale, generator=draw)
                if "layer_norm.weight" in name:
                    tensor.add_(1.0)
    return model.eval()


def talkative(seed, embedding, scale, ending, **config):
    """Returns a model whose sequences and their lengths depend on the source.

    Args:
        seed: int.
        embedding: float. Standard deviation of the embeddings, which sets the
            confidence of the model.
        scale: float. Standard deviation of the other kernels.
        ending: float. Added to the logit of the end token.
        **config: values that differ from `CONFIG`.
    """
    model = marian(seed, scale, **config)
    draw = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, tensor in model.state_dict().items():
            # A large beta before the logits would determine the token.
            if "layer_norm" in name:
                tensor.normal_(std=0.1, generator=draw)
                tensor.add_(float("weight" in name))
        model.model.shared.weight.mul_(embedding / scale)
        model.final_logits_bias.mul_(0.3 / scale)
        model.final_logits_bias[0, END] += ending
    return model


def outputs(model, source, target, pad_id):
    """Returns the logits of a transformers model, a tensor with gradients."""
    source, target = torch.tensor(source).long(), torch.tensor(target).long()
    return model(
        input_ids=source,
        attention_mask=(source != pad_id).long(),
        decoder_input_ids=target,
    ).logits


def logits(model, source=SOURCE, target=TARGET, pad_id=PAD):
    """Returns the logits of a transformers model, a NumPy array."""
    with torch.no_grad():
        return outputs(model, source, target, pad_id).numpy()


def assert_close(found, expected):
    """Compares logits, to 1e-5 of the largest one."""
    np.testing.assert_allclose(
        found, expected, atol=1e-5 * np.abs(expected).max()
    )


def assert_same_tokens(theirs, ours, source, forced=None):
    """Compares greedy search and four beams.

    Args:
        theirs: model of transformers.
        ours: `Transformer`.
        source: NumPy int32 (B, S).
        forced: int. The first token of all targets. Default None: any.
    """
    ids = torch.tensor(source).long()
    never = sorted({ours.pad_id, ours.start_id} - {ours.end_id})
    prefix = None if forced is None else [forced]
    for beams in 1, 4:
        expected = theirs.generate(
            input_ids=ids,
            attention_mask=(ids != ours.pad_id).long(),
            max_new_tokens=8,
            do_sample=False,
            num_beams=beams,
            length_penalty=0.0,
            early_stopping="never" if beams > 1 else False,
            bad_words_ids=[[token] for token in never],
            forced_bos_token_id=forced,
        ).numpy()[:, 1:]
        strategy = BeamSearch(beams, length_penalty=0)
        found = ours.generate(source, 8, strategy, prefix=prefix).tokens[:, 0]
        width = expected.shape[1]
        np.testing.assert_array_equal(found[:, :width], expected)
        assert (found[:, width:] == ours.pad_id).all()


def generated(model, source=SOURCES, max_new_tokens=LENGTH, **kwargs):
    """Returns the result of `generate` in transformers.

    Returns:
        Padded tokens (B, t, L) without the start token; the raw result.
    """
    source = torch.tensor(source).long()
    result = model.generate(
        input_ids=source,
        attention_mask=(source != PAD).long(),
        max_new_tokens=max_new_tokens,
        bad_words_ids=[[PAD]],
        return_dict_in_generate=True,
        output_scores=True,
        output_logits=True,
        **kwargs,
    )
    tokens = result.sequences[:, 1:].numpy()
    missing = ((0, 0), (0, max_new_tokens - tokens.shape[1]))
    tokens = np.pad(tokens, missing, constant_values=PAD)
    return tokens.reshape(len(source), -1, max_new_tokens), result
