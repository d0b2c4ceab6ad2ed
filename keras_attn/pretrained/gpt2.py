"""GPT-2, the language models of OpenAI.

The family `gpt2` of Hugging Face's transformers (Radford et al. 2019, "Language
Models are Unsupervised Multitask Learners"): a pre-norm `GPT` in which no id is
padding.
"""

from keras_attn.models import GPT
from keras_attn.pretrained.activations import ACTIVATIONS, activation_name
from keras_attn.pretrained.expectations import PLAIN_BLOCKS, expect
from keras_attn.pretrained.family import Family, Sizes
from keras_attn.pretrained.layouts import FLAT, SAME, conv1d, linear
from keras_attn.pretrained.special_ids import special_ids, written_end_id
from keras_attn.pretrained.tensor_names import Part, TensorName

# Fixed for this family: its config has no keys for these arguments.
_FIXED = {
    **PLAIN_BLOCKS,
    "activation_dropout": 0.0,
    "gated": False,
    "normalize_first": True,
    "position_embedding": "learned",
    "attention_position": None,
    "scale_embedding": False,
    "logits_soft_cap": None,
}
# Other values are not supported.
_ONLY = {
    "add_cross_attention": False,
    "reorder_and_upcast_attn": False,
    "scale_attn_by_inverse_layer_idx": False,
    "scale_attn_weights": True,
}
# The default of `bos_token_id` and `eos_token_id` in transformers.
_END_OF_TEXT = 50256
_PREFIX = "transformer."
_HEAD = "lm_head.weight"


def _make(config, names):
    for key, supported in _ONLY.items():
        config.only(key, supported)
    width = config.size("n_embd")
    vocabulary = config.size("vocab_size")
    return GPT(
        vocabulary,
        num_layers=config.size("n_layer"),
        num_heads=config.heads("n_head", "n_embd"),
        hidden_dim=width,
        intermediate_dim=config.size("n_inner", 4 * width),
        dropout=config.fraction("resid_pdrop", 0.1),
        embedding_dropout=config.fraction("embd_pdrop", 0.1),
        attention_dropout=config.fraction("attn_pdrop", 0.1),
        activation=config.choice(
            "activation_function", ACTIVATIONS, "gelu_new"
        ),
        epsilon=config.positive("layer_norm_epsilon", 1e-5),
        max_sequence_length=config.size("n_positions", 1024),
        tie_word_embeddings=config.flag("tie_word_embeddings", True),
        **special_ids(config, vocabulary, None, _END_OF_TEXT, _END_OF_TEXT),
        **_FIXED,
    )


def _sizes(config):
    width, vocabulary = config.size("n_embd"), config.size("vocab_size")
    positions = config.size("n_positions", 1024)
    inner = config.size("n_inner", 4 * width)
    return Sizes(
        [
            (
                (*_both("wte.weight"), _HEAD),
                (vocabulary, width),
            ),
            (_both("wpe.weight"), (positions, width)),
            (_both("h.0.mlp.c_fc.weight"), (width, inner)),
        ],
        {"n_layer": config.size("n_layer")},
    )


def _both(name):
    # The files converted from OpenAI's checkpoints have no prefix.
    return _PREFIX + name, name


def _describe(model):
    expect("GPT-2", model, **_FIXED)
    return {
        "model_type": "gpt2",
        "architectures": ["GPT2LMHeadModel"],
        "dtype": "float32",
        "vocab_size": model.vocabulary_size,
        "n_embd": model.hidden_dim,
        "n_layer": model.num_layers,
        "n_head": model.num_heads,
        "n_inner": model.intermediate_dim,
        "n_positions": model.max_sequence_length,
        "n_ctx": model.max_sequence_length,
        "activation_function": activation_name(model.activation),
        "resid_pdrop": model.dropout,
        "embd_pdrop": (
            model.dropout
            if model.embedding_dropout is None
            else model.embedding_dropout
        ),
        "attn_pdrop": model.attention_dropout,
        "layer_norm_epsilon": model.epsilon,
        "tie_word_embeddings": model.tie_word_embeddings,
        "pad_token_id": model.pad_id,
        "bos_token_id": model.start_id,
        "eos_token_id": written_end_id(model),
    }


def _tensors(model):
    tied = (_HEAD,) if model.tie_word_embeddings else ()
    names = [
        _name("token_embedding/table/embeddings", "wte.weight", SAME, tied),
        _name("positions/table/embeddings", "wpe.weight", SAME),
        *_norm("norm", "ln_f"),
    ]
    if not model.tie_word_embeddings:
        names.append(TensorName("output/kernel", _HEAD, linear()))
    for number in range(model.num_layers):
        names += _block(f"block_{number}", f"h.{number}", model.hidden_dim)
    return names


def _block(ours, theirs, width):
    attention, network = f"{ours}/self_attention", f"{ours}/feed_forward"
    return [
        *_norm(f"{ours}/around_attention/norm", f"{theirs}.ln_1"),
        *[
            name
            for number, part in enumerate(("query", "key", "value"))
            for name in _dense(
                f"{attention}/{part}",
                f"{theirs}.attn.c_attn",
                Part(number, (width,) * 3, axis=-1),
            )
        ],
        *_dense(
            f"{attention}/attention_output",
            f"{theirs}.attn.c_proj",
            input_axes=2,
        ),
        *_norm(f"{ours}/around_feed_forward/norm", f"{theirs}.ln_2"),
        *_dense(f"{network}/inner", f"{theirs}.mlp.c_fc"),
        *_dense(f"{network}/outer", f"{theirs}.mlp.c_proj"),
    ]


def _dense(ours, theirs, part=None, input_axes=1):
    return [
        _name(
            f"{ours}/kernel", f"{theirs}.weight", conv1d(input_axes), part=part
        ),
        _name(f"{ours}/bias", f"{theirs}.bias", FLAT, part=part),
    ]


def _norm(ours, theirs):
    return [
        _name(f"{ours}/gamma", f"{theirs}.weight", SAME),
        _name(f"{ours}/beta", f"{theirs}.bias", SAME),
    ]


def _name(ours, theirs, layout, copies=(), part=None):
    name, bare = _both(theirs)
    return TensorName(ours, name, layout, (bare, *copies), part)


def _constants(model):
    # The causal mask and the score of masked positions.
    return {
        name: None
        for number in range(model.num_layers)
        for buffer in ("bias", "masked_bias")
        for name in _both(f"h.{number}.attn.{buffer}")
    }


GPT2 = Family(
    model_type="gpt2",
    # A GPT without position embedding is of another decoder-only family.
    serves=lambda model: (
        isinstance(model, GPT) and model.position_embedding is not None
    ),
    make=_make,
    describe=_describe,
    tensors=_tensors,
    sizes=_sizes,
    constants=_constants,
    signature=_both("h.0.attn.c_attn.weight"),
)
