"""The benchmark of loading, with a tiny model."""

import re

import pytest

from benchmarks import checkpoint_loading

pytestmark = pytest.mark.one_backend


def test_a_table(capsys):
    sizes = ["--layers", "1", "--width", "64", "--rounds", "1"]
    checkpoint_loading.main([*sizes, "--only", "torch"])
    *_, row = capsys.readouterr().out.splitlines()
    _, name, seconds, peak, _ = row.split("|")
    assert name.strip() == "keras_attn on torch"
    # So few weights may take no time and no memory within the digits shown.
    assert re.fullmatch(r"\d+\.\d", seconds.strip())
    assert re.fullmatch(r"\d+\.\d\d", peak.strip())


@pytest.mark.parametrize("name", ["torch", "transformers"])
def test_a_measurement(name, tmp_path):
    assert checkpoint_loading.write(tmp_path, 1, 64) > 1e6
    seconds, peak = checkpoint_loading.measure(tmp_path, name)
    assert seconds > 0 and peak >= 0
