"""Layouts of weights for `keras.distribution.ModelParallel`.

As in Megatron-LM (Shoeybi et al. 2019, https://arxiv.org/abs/1909.08053),
heads, feed-forward features and vocabularies are split over the devices of one
mesh axis; norms, position tables and the biases of outputs are replicated. A
block then sums its outputs over these devices twice, after the attention and
after the feed-forward network.

A rule maps a pattern of paths to the axes of a weight. Patterns match whole
paths, as in `keras.distribution.LayoutMap`, so a pattern with a typing error
matches nothing and Keras replicates the weight silently (as of Keras 3.15.1):
every weight has a rule, also a replicated one, and a model looks for them.
"""

import re
from typing import TYPE_CHECKING, Any

import keras

from keras_attn import checks
from keras_attn.backend import CACHE_PATH, QUERY_PATH

if TYPE_CHECKING:
    from keras_attn.blocks.block_config import BlockConfig


# Placeholders in rules, for names of mesh axes.
_SPLIT, _KEY_VALUE_SPLIT, _VOCABULARY_SPLIT, _ROWS = "NKVB"
_REPLICATED = ()
# The path of the matrix of a vocabulary.
VOCABULARY = "token_embedding/table/embeddings"
# A weight with more than this fraction of the parameters needs a rule.
_LARGE = 0.01


def block_rules(name: str) -> dict[str, Any]:
    r"""Returns the rules of the blocks whose names match a pattern.

    Args:
        name: str. Regular expression, such as `r"block_\d+"`.

    Returns:
        Dict of str to tuples, the axes of each weight.
    """
    attention = rf"{name}/(self|cross)_attention"
    return {
        f"{attention}/query/kernel": (None, _SPLIT, None),
        f"{attention}/query/bias": (_SPLIT, None),
        f"{attention}/(key|value)/kernel": (None, _KEY_VALUE_SPLIT, None),
        f"{attention}/(key|value)/bias": (_KEY_VALUE_SPLIT, None),
        f"{attention}/attention_output/kernel": (_SPLIT, None, None),
        f"{attention}/attention_output/bias": _REPLICATED,
        f"{name}/feed_forward/(inner|gate)/kernel": (None, _SPLIT),
        f"{name}/feed_forward/(inner|gate)/bias": (_SPLIT,),
        f"{name}/feed_forward/outer/kernel": (_SPLIT, None),
        f"{name}/feed_forward/outer/bias": _REPLICATED,
        f"{name}/feed_forward/router/(kernel|bias)": _REPLICATED,
        f"{name}/feed_forward/(inner|gate)_experts/kernel": (
            None,
            None,
            _SPLIT,
        ),
        f"{name}/feed_forward/(inner|gate)_experts/bias": (None, _SPLIT),
        f"{name}/feed_forward/outer_experts/kernel": (None, _SPLIT, None),
        f"{name}/feed_forward/outer_experts/bias": _REPLICATED,
        f"{attention}/(query|key)_norm/scale": _REPLICATED,
        f"{attention}/sinks": (_SPLIT,),
        rf"{name}/around_\w+/(output_)?norm/(gamma|beta|scale)": _REPLICATED,
        rf"{name}/around_\w+/layer_scale": _REPLICATED,
        # Of relative positions, where the block has its own.
        f"{name}_position/kernel": (None, _SPLIT, None),
        f"{name}_position/(content|distance|segment)_bias": (_SPLIT, None),
        f"{name}_position/segment_table": (None, _SPLIT, None),
    }


def vocabulary_rules(name: str) -> dict[str, Any]:
    """Returns the rules of the matrix of a vocabulary and of its bias."""
    return {
        f"{name}/table/embeddings": (_VOCABULARY_SPLIT, None),
        f"{name}/logits_bias": (_VOCABULARY_SPLIT,),
    }


def logits_rules(name: str) -> dict[str, Any]:
    """Returns the rules of a dense layer that computes logits."""
    return {
        f"{name}/kernel": (None, _VOCABULARY_SPLIT),
        f"{name}/bias": (_VOCABULARY_SPLIT,),
    }


