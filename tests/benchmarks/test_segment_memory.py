"""Segment memory contestants read the same tokens and score each once."""

import importlib

import keras
import numpy as np
import pytest

from benchmarks.segment_memory import plan, task

CASE = plan.QUICK_CASES[0]
OURS = [
    contestant
    for contestant in plan.CONTESTANTS
    if contestant.backend == keras.backend.backend()
]


@pytest.mark.parametrize("step", [1, CASE["segment"]])
def test_windows_score_each_token_once(step):
    windows = task.windows(CASE, step)
    assert windows.shape[1] == CASE["memory"] + step
    scored = task.lines(CASE).ravel()
    np.testing.assert_array_equal(windows[:, -step:].ravel(), scored)
    assert task.tokens(CASE) == len(scored)
    # The context of a window is the preceding text.
    text = task.text(CASE)
    for number, window in enumerate(windows):
        start = number * step
        np.testing.assert_array_equal(window, text[start : start + len(window)])


@pytest.mark.parametrize("contestant", OURS, ids=lambda one: one.name)
def test_contestants_run(contestant):
    if contestant.needs:
        pytest.importorskip(contestant.needs)
    module = importlib.import_module(contestant.module)
    run = module.prepare(CASE, **(contestant.options or {}))
    assert np.isfinite(run(2))
