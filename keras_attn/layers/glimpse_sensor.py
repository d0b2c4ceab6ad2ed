"""A look at an image: sharp in the middle, coarse around it."""

import keras
from keras import ops

from keras_attn import checks


@keras.saving.register_keras_serializable(package="keras_attn")
class GlimpseSensor(keras.layers.Layer):
    """Cuts patches of several resolutions out of an image, at a location.

    Patch j, j = 0 ... k - 1, is a square of 2^j g pixels around the location,
    each of its g x g outputs the mean of 2^j x 2^j pixels. What lies outside
    of the image is 0. The retina of Mnih et al. 2014, sec. 3.1,
    https://arxiv.org/abs/1406.6247, without weights; their glimpse network
    stands behind it.

    A location (x, y) is (0, 0) in the middle of the image, (-1, -1) at its top
    left corner and (1, 1) at its bottom right one. Patches lie on whole pixels,
    so that there is no gradient at the location: where to look is learned by
    `Reinforce`. There is one at the image.

    Args:
        patch_size: int >= 1. g, in outputs (in pixels for the first patch).
        num_patches: int >= 1. k. Default 3.
        **kwargs: arguments of `keras.layers.Layer`: `name`, `dtype`, ...

    Call arguments:
        images: float (B, height, width, C).
        locations: float (B, 2), x and y.

    Returns:
        Float (B, k, g, g, C), the sharpest patch first.

    Raises:
        ValueError: an argument out of range, or other ranks or shapes.

    Examples:
        >>> sensor = keras_attn.layers.GlimpseSensor(4, num_patches=2)
        >>> images = keras.ops.ones((1, 8, 8, 3))
        >>> patches = sensor(images, keras.ops.zeros((1, 2)))
        >>> tuple(patches.shape), float(keras.ops.mean(patches))
        ((1, 2, 4, 4, 3), 1.0)
    """

    def __init__(self, patch_size, num_patches=3, **kwargs):
        checks.positive_int("patch_size", patch_size)
        checks.positive_int("num_patches", num_patches)
        # A location in half precision would be pixels off.
        super().__init__(autocast=False, **kwargs)
        self.patch_size = patch_size
        self.num_patches = num_patches

    def build(self, images_shape, locations_shape):
        """Checks the shapes: there is no weight."""
        self._check_shapes(images_shape, locations_shape)

    def call(self, images, locations):
        """Cuts; the class docstring lists the arguments."""
        self._check_shapes(images.shape, locations.shape)
        images = ops.cast(images, self.compute_dtype)
        locations = ops.cast(locations, "float32")
        _, height, width, _ = ops.shape(images)
        patches = []
        for patch in range(self.num_patches):
            rows = self._means(locations[:, 1], height, 2**patch)
            columns = self._means(locations[:, 0], width, 2**patch)
            # (B, g, H) (B, H, W, C) (B, g, W) -> (B, g, g, C)
            patches.append(
                ops.einsum("bih,bhwc,bjw->bijc", rows, images, columns)
            )
        return ops.stack(patches, axis=1)

    def _means(self, centres, length, factor):
        """The mean of each output over the pixels of one axis, (B, g, axis)."""
        pixels = ops.arange(length, dtype="int32")
        centres = (centres + 1) / 2 * ops.cast(length, "float32")
        first = ops.floor(centres - self.patch_size * factor / 2 + 0.5)
        offset = pixels - ops.cast(first, "int32")[:, None]
        outputs = ops.arange(self.patch_size, dtype="int32") * factor
        offset = offset[:, None] - outputs[:, None]
        inside = ops.logical_and(offset >= 0, offset < factor)
        return ops.cast(inside, self.compute_dtype) / factor

    def compute_output_shape(self, images_shape, locations_shape):
        """Returns the shape of the patches."""
        self._check_shapes(images_shape, locations_shape)
        size = self.patch_size
        return images_shape[0], self.num_patches, size, size, images_shape[-1]

    def get_config(self):
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
                "for each image. "
                f"Received: locations of shape {locations_shape}"
            )
