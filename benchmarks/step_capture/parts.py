"""Greedy decoding with parts of the step capture turned off."""

from unittest import mock

from benchmarks.decoding import ours
from keras_attn.backend import captured_step
from keras_attn.backend.capturing import codegen


def prepare(case, without=""):
    """Returns a callable that decodes batches.

    Args:
        case: dict of sizes.
        without: str. The part that is turned off: `"lowering"`,
            `"loop_invariants"` or `"codegen"`, which includes the others.
            Default: none.
    """
    run = ours.prepare(case)
    makers = {
        "": codegen.generate_step,
        "lowering": _generate_without_lowering,
        "loop_invariants": _generate_without_invariants,
        "codegen": _graph_module,
    }

    def decode(steps):
        # Private: users cannot turn parts off.
        with mock.patch.dict(captured_step._MAKERS, captured=makers[without]):
            return run(steps)

    return decode


def _generate_without_lowering(module, moving):
    def unchanged(node):
        return node.target, node.args, node.kwargs

    with mock.patch.object(codegen, "lower", unchanged):
        return codegen.generate_step(module, moving)


def _generate_without_invariants(module, moving):
    def weights(graph, moving):
        inputs = [n for n in graph.nodes if n.op == "placeholder"]
        constants = {n for n in graph.nodes if n.op == "get_attr"}
        return constants | {
            node for index, node in enumerate(inputs) if index not in moving
        }

    with mock.patch.multiple(
        codegen,
        loop_invariant_nodes=weights,
        redundant_selects=lambda graph, invariant: {},
    ):
        return codegen.generate_step(module, moving)


def _graph_module(module, moving):
    module.recompile()

    def bind(*bound):
        values, fixed = bound[: moving.start], bound[moving.start :]
        return lambda *inputs: module.forward(list(values), [*inputs, *fixed])

    return bind
