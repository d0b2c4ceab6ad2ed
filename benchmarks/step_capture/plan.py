"""Contestants and sizes of the step capture benchmark."""

from benchmarks.decoding import plan as decoding
from benchmarks.decoding.task import flops, tokens
from benchmarks.harness.contestant import Contestant

__all__ = ["flops", "tokens"]

TITLE = "Parts of the step capture on PyTorch"
ROUNDS = 9
STEPS = 4


def _case(case, layers, width, **sizes):
    column = f"{layers} + {layers} layers of width {width}"
    return {
        **case,
        "name": column,
        "title": "Greedy decoding of one sentence",
        "column": column,
        "steps": STEPS,
        "layers": layers,
        "width": width,
        **sizes,
    }


CASES = [
    _case(decoding.CASES[0], 3, 256),
    _case(decoding.CASES[0], 6, 512, heads=8, inner=2048),
]
QUICK_CASES = [_case(decoding.QUICK_CASES[0], 2, 16)]

NOTES = [
    "`model.generate(sources, max_new_tokens=64)` of the decoding benchmark's "
    "model and of a larger one, float32. In all rows the steps are captured as "
    "a graph and simplified, and the tokens are the same.",
    "*No code generation*: the graph runs as a recompiled "
    "`torch.fx.GraphModule`. *No loop invariants*: what depends only on "
    "weights and source is computed in every step. *No lowering*: operations "
    "are called through `torch.ops`.",
    "Medians of ROUNDS measurements of 4 sentences, each contestant in its own "
    "process, taking turns. **Bold**: how many times as fast as without code "
    "generation.",
]

_GRAPH_MODULE = "no code generation"
CONTESTANTS = [
    Contestant(
        name,
        "torch",
        "benchmarks.step_capture.parts",
        {"without": without},
        "" if name == _GRAPH_MODULE else _GRAPH_MODULE,
    )
    for name, without in (
        ("all parts", ""),
        ("no lowering", "lowering"),
        ("no loop invariants", "loop_invariants"),
        (_GRAPH_MODULE, "codegen"),
    )
]
