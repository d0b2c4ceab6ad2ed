"""`keras_attn.models.Transformer.generate`."""

from benchmarks.decoding import task, weights
from keras_attn.decoding import BeamSearch, GreedySearch
from keras_attn.models import Transformer

_SUBLAYERS = {
    "self": ("self_attention", "around_attention"),
    "cross": ("cross_attention", "around_cross_attention"),
    "network": ("feed_forward", "around_feed_forward"),
}
_DENSE = {
    "q": "query",
    "k": "key",
    "v": "value",
    "o": "attention_output",
    "in": "inner",
    "out": "outer",
}


def prepare(case):
    """Returns a callable that decodes batches."""
    return task.runner(decoder(case, weights.draw(case)), task.sources(case))


def decoder(case, drawn):
    """Returns a callable that decodes int32 (B, S) to int32 (B, new)."""
    built = model(case, drawn)
    strategy = GreedySearch()
    if case["beams"] > 1:
        strategy = BeamSearch(case["beams"], length_penalty=0.0)

    def decode(sources):
        decoded = built.generate(
            sources, max_new_tokens=case["new"], strategy=strategy
        )
        return decoded.tokens[:, 0]

    return decode


def model(case, drawn):
    """Returns a `Transformer` with the given weights.

    Its logits bias excludes the ids that may not be generated.
    """
    built = Transformer(
        case["vocabulary"],
        num_layers=case["layers"],
        num_heads=case["heads"],
        hidden_dim=case["width"],
        intermediate_dim=case["inner"],
        output_bias=True,
        pad_id=task.PAD,
        start_id=task.START,
        end_id=task.END,
    )
    variables = {variable.path: variable for variable in built.weights}
    bias = ("token_embedding/logits_bias", task.logits_bias(case))
    for path, array in [bias, *_named(drawn)]:
        variable = variables.pop(path)
        variable.assign(array.reshape(variable.shape))
    if variables:
        raise RuntimeError(f"No weights were drawn for {sorted(variables)}.")
    return built


def _named(drawn):
    """Lists (path, array)."""
    named = [("token_embedding/table/embeddings", drawn["table"])]
    for side in ("encoder", "decoder"):
        for number, layer in enumerate(drawn[side]):
            for sublayer, parts in layer.items():
                inner, around = (
                    f"{side}_block_{number}/{part}"
                    for part in _SUBLAYERS[sublayer]
                )
                named += [
                    (f"{around}/norm/gamma", parts["scale"]),
                    (f"{around}/norm/beta", parts["shift"]),
                ]
                for name in _DENSE.keys() & parts.keys():
                    path = f"{inner}/{_DENSE[name]}"
                    named += [
                        (f"{path}/kernel", parts[name]),
                        (f"{path}/bias", parts[f"{name}_bias"]),
                    ]
    return named
