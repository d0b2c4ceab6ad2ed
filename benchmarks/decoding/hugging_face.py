"""`transformers.MarianMTModel.generate` on PyTorch."""

import numpy as np
import torch
import transformers

from benchmarks.decoding import task, weights
from benchmarks.harness.device import torch_device

_SUBLAYERS = {
    "self": ("self_attn.", "self_attn_layer_norm"),
    "cross": ("encoder_attn.", "encoder_attn_layer_norm"),
    "network": ("", "final_layer_norm"),
}
_LINEAR = {
    "q": "q_proj",
    "k": "k_proj",
    "v": "v_proj",
    "o": "out_proj",
    "in": "fc1",
    "out": "fc2",
}


def prepare(case):
    """Returns a callable that decodes batches."""
    return task.runner(decoder(case, weights.draw(case)), task.sources(case))


def decoder(case, drawn):
    """Returns a callable that decodes int32 (B, S) to int (B, new)."""
    device = torch_device()
    built = model(case, drawn).to(device)
    options = {
        "max_new_tokens": case["new"],
        "num_beams": case["beams"],
        "length_penalty": 0.0,
    }
    if case["beams"] == 1:
        del options["length_penalty"]  # unused in greedy search, with a warning

    def decode(sources):
        ids = torch.from_numpy(sources).long().to(device)
        found = built.generate(
            input_ids=ids, attention_mask=(ids != task.PAD).long(), **options
        )
        found = found[:, 1:].cpu().numpy()
        missing = ((0, 0), (0, case["new"] - found.shape[1]))
        return np.pad(found, missing, constant_values=task.PAD)

    return decode


def model(case, drawn):
    """Returns a `MarianMTModel` with the given weights.

    Marian's logits bias excludes the ids that may not be generated.
    """
    config = transformers.MarianConfig(
        vocab_size=case["vocabulary"],
        d_model=case["width"],
        encoder_layers=case["layers"],
        decoder_layers=case["layers"],
        encoder_attention_heads=case["heads"],
        decoder_attention_heads=case["heads"],
        encoder_ffn_dim=case["inner"],
        decoder_ffn_dim=case["inner"],
        max_position_embeddings=max(case["length"], case["new"]) + 1,
        activation_function="relu",
        scale_embedding=True,
        pad_token_id=task.PAD,
        decoder_start_token_id=task.START,
        eos_token_id=task.END,
        forced_eos_token_id=None,
    )
    built = transformers.MarianMTModel(config)
    state = built.state_dict()
    for name, array in _named(weights.halves(drawn)):
        state[name] = torch.from_numpy(array)
    state["final_logits_bias"] = torch.from_numpy(task.logits_bias(case))[None]
    built.load_state_dict(state)
    return built.eval()


def _named(drawn):
    """Lists (name, array)."""
    names = ("shared", "encoder.embed_tokens", "decoder.embed_tokens")
    named = [(f"model.{name}.weight", drawn["table"]) for name in names]
    named.append(("lm_head.weight", drawn["table"]))
    for side in ("encoder", "decoder"):
        for number, layer in enumerate(drawn[side]):
            for sublayer, parts in layer.items():
                inner, norm = (
                    f"model.{side}.layers.{number}.{part}"
                    for part in _SUBLAYERS[sublayer]
                )
                named += [
                    (f"{norm}.weight", parts["scale"]),
                    (f"{norm}.bias", parts["shift"]),
                ]
                for name in _LINEAR.keys() & parts.keys():
                    path = f"{inner}{_LINEAR[name]}"
                    named += [
                        (f"{path}.weight", np.ascontiguousarray(parts[name].T)),
                        (f"{path}.bias", parts[f"{name}_bias"]),
                    ]
    return named
