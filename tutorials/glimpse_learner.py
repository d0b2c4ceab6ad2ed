"""What a glimpse network learns from: its guesses, and where it looked."""

import keras
from keras import ops


class GlimpseLearner(keras.Model):
    """Trains a `GlimpseNetwork`, by gradient and by REINFORCE.

    After each look t, the reward is the probability that the network gives to
    the right class, r_t = p_t[y]. A place drawn behind look t answers for all
    rewards that follow, R_t = (r_{t+1} + ... + r_T) / (T - 1). The loss is the
    mean over pictures of

        - sum_t log p_t[y] / T
        - weight sum_t stop_gradient(R_t - b_t) log N(l_{t+1}; m_{t+1})
        + sum_t (R_t - b_t)^2

    Williams 1992, https://doi.org/10.1007/BF00992696; Mnih et al. 2014, sec.
    3.1, whose reward is 1 for a right guess at the end, and 0 else. A network
    that looks at random places learns from its guesses alone.

    Args:
        network: `GlimpseNetwork`.
        weight: float. Of the part that trains the places. Default 0.4.
        **kwargs: arguments of `keras.Model`.

    Call arguments:
        inputs: images, float (B, height, width, 1), and labels, int (B,).
        training: bool. Whether places are drawn around the means.

    Returns:
        Float (B, K), the probabilities after the last look.
    """

    def __init__(self, network, weight=0.4, **kwargs):
        super().__init__(**kwargs)
        self.network = network
        self.weight = weight

    def build(self, shapes):
        """Creates the network's weights; `shapes` of images and labels."""
        if not self.network.built:
            self.network.build(shapes[0])

    def call(self, inputs, training=False):
        """Looks and adds losses; the class docstring lists the arguments."""
        images, labels = inputs
        seen = self.network(images, training=training)
        self.add_loss(self.loss_of(seen, labels))
        return ops.softmax(seen["logits"][:, -1])

    def loss_of(self, seen, labels):
        """Returns the loss of what a network saw, a scalar."""
        logits = seen["logits"]
        right = ops.one_hot(labels, logits.shape[-1])[:, None]
        likelihood = ops.sum(ops.log_softmax(logits) * right, axis=-1)  # (B, T)
        loss = -ops.mean(likelihood)
        if self.network.arguments["random_places"] or logits.shape[1] == 1:
            return loss
        won = still_to_win(ops.stop_gradient(ops.exp(likelihood)))  # (B, T - 1)
        surprise = won - seen["baseline"]
        chosen = ops.stop_gradient(surprise) * seen["log_probability"]
        loss -= self.weight * ops.mean(ops.sum(chosen, axis=1))
        return loss + ops.mean(ops.sum(surprise**2, axis=1))


def still_to_win(rewards):
    """Returns R_t, (B, T - 1), the sum of the rewards behind t over T - 1.

    Args:
        rewards: float (B, T).
    """
    # From the last to the first, so that the sum runs over what follows.
    backwards = ops.flip(rewards[:, 1:], axis=1)
    sums = ops.flip(ops.cumsum(backwards, axis=1), axis=1)
    return sums / sums.shape[1]
