"""Runs the programs of `examples/distributed` in several processes."""

import os
import re
import runpy
import sys
from typing import NamedTuple
from unittest import mock

import keras
import numpy as np

from tests.helpers.processes import Process
from tests.helpers.programs import ROOT

FOLDER = ROOT / "examples" / "distributed"
# Seconds after which a process that waits for others must end.
TIMEOUT = 240


class Trained(NamedTuple):
    """What a program saved and printed."""

    losses: np.ndarray
    model: keras.Model


def load(program):
    """Returns the functions of a program as a dict."""
    with mock.patch.object(sys, "path", [str(FOLDER), *sys.path]):
        return runpy.run_path(str(FOLDER / f"{program}.py"))


def start(program, environments, out, *options):
    """Starts a program in several processes.

    Args:
        program: str. Name of its file, without `.py`.
        environments: list of dict. Environment variables of each process.
        out: path of its folder.
        *options: its other arguments; a list has one for each process.

    Returns:
        List of `Process`.
    """
    common = ["--epochs", 3, "--timeout", TIMEOUT, "--out", out]
    processes = []
    for index, environment in enumerate(environments):
        own = [o[index] if isinstance(o, list) else o for o in options]
        arguments = [str(option) for option in (*common, *own)]
        processes.append(Process(_run, program, environment, arguments))
    return processes


def wait(processes):
    """Waits for processes that must succeed; returns what they printed."""
    ended = [process.wait() for process in processes]
    assert all(status == 0 for status, _ in ended), ended
    return "".join(output for _, output in ended)


def trained(printed, out):
    """Returns the losses and the model of a program that has ended.

    Args:
        printed: str. What it printed.
        out: path of its folder.
    """
    losses = re.search(r"^losses (.*)$", printed, re.MULTILINE)[1]
    assert f"The model is in {out / 'model.keras'}. Next" in printed
    model = keras.saving.load_model(out / "model.keras", compile=False)
    return Trained(np.array(losses.split(), "float32"), model)


def assert_equal(found, expected, weights=1e-5):
    """Compares weights or, if `weights` is None, logits; and the losses.

    A resumed training may have the last ones only.
    """
    last = expected.losses[-len(found.losses) :]
    np.testing.assert_allclose(found.losses, last, rtol=1e-5)
    if weights is not None:
        pairs = zip(found.model.weights, expected.model.weights, strict=True)
        for a, b in pairs:
            a, b = (keras.ops.convert_to_numpy(w.value) for w in (a, b))
            np.testing.assert_allclose(a, b, atol=weights)
        return
    ids = np.arange(3, 12)[None]
    inputs = ids if len(found.model.weights) < 20 else (ids, ids)
    a, b = (
        keras.ops.convert_to_numpy(one.model(inputs))
        for one in (found, expected)
    )
    np.testing.assert_allclose(a, b, atol=1e-4)


def _run(program, environment, arguments):
    os.environ.update(environment)
    path = FOLDER / f"{program}.py"
    sys.path.insert(0, str(FOLDER))
    sys.argv = [str(path), *arguments]
    runpy.run_path(str(path), run_name="__main__")
