"""Measures of the tutorial on the claims about attention."""

import itertools

import input_gradients
import keras
import numpy as np
import pytest
import recall_task
import token_graph
import why_attention_settings

GRAPHS = {
    "recurrent": token_graph.recurrent(7),
    "one convolution": token_graph.convolutional(7, 3, [1]),
    "convolutions": token_graph.convolutional(7, 2, [1, 2, 4]),
    "far taps": token_graph.convolutional(7, 3, [2, 3]),
    "self-attention": token_graph.self_attention(7),
    "two layers": token_graph.self_attention(7) + token_graph.recurrent(7),
}


def edges_of(graph):
    """Returns edges between (layer, token) pairs; layer 0 is the input."""
    for number, layer in enumerate(graph, start=1):
        for token, (below, beside) in enumerate(layer):
            for position in below:
                yield (number - 1, position), (number, token)
            for position in beside:
                yield (number, position), (number, token)


def all_paths(graph):
    """Returns {(input, output): set of path lengths} by enumeration."""
    following = {}
    for start, end in edges_of(graph):
        following.setdefault(start, []).append(end)
    found, top = {}, len(graph)

    def walk(node, origin, length):
        if node[0] == top:
            found.setdefault((origin, node[1]), set()).add(length)
        for after in following.get(node, ()):
            walk(after, origin, length + 1)

    for position in range(len(graph[0])):
        walk((0, position), position, 0)
    return found


@pytest.mark.parametrize("name", GRAPHS)
def test_paths_and_steps_match_enumeration(name):
    graph = GRAPHS[name]
    paths, reach = all_paths(graph), token_graph.reach(graph)
    for origin, output in itertools.product(range(7), repeat=2):
        expected = min(paths.get((origin, output), {np.inf}))
        assert token_graph.distances(graph, origin)[output] == expected
        assert reach[output, origin] == np.isfinite(expected)
    assert token_graph.steps(graph) == max(map(max, paths.values()))


def test_convolution_depths():
    (layer,) = token_graph.convolutional(5, 3, [2])
    assert [list(needs.below) for needs in layer] == [
        *([0], [1], [0, 2], [1, 3], [0, 2, 4])
    ]
    assert all(not needs.beside for needs in layer)


@pytest.mark.parametrize("length", [2, 16, 40])
def test_steps_of_the_three_networks(length):
    gaps = [2**i for i in range((length - 1).bit_length())]
    assert token_graph.steps(token_graph.recurrent(length)) == length
    convolutions = token_graph.convolutional(length, 2, gaps)
    assert token_graph.steps(convolutions) == len(gaps)
    assert token_graph.reach(convolutions)[-1].all()
    fewer = token_graph.convolutional(length, 2, gaps[:-1] or [2])
    assert not token_graph.reach(fewer)[-1].all()
    assert token_graph.steps(token_graph.self_attention(length)) == 1


def test_answer_to_the_exercise():
    gaps = [3**i for i in range(7)]
    graph = token_graph.convolutional(2048, 3, gaps)
    assert token_graph.steps(graph) == 7
    assert token_graph.distances(graph, 0)[-1] == 7
    fewer = token_graph.convolutional(2048, 3, gaps[:-1])
    assert np.isinf(token_graph.distances(fewer, 0)[-1])


def test_gradients_of_a_recurrent_layer_match_numpy():
    """h_t = tanh(x_t W + h_(t-1) U), by the chain rule in NumPy."""
    rows, length, width = 2, 5, 3
    generator = np.random.default_rng(1)
    inputs = generator.normal(size=(rows, length, width))
    direction = generator.normal(size=(rows, width))
    layer = keras.layers.SimpleRNN(width, return_sequences=True)
    found = input_gradients.input_gradients(layer, inputs, direction)
    w, u, b = (x.astype("float64") for x in layer.get_weights())
    states, state = [], np.zeros((rows, width))
    for t in range(length):
        state = np.tanh(inputs[:, t] @ w + state @ u + b)
        states.append(state)
    expected, at_state = np.zeros_like(inputs), direction
    for t in reversed(range(length)):
        inner = at_state * (1 - states[t] ** 2)
        expected[:, t] = inner @ w.T
        at_state = inner @ u.T
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_gradients_do_not_change_the_layer():
    layer = keras.layers.Dense(2)
    layer.build((None, 4, 3))
    before = layer.get_weights()
    input_gradients.input_gradients(layer, np.ones((1, 4, 3)), np.ones((1, 2)))
    for old, new in zip(before, layer.get_weights(), strict=True):
        np.testing.assert_array_equal(old, new)


@pytest.mark.parametrize(
    "inputs, direction", [((4, 3), (4, 3)), ((2, 4, 3), (1, 3))]
)
def test_invalid_gradient_arguments_raise(inputs, direction):
    with pytest.raises(ValueError, match="`inputs` must be of shape"):
        input_gradients.input_gradients(
            keras.layers.Dense(3), np.ones(inputs), np.ones(direction)
        )


def test_each_row_has_one_capital():
    data = recall_task.draw(1000, 12, seed=2)
    assert data.tokens.shape == (1000, 12)
    for tokens, answer, distance in zip(*data, strict=True):
        text = recall_task.text(tokens)
        assert text[-1] == "?" and text[:-1].isalpha()
        capitals = [i for i, letter in enumerate(text) if letter.isupper()]
        assert capitals == [11 - distance]
        assert text[capitals[0]] == recall_task.CAPITALS[answer]
    assert set(data.distances.tolist()) == set(range(1, 12))
    assert set(data.answers.tolist()) == set(range(8))


def test_draws_are_deterministic():
    first, again, other = (recall_task.draw(9, 5, seed=s) for s in (1, 1, 2))
    for one, same, different in zip(first, again, other, strict=True):
        np.testing.assert_array_equal(one, same)
        assert (one != different).any()


def test_averages_by_distance():
    right = [True, False, True, True, False]
    distances = [1, 2, 5, 40, 8]
    found = recall_task.by_distance(right, distances, [1, 3, 9, 20])
    np.testing.assert_allclose(found, [0.5, 0.5, np.nan])
    below = recall_task.by_distance(right, distances, [2, 6])
    np.testing.assert_allclose(below, [0.5])


@pytest.mark.parametrize("arguments", [(-1, 5), (3, 1)])
def test_invalid_row_arguments_raise(arguments):
    with pytest.raises(ValueError, match=r"Received: (count=-1|length=1)"):
        recall_task.draw(*arguments)


def test_settings():
    run = why_attention_settings.read({})
    assert why_attention_settings.is_default(run)
    quick = why_attention_settings.read({"QUICK": "1"})
    assert quick.blocks == 1 and not why_attention_settings.is_default(quick)
    assert why_attention_settings.is_default(run._replace(longest=64))