def replicated(*names: Any) -> dict[str, Any]:
    """Returns rules that replicate layers, whose names are patterns."""
    # Not the path of the layer's output, which Keras looks up as well: batches
    # would be gathered (as of Keras 3.15.1).
    return {f"{name}/.*(?<!/output)": _REPLICATED for name in names}


_TABLES = "positions", r"t5_position(_\d+)?"
# Not the norms of a block, and not the output of a character embedding.
_NORM = "(?<!attention/)(?<!feed_forward/)norm"
_OUTPUT = "(?<!_embedding/)output"
_MEMORY = {
    r"carried_memory/state_\d+": (_ROWS, None, None),
    "carried_memory/token_mask": (_ROWS, None),
}

TRANSFORMER = (
    block_rules(r"(encoder|decoder)_block_\d+")
    | vocabulary_rules("(token|source|target)_embedding")
    | logits_rules("output")
    | replicated(
        "(source|target)_positions", "(encoder|decoder)_norm", _TABLES[1]
    )
)
SPEECH = TRANSFORMER | logits_rules("ctc_output") | replicated("front_end")
ENCODER = (
    block_rules(r"block_\d+")
    | vocabulary_rules("token_embedding")
    | replicated(
        *_TABLES,
        _NORM,
        "pooler",
        "embedding_norm",
        "embedding_projection",
        "(segment|character)_embedding",
    )
)
# Classes and the matrices D x D of heads are small.
PRETRAINER = (
    ENCODER
    | {".*/token_bias": (_VOCABULARY_SPLIT,)}
    | replicated("transform", "transform_norm", "next_sentence")
)
CLASSIFIER = ENCODER | replicated(
    _OUTPUT, "transform", "transform_norm", "token", "no_answer"
)
CAUSAL_LM = (
    block_rules(r"block_\d+")
    | vocabulary_rules("token_embedding")
    | logits_rules("output")
    | replicated(*_TABLES, _NORM)
    | {".*/query_vector": _REPLICATED}
    | _MEMORY
)
# The gates of a recurrent cell are one matrix. Splitting it would need
# communication in every time step, so only vocabularies are split.
RECURRENT = (
    vocabulary_rules("source_embedding")
    | vocabulary_rules("decoder/token")
    | logits_rules("decoder/output")
    | replicated(r"encoder_\d+", r"decoder/(cell_\d+|attention|mixing)")
    | {".*/sampling_probability": _REPLICATED}
)
VISION = block_rules(r"block_\d+") | replicated(
    *("patch_embedding", "(distillation_)?classifier"),
    f"(?<!image_encoder/){_NORM}",
)
CAPTIONER = (
    RECURRENT | VISION | replicated("image_encoder", r"initial_state_\d+")
)


