"""Order of reads and updates of weights in TensorFlow's training graphs.

Keras joins all gradients in one operation before the updates. TensorFlow
infers that every update follows all reads, drops the explicit dependencies, and
then removes that operation. An update still waits for all inputs of its
gradient: for all weights, unless the loss is linear in the outputs. See the
guide on backends.
"""

import pathlib
import re
import runpy

import keras
import numpy as np
import pytest

from keras_attn.training import SequenceCrossentropy, freeze
from tests.helpers.processes import Process
from tests.helpers.tiny_models import LABELS, SOURCE, TARGET, tiny_transformer

pytestmark = pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="reads TensorFlow graphs"
)

# On a GPU, Keras would use XLA.
AS_A_GRAPH = {"jit_compile": False}
RANDOM = np.random.default_rng(0)
UPDATE = "AssignSubVariableOp"
X, Y = RANDOM.normal(size=(2, 4, 8)).astype("float32")


def graphs_of_a_step(model, x, y):
    """Returns the graphs of a step before and after optimization."""
    from tensorflow.python.eager import context

    context.context().enable_graph_collection()
    try:
        model.train_on_batch(x, y)
        graphs = context.context().export_run_metadata().function_graphs
    finally:
        context.context().disable_graph_collection()
    before = [graph.pre_optimization_graph for graph in graphs]
    after = [graph.post_optimization_graph for graph in graphs]
    for side in before, after:
        updates = [x for graph in side for x in graph.node if x.op == UPDATE]
        assert len(updates) >= len(model.trainable_weights)
    return before, after


def unordered(graph):
    """Returns the (update, read) pairs of a variable that are unordered."""
    inputs = {
        node.name: [name.lstrip("^").split(":")[0] for name in node.input]
        for node in graph.node
    }
    variables = [node.name for node in graph.node if node.op == "_Arg"]
    updates = {
        node.name
        for node in graph.node
        if node.op.startswith("Assign") and node.op.endswith("VariableOp")
    }

    def ancestors(name):
        found, left = set(), [name]
        while left:
            new = set(inputs[left.pop()]) - found
            found |= new
            left += new
        return found

    return [
        (update, read)
        for variable in variables
        for update in updates
        if variable in inputs[update]
        for read in inputs.keys() - updates
        if variable in inputs[read]
        and read not in ancestors(update)
        and update not in ancestors(read)
    ]


def found_in(graphs):
    return [pair for graph in graphs for pair in unordered(graph)]


def dense_stack():
    names = "first", "second", "third"
    dense = [keras.layers.Dense(8, name=name) for name in names]
    return keras.Sequential([keras.Input((8,)), *dense])


def linear(y_true, y_pred):
    return keras.ops.sum(y_true * y_pred, axis=-1)


def test_transformer_training_is_ordered():
    model = tiny_transformer(dropout=0.1)
    model.compile("adam", SequenceCrossentropy(), **AS_A_GRAPH)
    before, after = graphs_of_a_step(model, (SOURCE, TARGET), LABELS)
    assert not found_in(before) and not found_in(after)


def test_nonlinear_loss_is_ordered():
    model = dense_stack()
    model.compile("sgd", "mean_absolute_error", **AS_A_GRAPH)
    _, after = graphs_of_a_step(model, X, Y)
    assert not found_in(after)


def test_linear_loss_is_unordered():
    """If this fails, remove the pitfall from the guide on backends."""
    model = dense_stack()
    model.compile("sgd", linear, **AS_A_GRAPH)
    before, after = graphs_of_a_step(model, X, Y)
    assert not found_in(before) and found_in(after)


def test_linear_loss_with_one_trainable_weight_is_ordered():
    model = dense_stack()
    freeze(model, "^(?!.*first/kernel)")
    assert len(model.trainable_weights) == 1
    model.compile("sgd", linear, **AS_A_GRAPH)
    _, after = graphs_of_a_step(model, X, Y)
    assert not found_in(after)


def test_script_of_the_backends_guide():
    """Only the count of the linear loss as a graph depends on timing."""
    guides = pathlib.Path(__file__).parents[2] / "docs" / "guides"
    status, output = Process(
        runpy.run_path, str(guides / "linear_loss.py")
    ).wait()
    assert status == 0, output[-3000:]
    page = (guides / "backends.md").read_text(encoding="utf-8")
    counts = r"^(\S.*?) +(\d+) of 60 steps wrong$"
    printed, told = (
        dict(re.findall(counts, text, re.M)) for text in (output, page)
    )
    assert printed.keys() == told.keys()
    for name in printed.keys() - {"linear, as a graph"}:
        assert printed[name] == told[name] == "0", name
    assert len(told) == 4
