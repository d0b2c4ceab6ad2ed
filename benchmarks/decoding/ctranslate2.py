"""CTranslate2 in float32: an inference runtime in C++."""

import tempfile

import ctranslate2
import numpy as np
from ctranslate2.specs import transformer_spec

from benchmarks.decoding import task, weights
from tools.tutorials.facts import cores


def prepare(case):
    """Returns a callable that decodes batches."""
    batches = [strings(batch) for batch in task.sources(case)]
    return task.runner(translator(case, weights.draw(case)), batches)


def decoder(case, drawn):
    """Returns a callable that decodes int32 (B, S) to lists of new ids."""
    translate = translator(case, drawn)
    return lambda sources: translate(strings(sources))


def strings(sources):
    """Converts int32 (B, S) to its input: lists of str, without padding."""
    return [
        [str(token) for token in row if token != task.PAD]
        for row in sources.tolist()
    ]


def translator(case, drawn):
    """Returns a callable that decodes the output of `strings`.

    Batches are split among single-core workers, which is faster than more
    threads per sentence.
    """
    workers = min(cores(), case["rows"])
    with tempfile.TemporaryDirectory() as folder:
        specification(case, drawn).save(folder)
        built = ctranslate2.Translator(
            folder,
            compute_type="float32",
            inter_threads=workers,
            intra_threads=1,
        )
    options = {
        "beam_size": case["beams"],
        "length_penalty": 0.0,
        "max_batch_size": -(-case["rows"] // workers),
        "max_decoding_length": case["new"],
        "return_end_token": True,
    }

    def decode(sources):
        found = built.translate_batch(sources, **options)
        ids = [[int(token) for token in one.hypotheses[0]] for one in found]
        return [row + [task.PAD] * (case["new"] - len(row)) for row in ids]

    return decode


def specification(case, drawn):
    """Returns the model as a CTranslate2 specification.

    The logits bias excludes the ids that may not be generated.
    """
    made = transformer_spec.TransformerSpec.from_config(
        case["layers"], case["heads"], pre_norm=False
    )
    length = max(case["length"], case["new"]) + 1
    for side in ("encoder", "decoder"):
        stack = getattr(made, side)
        stack.scale_embeddings = True
        stack.position_encodings.encodings = weights.positions(
            length, case["width"]
        )
        for layer, parts in zip(stack.layer, drawn[side], strict=True):
            _attention(layer.self_attention, parts["self"], ("qkv", "o"))
            if "cross" in parts:
                _attention(layer.attention, parts["cross"], ("q", "kv", "o"))
            _linear(layer.ffn.linear_0, parts["network"], "in")
            _linear(layer.ffn.linear_1, parts["network"], "out")
            _norm(layer.ffn.layer_norm, parts["network"])
    table = drawn["table"]
    made.encoder.embeddings[0].weight = table
    made.decoder.embeddings.weight = table
    made.decoder.projection.weight = table
    made.decoder.projection.bias = task.logits_bias(case)
    words = [str(token) for token in range(case["vocabulary"])]
    made.register_source_vocabulary(words)
    made.register_target_vocabulary(words)
    made.config.unk_token = str(task.PAD)
    made.config.bos_token = str(task.START)
    made.config.decoder_start_token = str(task.START)
    made.config.eos_token = str(task.END)
    made.validate()
    made.optimize(quantization=None)
    return made


def _attention(spec, parts, groups):
    for linear, names in zip(spec.linear, groups, strict=True):
        _linear(linear, parts, names)
    _norm(spec.layer_norm, parts)


def _linear(spec, parts, names):
    """Sets weights as (outputs, inputs), fusing projections of one input."""
    names = [names] if names in parts else names
    spec.weight = np.concatenate([parts[name].T for name in names])
    spec.bias = np.concatenate([parts[f"{name}_bias"] for name in names])


def _norm(spec, parts):
    spec.gamma, spec.beta = parts["scale"], parts["shift"]
