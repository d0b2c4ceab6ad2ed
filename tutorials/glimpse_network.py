"""A network that looks at a picture through a few small glimpses."""

import keras
import numpy as np
from keras import ops

from keras_attn.layers import GlimpseSensor


@keras.saving.register_keras_serializable(package="tutorials")
class GlimpseNetwork(keras.Model):
    """Looks at a picture T times, and guesses after each look.

    With the patches of a look at l_t, the sensor's outputs in a row,

        g_t = relu(W_what relu(patches W_p) + W_where relu(l_t W_l))
        h_t = GRU(h_{t-1}, g_t)
        logits_t = h_t W_a,    b_t = h_t . w_b
        m_{t+1} = l_t + tanh([h_t; patches] W_m)
        l_{t+1} = m_{t+1} + deviation * noise

    Mnih et al. 2014, sec. 3, https://arxiv.org/abs/1406.6247; their core is
    made of rectified units, this one is a GRU, and it guesses after each look.
    The noise is normal, and only there in training: else the mean is looked
    at. The first look is at the middle. A place cannot be differentiated: the
    gradient ends at l_{t+1}, and its log-probability takes it as given.

    Args:
        classes: int >= 2. K. Default 10.
        glimpses: int >= 1. T. Default 6.
        patch_size: int >= 1. g. Default 8.
        num_patches: int >= 1. k. Default 3.
        width: int >= 1. D, of g_t and h_t. Default 128.
        deviation: float > 0. Of the noise; 1 is half a canvas. Default 0.1.
        random_places: bool. Whether it looks at places drawn uniformly from
            the whole picture, in training and else. Default False.
        seed: int. Of the noise and the places. Default None.
        **kwargs: arguments of `keras.Model`.

    Call arguments:
        images: float (B, height, width, 1).
        training: bool. Whether places are drawn around the means.

    Returns:
        Dict: `logits` (B, T, K); `places` (B, T, 2), x and y as in
        `GlimpseSensor`; `log_probability` (B, T - 1), of the places behind
        the first, and `baseline` (B, T - 1), of what is still to be won
        when they are drawn.
    """

    def __init__(
        self,
        classes=10,
        glimpses=6,
        patch_size=8,
        num_patches=3,
        width=128,
        deviation=0.1,
        random_places=False,
        seed=None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.arguments = {
            "classes": classes,
            "glimpses": glimpses,
            "patch_size": patch_size,
            "num_patches": num_patches,
            "width": width,
            "deviation": deviation,
            "random_places": random_places,
            "seed": seed,
        }
        dense = keras.layers.Dense
        self.sensor = GlimpseSensor(patch_size, num_patches)
        self.patches = dense(width, activation="relu", name="patches")
        self.place = dense(width // 2, activation="relu", name="place")
        self.what = dense(width, name="what")
        self.where = dense(width, name="where")
        self.core = keras.layers.GRUCell(width, name="core")
        self.guess = dense(classes, name="guess")
        # Nothing is known yet of where to go: it begins by staying.
        self.move = dense(
            2, activation="tanh", kernel_initializer="zeros", name="move"
        )
        self.baseline = dense(1, name="baseline")
        # Who chooses nothing has nothing to learn about it.
        self.move.trainable = self.baseline.trainable = not random_places
        gains = np.repeat(2.0 ** np.arange(num_patches), patch_size**2)
        self.gains = gains.astype("float32")
        self.seeds = keras.random.SeedGenerator(seed)

    def build(self, images_shape):
        """Creates all weights; `images_shape` is that of the images."""
        size, width = self.arguments["patch_size"], self.arguments["width"]
        pixels = self.arguments["num_patches"] * size**2 * images_shape[-1]
        self.patches.build((None, pixels))
        self.place.build((None, 2))
        self.what.build((None, width))
        self.where.build((None, width // 2))
        self.move.build((None, width + pixels))
        for layer in (self.core, self.guess, self.baseline):
            layer.build((None, width))

    def see(self, images, places):
        """Returns what the sensor sees at `places`, (B, k g g) in a row."""
        patches = self.sensor(images, places)  # (B, k, g, g, 1)
        patches = ops.reshape(patches, (ops.shape(patches)[0], -1))
        # A mean over many pixels is dim: a digit fills little of it.
        return ops.multiply(patches, self.gains)

    def glimpse(self, patches, places):
        """Returns g_t, (B, D), of patches and where they were seen, (B, 2)."""
        what = self.what(self.patches(patches))
        where = self.where(self.place(places))
        return ops.relu(what + where)

    def call(self, images, training=False):
        """Looks; the class docstring lists the arguments."""
        B, T = ops.shape(images)[0], self.arguments["glimpses"]
        state = ops.zeros((B, self.arguments["width"]))  # h
        place = ops.zeros((B, 2))
        logits, places, log_probability, baseline = [], [], [], []
        for step in range(T):
            patches = self.see(images, place)
            state, _ = self.core(self.glimpse(patches, place), [state])
            logits.append(self.guess(state))
            places.append(place)
            if step < T - 1:
                # What is won must not shape the state: only the guess and
                # the places may.
                value = self.baseline(ops.stop_gradient(state))
                baseline.append(value[:, 0])
                mean = place + self.move(ops.concatenate([state, patches], -1))
                drawn = self.draw(mean, training)
                log_probability.append(self.log_density(drawn, mean))
                place = ops.clip(drawn, -1, 1)
        empty = ops.zeros((B, 0))
        return {
            "logits": ops.stack(logits, axis=1),
            "places": ops.stack(places, axis=1),
            "log_probability": ops.stack(log_probability, axis=1)
            if T > 1
            else empty,
            "baseline": ops.stack(baseline, axis=1) if T > 1 else empty,
        }

    def draw(self, mean, training):
        """Returns the places to look at next, (B, 2), without a gradient."""
        shape = ops.shape(mean)
        if self.arguments["random_places"]:
            return keras.random.uniform(shape, -1, 1, seed=self.seeds)
        if training:
            noise = keras.random.normal(shape, seed=self.seeds)
            mean = mean + self.arguments["deviation"] * noise
        return ops.stop_gradient(mean)

    def log_density(self, places, mean):
        """Returns log N(places; mean, deviation^2), (B,), but for a constant.

        The constant has no gradient.
        """
        steps = (places - mean) / self.arguments["deviation"]
        return -ops.sum(steps**2, axis=-1) / 2

    def get_config(self):
        """Returns the constructor's arguments."""
        return {**super().get_config(), **self.arguments}
