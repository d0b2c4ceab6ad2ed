"""The Vision Transformer."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import keras
from keras import ops

from keras_attn import checks
from keras_attn.blocks import EncoderBlock
from keras_attn.blocks.block_config import BlockConfig
from keras_attn.layers import Dropout
from keras_attn.layers.normalization import make_norm
from keras_attn.models.block_stack import BlockStack, make_stack
from keras_attn.models.input_checks import CheckedModel, check_image_shape
from keras_attn.models.layout import (
    VISION,
    block_sizes,
    check_rules,
    check_sizes,
    layout_map_method,
)
from keras_attn.models.patch_embedding import PatchEmbedding
from keras_attn.ops import positions_from_mask
from keras_attn.typing import Activation, Initializer, Nest, Tensor, TensorLike


@keras.saving.register_keras_serializable(package="keras_attn")
class VisionTransformer(CheckedModel):
    """Vision Transformer: classifies images, or encodes their patches.

        x = [c; p[1] W + b; ...; p[N] W + b] + PE
        h = LayerNorm(Blocks(x))
        logits = h[0] W' + b'

    Dosovitskiy et al. 2021, https://arxiv.org/abs/2010.11929. An image is cut
    into N patches of P x P pixels, each a vector p, row by row. c is a learned
    class token, and PE a learned table. With `pooling="mean"` there is no class
    token, and the logits are computed from the mean of h.

    DeiT (Touvron et al. 2021, https://arxiv.org/abs/2012.12877) has a
    distillation token after the class token. Its classifier learned from the
    predictions of a teacher; the logits are the mean of both classifiers.

    For images of another size the positions of the patches are interpolated,
    bicubically, as in the paper's section 3.2.

    Args:
        image_shape: tuple of int (H, W, C). Height and width in pixels,
            multiples of `patch_size`, and number of channels. Default
            (224, 224, 3).
        patch_size: int. P. Default 16.
        num_layers: int. Blocks. Default 12.
        num_heads: int. N, dividing `hidden_dim`. Default 12.
        hidden_dim: int. D. Default 768.
        intermediate_dim: int. Width inside the feed-forward networks. Default
            3072.
        num_classes: int. Default None: the model returns vectors, not logits.
        pooling: `"token"`, the class token, or `"mean"`, the mean of the
            patches. Default `"token"`.
        distillation_token: bool. Default False.
        distillation_classifier: bool. Whether the distillation token has a
            classifier of its own. Default False.
        dropout: float in [0, 1). On embeddings and on sublayer outputs. Default
            0.0.
        attention_dropout: float in [0, 1). On attention weights. Default 0.0.
        activation: name or callable. Default `"gelu"`.
        normalize_first: bool. Pre-norm blocks, and a norm after them. Default
            True.
        epsilon: float. Added to the variance in layer norms. Default 1e-12.
        initializer: initializer of kernels, tokens and positions. Default None:
            the layers' own.
        **kwargs: other options of `EncoderBlock` (`layer_scale`,
            `stochastic_depth`, `normalization`, `qk_norm`, ...; not
            `sliding_window`) and arguments of `keras.Model` (`name`, `dtype`,
            ...).

    Call arguments:
        inputs: (B, H, W, C) images, integers or floats, normalized as in
            training. H and W are multiples of P. Most published models expect
            `pixels / 127.5 - 1`.
        training: bool. Whether to apply dropout.

    Returns:
        Float (B, `num_classes`), logits; without `num_classes` float (B, S, D),
        the vectors of the learned tokens and of the patches.

    Raises:
        ValueError: arguments out of range or incompatible; images of another
            rank, another number of channels, or a size that is no multiple of
            P.

    Examples:
        >>> model = keras_attn.models.VisionTransformer(
        ...     (8, 12, 3), patch_size=4, num_layers=1, num_heads=2,
        ...     hidden_dim=8, intermediate_dim=16, num_classes=5)
        >>> model.grid_size
        (2, 3)
        >>> tuple(model(np.zeros((1, 8, 12, 3))).shape)
        (1, 5)
        >>> vectors, positions = model.encode(np.zeros((1, 16, 16, 3)))
        >>> tuple(vectors.shape)
        (1, 17, 8)
    """

    get_layout_map: Any = layout_map_method(VISION, splits_sequences=False)

    def __init__(
        self,
        image_shape: Sequence[int] = (224, 224, 3),
        patch_size: int = 16,
        num_layers: int = 12,
        num_heads: int = 12,
        hidden_dim: int = 768,
        intermediate_dim: int = 3072,
        num_classes: int | None = None,
        pooling: str = "token",
        distillation_token: bool = False,
        distillation_classifier: bool = False,
        dropout: float = 0.0,
        attention_dropout: float = 0.0,
        activation: Activation = "gelu",
        normalize_first: bool = True,
        epsilon: float = 1e-12,
        initializer: Initializer | None = None,
        **kwargs: Any,
    ) -> None:
        checks.positive_int("patch_size", patch_size)
        image_shape = check_image_shape(image_shape, patch_size)
        checks.positive_int("num_layers", num_layers, most=checks.MOST_LAYERS)
        checks.positive_int("hidden_dim", hidden_dim)
        if num_classes is not None:
            checks.positive_int("num_classes", num_classes)
        checks.choice("pooling", pooling, ("token", "mean"))
        checks.boolean("distillation_token", distillation_token)
        checks.boolean("distillation_classifier", distillation_classifier)
        if distillation_token and pooling == "mean":
            raise ValueError(
                "`pooling` must be 'token' with a distillation token. "
                "Received: pooling='mean'"
            )
        if distillation_classifier and not (distillation_token and num_classes):
            raise ValueError(
                "`distillation_classifier` requires `distillation_token` and "
                "`num_classes`. Received: distillation_token="
                f"{distillation_token}, num_classes={num_classes}"
            )
        config = BlockConfig.with_options(
            kwargs,
            num_heads=num_heads,
            intermediate_dim=intermediate_dim,
            dropout=dropout,
            attention_dropout=attention_dropout,
            activation=activation,
            normalize_first=normalize_first,
            epsilon=epsilon,
            # A window would be one of the rows of an image.
            sliding_window=None,
        )
        config.head_dim(hidden_dim, "`hidden_dim`")
        check_sizes(*block_sizes("block_0", config))
        super().__init__(**kwargs)
        self._block_config = config
        config.set_attributes(self)
        self.image_shape = image_shape
        self.patch_size = patch_size
        self.num_layers = num_layers
        self.hidden_dim = hidden_dim
        self.num_classes = num_classes
        self.pooling = pooling
        self.distillation_token = distillation_token
        self.distillation_classifier = distillation_classifier
        self.initializer: Initializer = initializer and keras.initializers.get(
            initializer
        )
        self._make_layers()
        self.built = True
        check_rules(self)

    def call(self, inputs: TensorLike, training: bool | None = None) -> Tensor:
        """Applies the model; the class docstring lists the arguments."""
        x, _ = self.encode(inputs, training=training)
        if self.num_classes is None:
            return x
        if self.pooling == "mean":
            return self._classifier(ops.mean(x, axis=1))
        logits = self._classifier(x[:, 0])
        if self._second_classifier is None:
            return logits
        return (logits + self._second_classifier(x[:, 1])) / 2

    if TYPE_CHECKING:
        __call__ = call

    @property
    def grid_size(self) -> tuple[int, int]:
        """Tuple of int: rows and columns of patches of an `image_shape`."""
        return self._embedding.grid_size

    @property
    def num_tokens(self) -> int:
        """The number of learned tokens before the patches, an int."""
        return self._embedding.num_tokens

    def encode(
        self, inputs: TensorLike, training: bool | None = None
    ) -> tuple[Tensor, Tensor]:
        """Encodes images.

        Args:
            inputs: as in a call.
            training: bool. Whether to apply dropout.

        Returns:
            Float (B, S, D), the vectors of the learned tokens and of the
            patches, and int32 (B, S), positions from 0.
        """
        x = self._embedding(self.check_inputs(inputs))
        x = self._dropout_layer(x, training=training)
        for block in self._blocks:
            x = block(x, training=training)
        if self._norm is not None:
            x = self._norm(x)
        token_mask = ops.ones(ops.shape(x)[:2], "bool")
        return x, positions_from_mask(token_mask)

    def block_stack(self) -> BlockStack:
        """Returns the blocks and the final norm."""
        return make_stack(self._blocks, self._norm)

    def input_specs(self) -> Nest:
        """Returns the `keras.InputSpec` of the images."""
        shape = (None, *self.image_shape)
        return keras.InputSpec(shape=shape, dtype="float32")

    def check_inputs(self, inputs: TensorLike) -> Tensor:
        """Returns the images, or raises ValueError."""
        images = checks.no_complex("inputs", checks.array("inputs", inputs))
        shape, size = tuple(images.shape), self.patch_size
        if (
            len(shape) != 4
            or shape[-1] != self.image_shape[-1]
            or any(not side or side % size for side in shape[1:3])
        ):
            raise ValueError(
                "`inputs` must have shape (batch, height, width, "
                f"{self.image_shape[-1]}), height and width known multiples "
                f"of patch_size={size}. Received: {shape}"
            )
        if shape[0] == 0:
            raise ValueError(
                f"`inputs` must hold at least one image. Received: {shape}"
            )
        return images

    def compute_output_shape(self, inputs_shape: Nest) -> Nest:
        """Returns the shape of the logits, or of the vectors."""
        if self.num_classes is None:
            return self._embedding.compute_output_shape(inputs_shape)
        return inputs_shape[0], self.num_classes

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        config = super().get_config() | self._block_config.get_config()
        del config["sliding_window"]
        for name in (
            "image_shape",
            "patch_size",
            "num_layers",
            "hidden_dim",
            "num_classes",
            "pooling",
            "distillation_token",
            "distillation_classifier",
        ):
            config[name] = getattr(self, name)
        config["initializer"] = self.initializer and (
            keras.initializers.serialize(self.initializer)
        )
        return config

    def _make_layers(self):
        dtype, width = self.dtype_policy, (None, None, self.hidden_dim)
        tokens = ("class_token",) if self.pooling == "token" else ()
        if self.distillation_token:
            tokens = (*tokens, "distillation_token")
        self._embedding = PatchEmbedding(
            self.image_shape,
            self.patch_size,
            tokens,
            self.hidden_dim,
            self.initializer,
            dtype=dtype,
            name="patch_embedding",
        )
        self._embedding.build()
        self._dropout_layer = Dropout(self.dropout, dtype=dtype)
        self._blocks = [
            EncoderBlock(
                dtype=dtype,
                name=f"block_{i}",
                **self._initializers(),
                **self._block_config.of_layer(i),
            )
            for i in range(self.num_layers)
        ]
        for block in self._blocks:
            block.build(width)
        self._norm = None
        if self._block_config.needs_final_norm:
            self._norm = make_norm(
                self.normalization, self.epsilon, dtype=dtype, name="norm"
            )
            self._norm.build(width)
        self._classifier = self._second_classifier = None
        if self.num_classes is not None:
            self._classifier = self._dense("classifier")
        if self.distillation_classifier:
            self._second_classifier = self._dense("distillation_classifier")

    def _dense(self, name):
        layer = keras.layers.Dense(
            self.num_classes,
            dtype=self.dtype_policy,
            name=name,
            **self._initializers(),
        )
        layer.build((None, self.hidden_dim))
        return layer

    def _initializers(self):
        """Returns keyword arguments of a layer; {} keeps its own default."""
        if self.initializer is None:
            return {}
        return {"kernel_initializer": self.initializer.clone()}
