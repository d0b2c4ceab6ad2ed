"""plot_training: curves, labels and invalid arguments."""

import numpy as np
import pytest

from keras_attn.explain import plot_training

pytestmark = pytest.mark.one_backend

RNG = np.random.default_rng(0)


def curves(axes):
    return {line.get_label(): line.get_xydata() for line in axes.lines}


def test_short_training_is_not_smoothed():
    figure = plot_training([4.0, 3.0, 2.5], [(1, 3.5), (3, 2.4)])
    (axes,) = figure.axes
    drawn = curves(axes)
    np.testing.assert_allclose(drawn["training"], [(1, 4), (2, 3), (3, 2.5)])
    np.testing.assert_allclose(drawn["validation"], [(1, 3.5), (3, 2.4)])


def test_windows_end_at_their_last_batch():
    losses = RNG.normal(size=1000)
    (axes,) = plot_training(losses).axes
    drawn = curves(axes)
    assert set(drawn) == {"training"}
    x, y = drawn["training"].T
    assert x[0] == 10 and x[-1] == 1000
    expected = [losses[int(end) - 10 : int(end)].mean() for end in x]
    np.testing.assert_allclose(y, expected)


def test_learning_rates_have_their_own_axes():
    rates = [0.1, 0.2, 0.3]
    figure = plot_training([3, 2, 1], (), rates, ylabel="nats per token")
    left, right = figure.axes
    assert left.get_ylabel() == "nats per token"
    np.testing.assert_allclose(right.lines[0].get_ydata(), rates)


@pytest.mark.parametrize(
    "name, value",
    [
        ("losses", []),
        ("losses", [[1.0]]),
        ("losses", "abc"),
        ("losses", None),
        ("validation", [1, 2]),
        ("validation", [(1, 2, 3)]),
        ("learning_rates", [0.1]),
        ("ylabel", 3),
    ],
)
def test_bad_arguments(name, value):
    arguments = {"losses": [2.0, 1.0], name: value}
    with pytest.raises(ValueError, match=f"`{name}` must"):
        plot_training(**arguments)
