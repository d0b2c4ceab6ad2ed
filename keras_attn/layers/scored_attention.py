"""Attention with a choice of scores, soft or hard, global or local."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self

import keras
from keras import ops

from keras_attn import checks
from keras_attn.layers.attention_axes import AttentionAxes
from keras_attn.layers.attention_inputs import (
    MASKS,
    TENSORS,
    bool_masks,
    read_inputs,
)
from keras_attn.layers.dropout import Dropout
from keras_attn.layers.dropout_seed import DropoutSeeds
from keras_attn.layers.predicted_center import PredictedCenter
from keras_attn.layers.predictive_window import predictive_window
from keras_attn.layers.quantized_parts import QuantizedParts
from keras_attn.layers.rematerialized import Rematerialized
from keras_attn.layers.scores.make_score import check_score, make_score
from keras_attn.ops import WeightDropout
from keras_attn.ops.attend import check_pairs, is_empty
from keras_attn.ops.capture import capturing, record
from keras_attn.ops.hard_weights import (
    gumbel_noise,
    log_probability,
    one_hot_of_largest,
    straight_through,
)
from keras_attn.ops.score_softmax import hidden, softmax
from keras_attn.typing import Initializer, Shape, Tensor, TensorLike

_AXES = AttentionAxes(rank=3, axes=(1,))


@keras.saving.register_keras_serializable(package="keras_attn")
class ScoredAttention(QuantizedParts, Rematerialized):
    """Attention layer with a selectable score function.

        output[t] = sum_s weight[t, s] value[s]
        weight[t] = softmax(score[t])             over the visible keys

    with one of six scores of a query q and a key k at position p:

    - `"dot"`: q . k
    - `"scaled_dot"`: q . k / sqrt(D)
    - `"general"`: q W k
    - `"additive"`: v . tanh(q W + k U), also called concat
    - `"location"`: (q W)[p], independent of the key
    - `"cosine"`: softplus(q w + c) q . k / (|q| |k|)

    Dot, general, location: Luong et al. 2015, sec. 3.1,
    https://arxiv.org/abs/1508.04025, whose concat is the additive score of
    Bahdanau et al. 2014, app. A.1.2, https://arxiv.org/abs/1409.0473. Scaled
    dot: Vaswani et al. 2017, sec. 3.2.1, https://arxiv.org/abs/1706.03762.
    Cosine: Graves et al. 2014, sec. 3.3.1, https://arxiv.org/abs/1410.5401;
    their key strength comes from the controller, here from the query. As in
    the papers, there is no bias except c, and neither values nor output are
    projected.

    *Local* (Luong et al. 2015, sec. 3.2): a query attends only to keys s with
    |s - p_t| <= D. `"monotonic"` (local-m): p_t = t. `"predictive"`
    (local-p):

        p_t = S sigmoid(v_p . tanh(q_t W_p))
        weight[t, s] = softmax(score[t])[s] exp(-2 (s - p_t)^2 / D^2)

    where S is one more than the last position visible to the query. As in the
    paper, the weights of local-p do not sum to 1. Positions count tokens.

    *Hard* (Xu et al. 2015, sec. 4.1, https://arxiv.org/abs/1502.03044): the
    weight of one key is 1. In training, the key is sampled with its soft weight
    as the probability, so the soft weights are the expectation of the hard
    ones; in inference, it is the key with the largest score. `"reinforce"`: the
    choice has no gradient; pass its log-probability (`return_log_probability`)
    to the `Reinforce` layer. `"gumbel"`: the gradient is that of the softmax of
    (score + Gumbel noise) / `temperature` (Jang et al. 2017, sec. 2.2,
    https://arxiv.org/abs/1611.01144); no other layer is needed.

    Args:
        score: `"dot"`, `"scaled_dot"`, `"general"`, `"additive"`,
            `"location"`, `"cosine"`, or a layer or a callable that takes query
            (B, T, D) and key (B, S, D') and returns (B, T, S). Default
            `"additive"`.
        units: int >= 1. Width of the tanh layer of the additive score. Default:
            D of the query.
        max_sequence_length: int >= 1. Maximum number of keys of the location
            score, in tokens. Default: S at build time.
        local: None (all keys), `"monotonic"` or `"predictive"`. Default None.
        window: int >= 1. D of local attention, in tokens. Default 10, as in
            the paper.
        hard: None (soft weights), `"reinforce"` or `"gumbel"`. Default None.
        temperature: float > 0. Temperature of the softmax in the gradient of
            `"gumbel"`. Default 1.0.
        dropout: float in [0, 1). Dropout probability of the attention weights;
            soft attention only. Default 0.0.
        kernel_initializer: initializer of all kernels.
        seed: int. Seed of dropout and sampling. Default None: drawn from the
            global seed.
        **kwargs: arguments of `keras.layers.Layer`: `name`, `dtype`, ...

    Call arguments:
        query: float (B, T, D).
        value: float (B, S, W).
        key: float (B, S, D'). Default `value`.
        query_mask: bool (B, T), True for tokens, False for padding. Default:
            the implicit Keras mask of `query`.
        value_mask: bool (B, S), same for `value`.
        key_mask: bool (B, S), same for `key`.
        attention_mask: bool, (T, S), (B, T, S) or (B, 1, T, S), True = may
            attend. Like the other masks it may hold 0 and 1 instead, as floats
            only where the values can be read: eagerly and on a CPU.
        return_attention_scores: bool. Also return the attention weights (Keras
            calls them scores).
        return_log_probability: bool. Also return the log-probability of each
            choice; `hard="reinforce"` only.
        training: bool. Whether to apply dropout and to sample in hard
            attention.
        use_causal_mask: bool. Mask later keys in this call.
        query_positions: int32 (B, T), in tokens from 0; -1 = no token.
            Default: the number of preceding tokens.
        key_positions: int32 (B, S), same for keys.
        query_segment_ids: int32 (B, T), an id per sequence of a packed row.
            Each sequence attends only to itself; its positions count from 0.
        key_segment_ids: int32 (B, S), same for keys.

    Returns:
        Float (B, T, W), zero for fully masked queries. With
        `return_attention_scores` also the weights (B, T, S) before dropout,
        one-hot for hard attention; with `return_log_probability` also float32
        (B, T), 0 for fully masked queries.

    Raises:
        ValueError: an argument is out of range, arguments cannot be combined,
            ranks, lengths or widths do not match, `score` returns another
            shape, or (where positions are concrete) a key is past
            `max_sequence_length`.

    Masking: reads implicit Keras masks and propagates that of the query. Keras
    requires `supports_masking` of a layer passed as `score` if its inputs have
    masks.
    Cost: the additive score stores (B, T, S, units) in float32.

    Examples:
        >>> query = keras.random.normal((2, 3, 8), seed=0)
        >>> value = keras.random.normal((2, 5, 6), seed=1)
        >>> layer = keras_attn.layers.ScoredAttention("additive", units=4)
        >>> y, weights = layer(query, value, return_attention_scores=True)
        >>> tuple(y.shape), tuple(weights.shape)
        ((2, 3, 6), (2, 3, 5))
        >>> layer = keras_attn.layers.ScoredAttention("general", hard="gumbel")
        >>> _, weights = layer(query, value, return_attention_scores=True)
        >>> keras.ops.convert_to_numpy(weights).max(-1).tolist()
        [[1.0, 1.0, 1.0], [1.0, 1.0, 1.0]]
    """

    _tensors = TENSORS
    _flags = (
        "return_attention_scores",
        "return_log_probability",
        "use_causal_mask",
    )

    def __init__(
        self,
        score: str | keras.layers.Layer | Callable[..., Any] = "additive",
        units: int | None = None,
        max_sequence_length: int | None = None,
        local: str | None = None,
        window: int = 10,
        hard: str | None = None,
        temperature: float = 1.0,
        dropout: float = 0.0,
        kernel_initializer: Initializer = "glorot_uniform",
        seed: int | None = None,
        **kwargs: Any,
    ) -> None:
        check_score(score, units=units, max_sequence_length=max_sequence_length)
        checks.choice("local", local, (None, "monotonic", "predictive"))
        checks.positive_int("window", window)
        checks.choice("hard", hard, (None, "reinforce", "gumbel"))
        checks.positive("temperature", temperature)
        checks.fraction("dropout", dropout)
        checks.seed("seed", seed)
        if hard and local == "predictive":
            raise ValueError(
                "`hard` attention needs weights that sum to 1, but those of "
                f"local='predictive' do not. Received: hard={hard!r}"
            )
        if hard and dropout:
            raise ValueError(
                "`dropout` must be 0 for hard attention. "
                f"Received: hard={hard!r}, dropout={dropout}"
            )
        super().__init__(**kwargs)
        self.supports_masking = True
        self.score: Any = score
        self.units = units
        self.max_sequence_length = max_sequence_length
        self.local = local
        self.window = window
        self.hard = hard
        self.temperature = temperature
        self.dropout = dropout
        self.kernel_initializer: Initializer = keras.initializers.get(
            kernel_initializer
        )
        self.seed = seed
        self.seed_generator: DropoutSeeds | None = (
            DropoutSeeds(seed) if hard else None
        )

    def build(
        self,
        query_shape: Shape,
        value_shape: Shape,
        key_shape: Shape | None = None,
    ) -> None:
        """Creates the weights of the score and of the predicted center."""
        key_shape = value_shape if key_shape is None else key_shape
        self._check_shapes(query_shape, value_shape, key_shape)
        self._widths = query_shape[-1], value_shape[-1], key_shape[-1]
        self._score = make_score(
            self.score,
            self.kernel_initializer,
            self.dtype_policy,
            units=self.units,
            max_sequence_length=self.max_sequence_length,
        )
        self._score.build(query_shape, key_shape)
        self._center = None
        if self.local == "predictive":
            self._center = PredictedCenter(
                self.kernel_initializer, dtype=self.dtype_policy, name="centre"
            )
            self._center.build(query_shape)
        self._dropout_layer = Dropout(
            self.dropout, dtype=self.dtype_policy, seed=self.seed
        )

    def call(
        self,
        query: TensorLike,
        value: TensorLike,
        key: TensorLike | None = None,
        query_mask: TensorLike | None = None,
        value_mask: TensorLike | None = None,
        key_mask: TensorLike | None = None,
        attention_mask: TensorLike | None = None,
        return_attention_scores: bool = False,
        return_log_probability: bool = False,
        training: bool | None = None,
        use_causal_mask: bool = False,
        query_positions: TensorLike | None = None,
        key_positions: TensorLike | None = None,
        query_segment_ids: TensorLike | None = None,
        key_segment_ids: TensorLike | None = None,
    ) -> Tensor:
        """Applies the layer; the class docstring lists the arguments."""
        self._check_returns(return_log_probability)
        inputs = query, value, value if key is None else key
        self._check_shapes(*(x.shape for x in inputs))
        for name, x in zip(("query", "value", "key"), inputs, strict=True):
            checks.floats(name, x)
        monotonic = self.local == "monotonic"
        query, value, key, visibility = read_inputs(
            _AXES,
            inputs,
            masks=(query_mask, value_mask, key_mask),
            positions=(query_positions, key_positions),
            segments=(query_segment_ids, key_segment_ids),
            attention_mask=_one_head(attention_mask),
            counted=self.local is not None or self.score == "location",
            causal=use_causal_mask,
            window=self.window + 1 if monotonic else None,
        )
        if visibility.attention_mask is not None:
            expected = query.shape[0], 1, query.shape[1], key.shape[1]
            check_pairs("attention_mask", visibility.attention_mask, expected)
        lengths = ops.shape(query)[1], ops.shape(key)[1]
        if is_empty(query, key):
            return self._outputs_of_nothing(
                query, value, return_attention_scores, return_log_probability
            )
        nearness = None
        if self.local == "predictive":
            visibility, nearness = predictive_window(
                self._center(query), visibility, lengths, self.window
            )
        mask = visibility.to_mask(*lengths)
        mask = None if mask is None else mask[:, 0]
        scores = self._score(query, key, key_positions=visibility.key_positions)
        weights = self._weights(scores, mask, training)
        if nearness is not None:
            weights = weights * nearness
        if mask is not None:
            weights = ops.where(mask, weights, 0)
        if capturing(self.path):
            record(self.path, weights[:, None])
        used = weights
        if training and self.dropout:
            drop = WeightDropout(self.dropout, self._dropout_layer.draw())
            used = drop(weights[:, None])[:, 0]
        # All weights of a fully masked query are 0.
        output = ops.matmul(ops.cast(used, value.dtype), value)
        # `keras.ops.matmul` of float64 returns float32 on PyTorch
        # (keras-team/keras#23704, as of Keras 3.15.1).
        outputs = [ops.cast(output, value.dtype)]
        if return_attention_scores:
            outputs.append(ops.cast(weights, self.compute_dtype))
        if return_log_probability:
            outputs.append(log_probability(hidden(scores, mask), weights))
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    if TYPE_CHECKING:
        __call__ = call

    def _outputs_of_nothing(self, query, value, weights_too, log_too):
        """Returns zeros, the outputs of queries without a key."""
        sizes = *ops.shape(query)[:2], ops.shape(value)[1]
        weights = ops.zeros(sizes, value.dtype)  # no elements
        outputs = [ops.matmul(weights, value)]
        if weights_too:
            outputs.append(ops.cast(weights, self.compute_dtype))
        if log_too:
            outputs.append(ops.zeros(sizes[:2], "float32"))
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def _weights(self, scores, mask, training):
        if self.hard is None:
            return softmax(hidden(scores, mask))
        if not training:
            return one_hot_of_largest(hidden(scores, mask))
        noise = gumbel_noise(ops.shape(scores), self.seed_generator)
        noise = ops.cast(noise, scores.dtype)
        if self.hard == "gumbel":
            return straight_through(scores, mask, noise, self.temperature)
        return one_hot_of_largest(hidden(scores + noise, mask))

    def compute_output_shape(
        self,
        query_shape: Shape,
        value_shape: Shape,
        key_shape: Shape | None = None,
    ) -> Shape:
        """Returns the shape of the output."""
        key_shape = value_shape if key_shape is None else key_shape
        self._check_shapes(query_shape, value_shape, key_shape)
        return (*query_shape[:-1], value_shape[-1])

    def compute_output_spec(
        self,
        query: TensorLike,
        value: TensorLike,
        key: TensorLike | None = None,
        query_mask: TensorLike | None = None,
        value_mask: TensorLike | None = None,
        key_mask: TensorLike | None = None,
        attention_mask: TensorLike | None = None,
        return_attention_scores: bool = False,
        return_log_probability: bool = False,
        training: bool | None = None,
        use_causal_mask: bool = False,
        query_positions: TensorLike | None = None,
        key_positions: TensorLike | None = None,
        query_segment_ids: TensorLike | None = None,
        key_segment_ids: TensorLike | None = None,
    ) -> Any:
        """Returns the symbolic output and other requested outputs."""
        self._check_returns(return_log_probability)
        bool_masks(MASKS, (query_mask, value_mask, key_mask, attention_mask))
        shape = self.compute_output_shape(
            query.shape, value.shape, None if key is None else key.shape
        )
        dtype = self.compute_dtype
        outputs = [keras.KerasTensor(shape, dtype=dtype)]
        if return_attention_scores:
            weights = (*query.shape[:-1], value.shape[1])
            outputs.append(keras.KerasTensor(weights, dtype=dtype))
        if return_log_probability:
            outputs.append(keras.KerasTensor(query.shape[:-1], dtype="float32"))
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        config = super().get_config()
        for name in (
            "units",
            "max_sequence_length",
            "local",
            "window",
            "hard",
            "temperature",
            "dropout",
            "seed",
        ):
            config[name] = getattr(self, name)
        config["score"] = self.score
        if not isinstance(self.score, str):
            config["score"] = keras.saving.serialize_keras_object(self.score)
        config["kernel_initializer"] = keras.initializers.serialize(
            self.kernel_initializer
        )
        return config

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        """Creates the layer, including its score."""
        if isinstance(config.get("score"), dict):
            score = keras.saving.deserialize_keras_object(config["score"])
            config = {**config, "score": score}
        return super().from_config(config)

    def _check_returns(self, return_log_probability):
        if return_log_probability and self.hard != "reinforce":
            raise ValueError(
                "`return_log_probability` needs hard='reinforce'. "
                f"Received: hard={self.hard!r}"
            )

    def _check_shapes(self, query_shape, value_shape, key_shape):
        shapes = [tuple(x) for x in (query_shape, value_shape, key_shape)]
        query_shape, value_shape, key_shape = shapes
        if any(len(shape) != 3 for shape in shapes):
            raise ValueError(
                "`query`, `value` and `key` must have rank 3, for (batch, "
                "length, features). "
                f"Received: {query_shape}, {value_shape}, {key_shape}"
            )
        if not checks.fits(value_shape[:2], key_shape[:2]):
            raise ValueError(
                "`value` and `key` must have the same batch and length. "
                f"Received: {value_shape} and {key_shape}"
            )
        if not checks.fits(query_shape[:1], value_shape[:1]):
            raise ValueError(
                "`query` and `value` must have the same batch. "
                f"Received: {query_shape} and {value_shape}"
            )
        if self.built:
            for name, shape, width in zip(
                ("query", "value", "key"), shapes, self._widths, strict=True
            ):
                checks.width(name, shape, width)


def _one_head(attention_mask):
    if attention_mask is not None and len(attention_mask.shape) == 4:
        if attention_mask.shape[1] != 1:
            raise ValueError(
                "`attention_mask` must have one head, (B, 1, T, S), like this "
                "layer. "
                f"Received: {tuple(attention_mask.shape)}"
            )
    return attention_mask