def layout_map_method(
    rules: dict[str, Any], splits_sequences: bool = True
) -> Any:
    """Returns the method `get_layout_map` of a model.

    Args:
        rules: dict of str to tuples, as from `block_rules`.
        splits_sequences: bool. Whether devices can share a sequence. A
            recurrent model reads it token by token, and an image has no
            divisible number of patches and learned tokens.

    Returns:
        A static method.
    """

    def get_layout_map(
        device_mesh,
        model_parallel_dim_name="model",
        data_parallel_dim_name="batch",
        *,
        num_heads=None,
        num_key_value_heads=None,
        vocabulary_size=None,
        context_parallel_dim_name=None,
    ):
        """Returns a layout of the weights for `keras.distribution`.

        Heads, feed-forward features and vocabularies are split over one axis of
        the mesh, as in Megatron-LM; norms, position tables and recurrent cells
        are replicated. All weights are replicated over the other axis, which
        splits batches. While a `keras.distribution.ModelParallel` with this
        layout is active, the constructor of the model checks its sizes.

        Args:
            device_mesh: `keras.distribution.DeviceMesh`.
            model_parallel_dim_name: str. The mesh axis that splits weights.
            data_parallel_dim_name: str. The mesh axis that splits batches.
            num_heads: int. N, checked here if given. Default None.
            num_key_value_heads: int. K. If the axis has more devices than that,
                key and value heads are replicated. Default None: they are
                split.
            vocabulary_size: int, or a tuple of them. V. If the number of
                devices does not divide it, the matrices of the vocabulary are
                replicated. Default None: they are split.
            context_parallel_dim_name: str. The mesh axis that splits sequences,
                whose lengths its number of devices must divide. All weights are
                replicated over it. Default None: no sequence is split.

        Returns:
            `keras.distribution.LayoutMap`.

        Raises:
            ValueError: the mesh has no such axis, two names are the same axis,
                the number of devices does not divide the heads, or sequences of
                a recurrent model are to be split.

        Examples:
            >>> mesh = keras.distribution.DeviceMesh(
            ...     (1, 2), ("batch", "model"), ["cpu:0", "cpu:1"])
            >>> layout_map = keras_attn.models.GPT.get_layout_map(mesh)
            >>> layout_map["block_0/self_attention/query/kernel"].axes
            (None, 'model', None)
        """
        if context_parallel_dim_name is not None and not splits_sequences:
            raise ValueError(
                "`context_parallel_dim_name` must be None for a model whose "
                "sequences devices cannot share. Received: "
                f"{context_parallel_dim_name!r}"
            )
        devices = _devices(
            device_mesh,
            model_parallel_dim_name,
            data_parallel_dim_name,
            context_parallel_dim_name,
        )
        split = model_parallel_dim_name
        if num_heads is not None:
            checks.positive_int("num_heads", num_heads)
            _check_divides(devices, split, "num_heads", num_heads)
        names = {
            None: None,
            _SPLIT: split,
            _ROWS: data_parallel_dim_name,
            _KEY_VALUE_SPLIT: _key_value_split(
                num_key_value_heads, devices, split
            ),
            _VOCABULARY_SPLIT: _vocabulary_split(
                vocabulary_size, devices, split
            ),
        }
        layout_map = keras.distribution.LayoutMap(device_mesh)
        for path, axes in rules.items():
            layout_map[f"(.*/)?{path}"] = tuple(names[axis] for axis in axes)
        layout_map[CACHE_PATH] = (
            data_parallel_dim_name,
            names[_KEY_VALUE_SPLIT],
            None,
            None,
        )
        if context_parallel_dim_name is not None:
            layout_map[QUERY_PATH] = (
                data_parallel_dim_name,
                context_parallel_dim_name,
                split,
                None,
            )
        return layout_map

    return staticmethod(get_layout_map)


def block_sizes(name: str, config: "BlockConfig") -> list[Any]:
    """Returns what the blocks of a model split.

    Args:
        name: str. The name of one of the blocks.
        config: `BlockConfig`.

    Returns:
        List of the arguments of `check_sizes`.
    """
    attention = f"{name}/self_attention"
    return [
        ("num_heads", config.num_heads, f"{attention}/query/kernel", 1),
        (
            "num_key_value_heads",
            config.key_value_heads,
            f"{attention}/key/kernel",
            1,
        ),
        (
            "intermediate_dim",
            config.intermediate_dim,
            f"{name}/feed_forward/inner/kernel",
            1,
        ),
    ]


def check_sizes(*sizes: Any) -> None:
    """Checks sizes of a model against the active layout, before it has weights.

    Args:
        *sizes: tuples: the name of an argument, its value, the path of a weight
            and the axis of that weight that has this size.

    Raises:
        ValueError: the mesh does not divide a size, or splits batches and
            weights by the wrong axes.
    """
    distribution = keras.distribution.distribution()
    if not isinstance(distribution, keras.distribution.ModelParallel):
        return
    rows = distribution.get_tensor_layout(CACHE_PATH)
    if rows is not None and distribution.batch_dim_name != rows.axes[0]:
        raise ValueError(
            "`batch_dim_name` of `keras.distribution.ModelParallel` must be "
            f"{rows.axes[0]!r}, as in the layout map. Received: "
            f"{distribution.batch_dim_name!r}"
        )
    for name, value, path, axis in sizes:
        layout = distribution.get_tensor_layout(path)
        split = layout and dict(enumerate(layout.axes)).get(axis)
        if split is not None:
            devices = _size(distribution.device_mesh, split)
            _check_divides(devices, split, name, value)


