"""Multi-resolution glimpses of an image."""

from typing import TYPE_CHECKING, Any

import keras
from keras import ops

from keras_attn import checks
from keras_attn.backend import TorchNames
from keras_attn.layers.checked_call import CheckedCall
from keras_attn.typing import Shape, Tensor, TensorLike

_LARGEST, _MOST = 4096, 16


@keras.saving.register_keras_serializable(package="keras_attn")
class GlimpseSensor(CheckedCall, TorchNames, keras.layers.Layer):
    """Extracts patches of several resolutions at a location of an image.

    Patch j, j = 0 ... k - 1, is a square of 2^j g pixels around the location,
    averaged over 2^j x 2^j pixels to g x g outputs. Pixels outside the image
    are 0. This is the retina of Mnih et al. 2014, sec. 3.1,
    https://arxiv.org/abs/1406.6247, without weights; their glimpse network
    is applied after it.

    Location (x, y) = (0, 0) is the center of the image, (-1, -1) its top left
    corner and (1, 1) its bottom right corner. Patches are aligned to whole
    pixels, so the location has no gradient and is learned with `Reinforce`. The
    image has a gradient.

    Args:
        patch_size: int >= 1. g, outputs per side (pixels for the first patch).
        num_patches: int >= 1. k. Default 3.
        **kwargs: arguments of `keras.layers.Layer`: `name`, `dtype`, ...

    Call arguments:
        images: float (B, height, width, C).
        locations: float (B, 2), x and y.

    Returns:
        Float (B, k, g, g, C), from the finest to the coarsest patch.

    Raises:
        ValueError: an argument is out of range, or a shape does not match.

    Examples:
        >>> sensor = keras_attn.layers.GlimpseSensor(4, num_patches=2)
        >>> images = keras.ops.ones((1, 8, 8, 3))
        >>> patches = sensor(images, keras.ops.zeros((1, 2)))
        >>> tuple(patches.shape), float(keras.ops.mean(patches))
        ((1, 2, 4, 4, 3), 1.0)
    """

    _tensors = "images", "locations"

    def __init__(
        self, patch_size: int, num_patches: int = 3, **kwargs: Any
    ) -> None:
        checks.integer("patch_size", patch_size, 1, _LARGEST)
        # Patch n covers 2^n times the size of the first.
        checks.integer("num_patches", num_patches, 1, _MOST)
        # In half precision, a location would be off by whole pixels.
        super().__init__(autocast=False, **kwargs)
        self.patch_size = patch_size
        self.num_patches = num_patches

    def build(self, images_shape: Shape, locations_shape: Shape) -> None:
        """Checks the shapes; there are no weights."""
        self._check_shapes(images_shape, locations_shape)

    def call(self, images: TensorLike, locations: TensorLike) -> Tensor:
        """Extracts patches; the class docstring lists the arguments."""
        self._check_shapes(images.shape, locations.shape)
        checks.no_complex("images", images)
        checks.no_complex("locations", locations)
        images = ops.cast(images, self.compute_dtype)
        locations = ops.cast(locations, "float32")
        _, height, width, _ = ops.shape(images)
        patches = []
        for patch in range(self.num_patches):
            rows = self._averaging_weights(locations[:, 1], height, 2**patch)
            columns = self._averaging_weights(locations[:, 0], width, 2**patch)
            # (B, g, H) (B, H, W, C) (B, g, W) -> (B, g, g, C)
            patches.append(
                ops.einsum("bih,bhwc,bjw->bijc", rows, images, columns)
            )
        return ops.stack(patches, axis=1)

    if TYPE_CHECKING:
        __call__ = call

    def _averaging_weights(self, centers, length, factor):
        """Averaging weights of the outputs along one axis, (B, g, length)."""
        pixels = ops.arange(length, dtype="int32")
        centers = (centers + 1) / 2 * ops.cast(length, "float32")
        first = ops.floor(centers - self.patch_size * factor / 2 + 0.5)
        offset = pixels - ops.cast(first, "int32")[:, None]
        outputs = ops.arange(self.patch_size, dtype="int32") * factor
        offset = offset[:, None] - outputs[:, None]
        inside = ops.logical_and(offset >= 0, offset < factor)
        return ops.cast(inside, self.compute_dtype) / factor

    def compute_output_shape(
        self, images_shape: Shape, locations_shape: Shape
    ) -> Shape:
        """Returns the shape of the patches."""
        self._check_shapes(images_shape, locations_shape)
        size = self.patch_size
        return images_shape[0], self.num_patches, size, size, images_shape[-1]

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        return {
            **super().get_config(),
            "patch_size": self.patch_size,
            "num_patches": self.num_patches,
        }

    def _check_shapes(self, images_shape, locations_shape):
        images_shape, locations_shape = map(
            tuple, (images_shape, locations_shape)
        )
        if len(images_shape) != 4:
            raise ValueError(
                "`images` must have rank 4, for (batch, height, width, "
                f"channels). Received: images of shape {images_shape}"
            )
        if not checks.fits(locations_shape, (images_shape[0], 2)):
            raise ValueError(
                f"`locations` must have shape {(images_shape[0], 2)}, x and y "
                "per image. "
                f"Received: locations of shape {locations_shape}"
            )
