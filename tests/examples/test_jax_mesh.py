"""`examples/distributed/jax_mesh.py` trains on meshes of virtual devices."""

import re

import keras
import pytest

from tests.helpers.programs import run_process

pytestmark = [
    pytest.mark.one_backend("jax"),
    pytest.mark.skipif(
        keras.backend.backend() != "jax", reason="the program uses JAX"
    ),
]
PROGRAM = "distributed/jax_mesh"
SMALL = "--pairs", 40, "--width", 16, "--layers", 1, "--tokens", 800


def test_train_on_a_mesh(tmp_path):
    file = tmp_path / "model.keras"
    options = "--mesh", "2x4", "--steps", 6, "--remat", "--out", file
    status, printed = run_process(PROGRAM, *SMALL, *options)
    assert status == 0, printed
    assert "2 x 4 devices: cpu:0 ... cpu:7" in printed
    numbers = re.search(
        r"([\d,]+) parameters; .* ([\d,]+) bytes of weights, ([\d,]+) ",
        printed,
    )
    count, weights, optimizer = (
        int(number.replace(",", "")) for number in numbers.groups()
    )
    # A quarter of almost all weights, and twice as much for Adam.
    assert count < weights < 4 * count
    assert 1.8 * weights < optimizer < 2.2 * weights
    assert printed.count(" -> ") == 3
    model = keras.models.load_model(file)
    assert model.count_params() == count


def test_bad_meshes_are_named():
    for options, message in (
        (("--mesh", "2by4"), "must be like 2x4, or data. Received: 2by4"),
        (("--mesh", "2x3"), "`num_heads` must be a multiple of 3"),
    ):
        status, printed = run_process(PROGRAM, *SMALL, *options)
        assert status == 1
        assert message in printed
        assert "Traceback" not in printed
