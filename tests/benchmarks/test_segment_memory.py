"""All contestants read the same tokens, and score each of them once."""

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
    # What stands before a window's tokens is what the text has there.
    text = task.text(CASE)
    for number, window in enumerate(windows):
        start = number * step
        np.testing.assert_array_equal(window, text[start : start + len(window)])


@pytest.mark.parametrize("contestant", OURS, ids=lambda one: one.name)
def test_they_read(contestant):
    if contestant.needs:
        pytest.importorskip(contestant.needs)
    module = importlib.import_module(contestant.module)
    run = module.prepare(CASE, **(contestant.options or {}))
    assert np.isfinite(run(2))