def check_rules(model: keras.Model) -> None:
    """Checks that the active layout map is one for a model.

    Args:
        model: `keras.Model` with all its weights.

    Raises:
        ValueError: a weight with more than 1 % of the parameters has no rule
            in a map of `get_layout_map`, or no weight has one in another map.
    """
    distribution = keras.distribution.distribution()
    if not isinstance(distribution, keras.distribution.ModelParallel):
        return
    sizes = {weight.path: _count(weight) for weight in model.weights}
    missing = [
        path for path in sizes if distribution.get_tensor_layout(path) is None
    ]
    ours = distribution.get_tensor_layout(CACHE_PATH) is not None
    large = _LARGE * sum(sizes.values())
    if ours:
        missing = [path for path in missing if sizes[path] > large]
    elif len(missing) < len(sizes):
        return
    if missing:
        raise ValueError(
            "The active layout map must have a rule for "
            f"{max(missing, key=sizes.get)!r}, as that of "
            f"`{type(model).__name__}.get_layout_map` has: it would be "
            "replicated without notice. Received: the layout map of another "
            "model"
        )


def _count(weight):
    count = 1
    for size in weight.shape:
        count *= size
    return count


def _devices(device_mesh, split, rows, context):
    """Returns the number of devices that weights are split over."""
    checks.instance(
        "device_mesh",
        device_mesh,
        keras.distribution.DeviceMesh,
        "a `keras.distribution.DeviceMesh`",
    )
    axes = tuple(device_mesh.axis_names)
    checks.choice("model_parallel_dim_name", split, axes)
    checks.choice("data_parallel_dim_name", rows, axes)
    if context is not None:
        checks.choice("context_parallel_dim_name", context, axes)
    if split == rows:
        raise ValueError(
            "`model_parallel_dim_name` and `data_parallel_dim_name` must be "
            f"two axes of the mesh. Received: {split!r} for both"
        )
    if context in (split, rows):
        raise ValueError(
            "`context_parallel_dim_name` must be another axis of the mesh than "
            "`model_parallel_dim_name` and `data_parallel_dim_name`. Received: "
            f"{context!r}"
        )
    return _size(device_mesh, split)


def _size(device_mesh, axis):
    return device_mesh.shape[tuple(device_mesh.axis_names).index(axis)]


def _key_value_split(heads, devices, split):
    if heads is None:
        return split
    checks.positive_int("num_key_value_heads", heads)
    if heads < devices:
        return None
    _check_divides(devices, split, "num_key_value_heads", heads)
    return split


def _vocabulary_split(sizes, devices, split):
    sizes = sizes if isinstance(sizes, tuple) else (sizes,)
    for size in sizes:
        if size is not None:
            checks.positive_int("vocabulary_size", size)
    return None if any((size or 0) % devices for size in sizes) else split


_OTHERWISE = {
    "num_key_value_heads": (
        ", or be passed to `get_layout_map`, which replicates fewer heads than "
        "devices"
    ),
    "vocabulary_size": (
        ", or be passed to `get_layout_map` as `vocabulary_size`, which then "
        "replicates the vocabulary"
    ),
}


def _check_divides(devices, axis, name, value):
    if value % devices:
        what = re.sub("^(source|target)_", "", name)
        raise ValueError(
            f"`{name}` must be a multiple of {devices}, the number of devices "
            f"of the mesh axis {axis!r}{_OTHERWISE.get(what, '')}. "
            f"Received: {name}={value}"
        )
