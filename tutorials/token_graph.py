"""What must be computed before what: networks over tokens as graphs.

A graph is a list of layers. A layer is a list with an entry for each of its
tokens: `Needs(below, beside)`. `below` are the places in the layer below that
a token is computed from, `beside` those in its own layer, all of them earlier
ones. The layer at the bottom is the input, and is not in the list.
"""

from typing import NamedTuple

import numpy as np


class Needs(NamedTuple):
    """What one token of a layer is computed from.

    Args:
        below: range, places in the layer below.
        beside: range, earlier places in the same layer.
    """

    below: range
    beside: range


def recurrent(length):
    """A layer that reads one token after the other.

    Args:
        length: int. N, tokens.

    Returns:
        Graph of one layer: token t needs input t and token t - 1.
    """
    return [
        [Needs(range(t, t + 1), range(max(0, t - 1), t)) for t in range(length)]
    ]


def convolutional(length, size, dilations):
    """Causal convolutions, one on top of the other.

    Args:
        length: int. N, tokens.
        size: int. Taps of a kernel.
        dilations: list of int, for each layer from the lowest how far its taps
            are apart.

    Returns:
        Graph with a layer for each dilation: token t needs, of the layer
        below, the tokens t, t - dilation, t - 2 dilation, ...
    """
    layers = []
    for gap in dilations:
        layer = []
        for t in range(length):
            first = max(t - (size - 1) * gap, t % gap)
            layer.append(Needs(range(first, t + 1, gap), range(0)))
        layers.append(layer)
    return layers


def self_attention(length):
    """A layer in which every token looks at all.

    Args:
        length: int. N, tokens.

    Returns:
        Graph of one layer: token t needs every input.
    """
    return [[Needs(range(length), range(0)) for _ in range(length)]]


def steps(graph):
    """Counts the steps that must be taken one after the other.

    A token is computed in one step, once all that it needs is there; tokens
    that do not need each other are computed at the same time.

    Args:
        graph: a graph.

    Returns:
        Int: the longest chain of needs.
    """
    depth = np.zeros(len(graph[0]), "int64")
    return int(_passed(graph, depth, max).max())


def distances(graph, place):
    """Counts how many computations lie between an input and each output.

    Args:
        graph: a graph.
        place: int. Of the input token.

    Returns:
        Float (N,): for each token of the highest layer the length of the
        shortest path from that input; inf where there is none.
    """
    start = np.full(len(graph[0]), np.inf)
    start[place] = 0
    return _passed(graph, start, min)


def reach(graph):
    """Says which outputs each input can change.

    Args:
        graph: a graph.

    Returns:
        Bool (N, N): output t (rows) depends on input s (columns).
    """
    columns = [distances(graph, place) for place in range(len(graph[0]))]
    return np.isfinite(np.stack(columns, axis=1))


def _passed(graph, values, choose):
    """Carries values from the input to the highest layer, one more a step."""
    reduce = np.max if choose is max else np.min
    for layer in graph:
        above = np.zeros(len(layer))
        for t, (below, beside) in enumerate(layer):
            found = reduce(values[_slice(below)])
            if beside:
                found = choose(found, reduce(above[_slice(beside)]))
            above[t] = found + 1
        values = above
    return values


def _slice(places):
    return slice(places.start, places.stop, places.step)
