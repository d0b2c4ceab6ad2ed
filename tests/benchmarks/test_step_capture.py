"""Decoding without parts of the step capture gives the same tokens."""

from unittest import mock

import keras
import pytest

from benchmarks.step_capture import parts, plan
from keras_attn.backend.capturing import codegen

pytestmark = [
    pytest.mark.captured_steps,
    pytest.mark.skipif(
        keras.backend.backend() != "torch", reason="PyTorch captures"
    ),
]
CASE = plan.QUICK_CASES[0]
CALLS = {
    "": {"lower", "loop_invariant_nodes", "redundant_selects"},
    "lowering": {"loop_invariant_nodes", "redundant_selects"},
    "loop_invariants": {"lower"},
    "codegen": set(),
}


@pytest.mark.parametrize("without", CALLS)
def test_only_the_named_part_is_turned_off(without):
    expected = parts.ours.prepare(CASE)(2)
    run = parts.prepare(CASE, without=without)
    spies = {
        name: mock.Mock(wraps=getattr(codegen, name)) for name in CALLS[""]
    }
    with mock.patch.multiple(codegen, **spies):
        assert run(2) == expected
    assert {name for name, spy in spies.items() if spy.called} == CALLS[without]


def test_contestants_name_the_parts():
    given = [one.options["without"] for one in plan.CONTESTANTS]
    assert sorted(given) == sorted(CALLS)
