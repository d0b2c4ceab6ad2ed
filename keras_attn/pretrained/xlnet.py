"""XLNet, with and without the language model head.

The family `xlnet` of Hugging Face's transformers (Yang et al. 2019,
https://arxiv.org/abs/1906.08237). Our `permutation_mask` is the
negation of their `perm_mask`; the other inputs mean the same.
"""

from keras_attn.models import XLNet
from keras_attn.pretrained.activations import ACTIVATIONS, activation_name
from keras_attn.pretrained.expectations import PLAIN_BLOCKS, expect
from keras_attn.pretrained.family import Family, Sizes
from keras_attn.pretrained.layouts import HEADS_LAST, ONE, SAME, linear
from keras_attn.pretrained.special_ids import special_ids, written_end_id
from keras_attn.pretrained.tensor_names import TensorName

# Fixed for this family: its config has no keys for these arguments.
_FIXED = {
    **PLAIN_BLOCKS,
    "activation_dropout": 0.0,
    "gated": False,
    "normalize_first": False,
}
# Other values are not supported.
_ONLY = {
    "attn_type": "bi",
    "clamp_len": -1,
    "same_length": False,
    "untie_r": True,
}
_PREFIX = "transformer."
_HEAD = "lm_loss"


def _make(config, names):
    for key, supported in _ONLY.items():
        config.only(key, supported)
    if config.values.get("reuse_len"):
        config.only("reuse_len", None)
    dropout = config.fraction("dropout", 0.1)
    width, heads = config.size("d_model"), config.heads("n_head", "d_model")
    config.only("d_head", width // heads)
    memory = config.values.get("mem_len")
    vocabulary = config.size("vocab_size")
    return XLNet(
        vocabulary,
        num_layers=config.size("n_layer"),
        num_heads=heads,
        hidden_dim=width,
        intermediate_dim=config.size("d_inner"),
        memory_length=config.token_id("mem_len") if memory else 0,
        bidirectional_data=config.flag("bi_data", False),
        dropout=dropout,
        attention_dropout=dropout,
        activation=config.choice("ff_activation", ACTIVATIONS, "gelu"),
        epsilon=config.positive("layer_norm_eps", 1e-12),
        tie_word_embeddings=config.flag("tie_word_embeddings", True)
        or f"{_HEAD}.bias" not in names,
        output_bias=f"{_HEAD}.bias" in names,
        **special_ids(config, vocabulary, 5, 1, 2),
        **_FIXED,
    )


def _sizes(config):
    width = config.size("d_model")
    return Sizes(
        [
            (
                (*_both("word_embedding.weight"), f"{_HEAD}.weight"),
                (config.size("vocab_size"), width),
            ),
            (
                _both("layer.0.ff.layer_1.weight"),
                (config.size("d_inner"), width),
            ),
        ],
        {"n_layer": config.size("n_layer")},
    )


def _both(name):
    return _PREFIX + name, name


def _describe(model):
    expect("XLNet", model, attention_dropout=model.dropout, **_FIXED)
    if not model.output_bias:
        expect("XLNet", model, tie_word_embeddings=True)
    bare = "XLNetLMHeadModel" if model.output_bias else "XLNetModel"
    return {
        "model_type": "xlnet",
        "architectures": [bare],
        "dtype": "float32",
        "vocab_size": model.vocabulary_size,
        "d_model": model.hidden_dim,
        "n_layer": model.num_layers,
        "n_head": model.num_heads,
        "d_head": model.hidden_dim // model.num_heads,
        "d_inner": model.intermediate_dim,
        "ff_activation": activation_name(model.activation),
        "dropout": model.dropout,
        "layer_norm_eps": model.epsilon,
        "mem_len": model.memory_length or None,
        "bi_data": model.bidirectional_data,
        "tie_word_embeddings": model.tie_word_embeddings,
        "pad_token_id": model.pad_id,
        "bos_token_id": model.start_id,
        "eos_token_id": written_end_id(model),
        **_ONLY,
    }


def _tensors(model):
    tied = model.output_bias and model.tie_word_embeddings
    names = [
        _name(
            model,
            "token_embedding/table/embeddings",
            "word_embedding.weight",
            copies=(f"{_HEAD}.weight",) if tied else (),
        ),
        _name(model, f"{model.name}/query_vector", "mask_emb", ONE),
    ]
    for number in range(model.num_layers):
        names += _layer(model, f"block_{number}", f"layer.{number}")
    if model.output_bias:
        table = "token_embedding/logits_bias" if tied else "output/bias"
        names.append(TensorName(table, f"{_HEAD}.bias", SAME))
    if not model.tie_word_embeddings:
        names.append(TensorName("output/kernel", f"{_HEAD}.weight", linear()))
    return names


def _layer(model, ours, theirs):
    attention, network = f"{ours}/self_attention", f"{ours}/feed_forward"
    parts = [
        (f"{attention}/{part}/kernel", f"rel_attn.{letter}", SAME)
        for part, letter in (("query", "q"), ("key", "k"), ("value", "v"))
    ]
    parts.append(
        (f"{attention}/attention_output/kernel", "rel_attn.o", HEADS_LAST)
    )
    parts += [
        (f"{ours}_position/{part}", f"rel_attn.{name}", SAME)
        for part, name in (
            ("kernel", "r"),
            ("content_bias", "r_w_bias"),
            ("distance_bias", "r_r_bias"),
            ("segment_bias", "r_s_bias"),
            ("segment_table", "seg_embed"),
        )
    ]
    for part, name in (("attention", "rel_attn"), ("feed_forward", "ff")):
        norm = f"{ours}/around_{part}/norm"
        parts.append((f"{norm}/gamma", f"{name}.layer_norm.weight", SAME))
        parts.append((f"{norm}/beta", f"{name}.layer_norm.bias", SAME))
    for part, name in (("inner", "layer_1"), ("outer", "layer_2")):
        dense = f"{network}/{part}"
        parts.append((f"{dense}/kernel", f"ff.{name}.weight", linear()))
        parts.append((f"{dense}/bias", f"ff.{name}.bias", SAME))
    return [
        _name(model, own, f"{theirs}.{name}", layout)
        for own, name, layout in parts
    ]


def _name(model, ours, theirs, layout=SAME, copies=()):
    # Bare models are saved without the prefix, as in transformers.
    names = list(_both(theirs))
    if not model.output_bias:
        names.reverse()
    return TensorName(ours, names[0], layout, (*names[1:], *copies))


XLNET = Family(
    model_type="xlnet",
    serves=lambda model: isinstance(model, XLNet),
    make=_make,
    describe=_describe,
    tensors=_tensors,
    sizes=_sizes,
    constants=lambda model: {},
    signature=("transformer.layer.0.rel_attn.q", "layer.0.rel_attn.q"),
)
