"""Image captioning with attention over a grid of image features."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import keras
from keras import ops

from keras_attn import checks
from keras_attn.models.encoder_parts import with_encoder
from keras_attn.models.image_encoder import ImageEncoder
from keras_attn.models.input_checks import (
    check_image_shape,
    check_source_and_target,
    ids_spec,
)
from keras_attn.models.layout import CAPTIONER, check_rules, layout_map_method
from keras_attn.models.recurrent_seq2seq import RecurrentSeq2Seq
from keras_attn.models.vision_transformer import VisionTransformer
from keras_attn.ops import positions_from_mask
from keras_attn.typing import Nest, Tensor, TensorLike

if TYPE_CHECKING:
    from keras_attn.decoding.protocol import DecodingState
    from keras_attn.layers.scored_attention import ScoredAttention


@keras.saving.register_keras_serializable(package="keras_attn")
class ImageCaptioner(RecurrentSeq2Seq):
    """Recurrent image captioner with attention over a grid of features.

        local = Conv(Conv_s2(Conv_s2(Conv(image / 127.5 - 1))))
        context = Conv_d4(Conv_d2(Conv(local)))
        a[j] = LayerNorm([local[j]; context[j]] W + P[j])
        s[0] = tanh(mean_j a[j] W + b), also the cell state of an LSTM
        s[i] = RNN(s[i - 1], E[y[i]])
        c[i] = sum_j weight[i, j] a[j]
        logits[i] = tanh([c[i]; s[i]] W) W' + b

    All kernels are 3 x 3. A convolution s2 has a stride of 2, so the grid has a
    vector a[j] for every 4 x 4 pixels; d2 and d4 are dilated. Each convolution
    is followed by layer normalization and ReLU. P is a learned position
    embedding.

    Soft or hard attention as in "Show, Attend and Tell" (Xu et al. 2015,
    https://arxiv.org/abs/1502.03044), whose L is rows * columns here.
    Departures: unless `encoder` is given, the encoder is not pretrained on
    ImageNet, but small and trained with the decoder; the decoder is that of
    `RecurrentSeq2Seq`, whose attention reads s[i] instead of s[i - 1]; there is
    no doubly stochastic regularization; the gradient of hard attention is
    estimated by straight-through Gumbel softmax.

    `generate` and `stream` take images (B, H, W, C). With `return_weights`, S
    of the weights is rows * columns, the cells row by row.

    Args:
        vocabulary_size: int. V, of the captions.
        image_shape: tuple of int (H, W, C). Height and width, at most 4096
            pixels each, and number of channels.
        cell: `"lstm"` or `"gru"`.
        num_layers: int. Recurrent layers of the decoder.
        hidden_dim: int. D, the width of embeddings, states and features.
        filters: int. Filters of the first convolution; the later ones have
            twice and four times as many. Default 16.
        attention: None, the name of a score of `ScoredAttention`, or a
            `ScoredAttention` layer; `hard="gumbel"` is hard attention. Default
            `"additive"`.
        input_feeding: bool. Whether each step also reads tanh([c; s] W) of the
            previous one. Default False.
        scheduled_sampling: float in [0, 1], or None, as for `RecurrentSeq2Seq`.
            Default None.
        dropout: float in [0, 1). On embeddings and before the output layer.
        encoder: `VisionTransformer` with the same `image_shape` and
            `hidden_dim`, which computes the features instead of convolutions:
            a[j] is the vector of patch j of image / 127.5 - 1. Default None:
            convolutions.
        pad_id: int. The id of padding tokens, unlike `end_id`.
        start_id: int. First id of every caption.
        end_id: int. Last id of every caption.
        **kwargs: arguments of `keras.Model`: `name`, `dtype`, ...

    Call arguments:
        inputs: pair of images (B, H, W, C), integers or floats in [0, 255], and
            int32 (B, T) target ids, beginning with `start_id`.
        training: bool. Whether to apply dropout and scheduled sampling.

    Returns:
        Float (B, T, V): logits of the token after each target token.

    Raises:
        ValueError: arguments out of range or incompatible; images of another
            shape; ids of the wrong rank, not integers, or out of range.

    Examples:
        >>> model = keras_attn.models.ImageCaptioner(
        ...     20, image_shape=(10, 16, 3), hidden_dim=8, filters=4)
        >>> model.grid_size
        (3, 4)
        >>> images = np.zeros((2, 10, 16, 3), "uint8")
        >>> tuple(model((images, np.array([[1, 5], [1, 6]]))).shape)
        (2, 2, 20)
        >>> captions = model.generate(images, 5, return_weights=True)
        >>> captions.tokens.shape, captions.weights.shape
        ((2, 1, 5), (2, 1, 1, 1, 5, 12))
    """

    get_layout_map: Any = layout_map_method(CAPTIONER, splits_sequences=False)

    def __init__(
        self,
        vocabulary_size: int,
        image_shape: Sequence[int],
        cell: str = "lstm",
        num_layers: int = 1,
        hidden_dim: int = 256,
        filters: int = 16,
        attention: "str | ScoredAttention | None" = "additive",
        input_feeding: bool = False,
        scheduled_sampling: float | None = None,
        dropout: float = 0.1,
        encoder: VisionTransformer | None = None,
        pad_id: int = 0,
        start_id: int = 1,
        end_id: int = 2,
        **kwargs: Any,
    ) -> None:
        checks.positive_int("vocabulary_size", vocabulary_size)
        image_shape = check_image_shape(image_shape)
        if encoder is not None:
            _check_encoder(encoder, image_shape, hidden_dim)
        checks.positive_int("filters", filters)
        if isinstance(attention, str) and attention == "location":
            raise ValueError(
                "`attention` must be a `ScoredAttention` layer for the "
                'location score. Received: attention="location"'
            )
        super().__init__(
            None,
            vocabulary_size,
            cell=cell,
            num_layers=num_layers,
            hidden_dim=hidden_dim,
            attention=attention,
            input_feeding=input_feeding,
            scheduled_sampling=scheduled_sampling,
            dropout=dropout,
            pad_id=pad_id,
            start_id=start_id,
            end_id=end_id,
            **kwargs,
        )
        self.vocabulary_size = vocabulary_size
        self.image_shape = image_shape
        self.filters = filters
        dtype = self.dtype_policy
        self.encoder = encoder
        self._image_encoder = None
        if encoder is None:
            self._image_encoder = ImageEncoder(
                image_shape,
                hidden_dim,
                filters,
                dtype=dtype,
                name="image_encoder",
            )
            self._image_encoder.build()
        self._state_layers = []
        for number in range(num_layers * (2 if cell == "lstm" else 1)):
            layer = keras.layers.Dense(
                hidden_dim,
                activation="tanh",
                dtype=dtype,
                name=f"initial_state_{number}",
            )
            layer.build((None, hidden_dim))
            self._state_layers.append(layer)
        check_rules(self)

    @property
    def grid_size(self) -> tuple[int, ...]:
        """Tuple of int: rows and columns of the grid of features."""
        return (self.encoder or self._image_encoder).grid_size

    def encode(
        self, images: TensorLike, training: bool | None = None
    ) -> tuple[tuple[Tensor, Tensor], Any]:
        """Encodes images.

        Args:
            images: (B, H, W, C), values in [0, 255].
            training: bool. Whether to apply the dropout of `encoder`.

        Returns:
            Memory: float (B, S, D) with S = rows * columns, and positions,
            int32 (B, S); and the initial states of the decoder, for each layer
            a tuple of float (B, D).
        """
        if self.encoder is None:
            memory = self._image_encoder(images)
        else:
            # Most published encoders were trained with this scale.
            scaled = ops.cast(images, self.compute_dtype) / 127.5 - 1
            vectors, _ = self.encoder.encode(scaled, training=training)
            memory = vectors[:, self.encoder.num_tokens :]
        mean = ops.mean(memory, axis=1)
        states = [layer(mean) for layer in self._state_layers]
        size = len(states) // self.num_layers
        states = [states[i : i + size] for i in range(0, len(states), size)]
        token_mask = ops.ones(ops.shape(memory)[:2], "bool")
        return (memory, positions_from_mask(token_mask)), tuple(
            map(tuple, states)
        )

    def start_decoding(
        self, inputs: Nest, max_new_tokens: int
    ) -> "DecodingState":
        """Encodes images.

        Args:
            inputs: images (B, H, W, C), values in [0, 255].
            max_new_tokens: int. The maximum number of generated tokens.

        Returns:
            `DecodingState`.
        """
        images = self._check_images("inputs", inputs)
        return super().start_decoding(images, max_new_tokens)

    def read_sources(self, inputs: Nest) -> Tensor:
        """Checks the images of `generate` and `stream`.

        Args:
            inputs: images (B, H, W, C), values in [0, 255].

        Returns:
            NumPy array (B, H, W, C).

        Raises:
            ValueError: images of another shape.
        """
        return ops.convert_to_numpy(self._check_images("inputs", inputs))

    def check_inputs(self, inputs: Nest) -> Any:
        """Returns [images, target ids], or raises ValueError."""
        return check_source_and_target(
            inputs, "images", self._check_images, self.vocabulary_size
        )

    def input_specs(self) -> Nest:
        """Returns the `keras.InputSpec` of each required input."""
        shape = (None, *self.image_shape)
        return [keras.InputSpec(shape=shape, dtype="float32"), ids_spec()]

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        config = super().get_config()
        for name in (
            "source_vocabulary_size",
            "target_vocabulary_size",
            "bidirectional",
            "max_sequence_length",
        ):
            del config[name]
        for name in ("vocabulary_size", "image_shape", "filters"):
            config[name] = getattr(self, name)
        config["encoder"] = self.encoder and (
            keras.saving.serialize_keras_object(self.encoder)
        )
        return config

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        """Creates the model and its encoder."""
        return super().from_config(with_encoder(config))

    def _check_images(self, name, images):
        images = checks.no_complex(name, checks.array(name, images))
        shape = tuple(images.shape)
        if not checks.fits(shape, (None, *self.image_shape)):
            height, width, channels = self.image_shape
            raise ValueError(
                f"`{name}` must have shape (batch, {height}, {width}, "
                f"{channels}). Received: {shape}"
            )
        if shape[0] == 0:
            raise ValueError(
                f"`{name}` must hold at least one image. "
                f"Received: shape {shape}"
            )
        return images


def _check_encoder(encoder, image_shape, hidden_dim):
    checks.instance(
        "encoder", encoder, VisionTransformer, "a `VisionTransformer`"
    )
    expected = {"image_shape": image_shape, "hidden_dim": hidden_dim}
    for name, value in expected.items():
        if getattr(encoder, name) != value:
            raise ValueError(
                f"`encoder` must have {name}={value}, that of the captioner. "
                f"Received: {name}={getattr(encoder, name)}"
            )
