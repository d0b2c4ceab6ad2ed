"""The benchmark of large vocabularies, with a tiny model."""

import pytest

from benchmarks import large_vocabulary

pytestmark = pytest.mark.one_backend("torch")


def test_a_table(capsys):
    sizes = {"vocabulary": 99, "rows": 2, "length": 4, "width": 8, "layers": 1}
    given = [x for k, v in sizes.items() for x in (f"--{k}", str(v))]
    given += ["--steps", "1", "--rounds", "1", "--only", "torch"]
    large_vocabulary.main(given)
    *_, hidden, logits, keras = capsys.readouterr().out.splitlines()
    for row in (hidden, logits, keras):
        _, backend, _, seconds, ratio, peak, _, _ = row.split("|")
        assert backend.strip() == "torch"
        assert min(map(float, (seconds, ratio))) > 0 and float(peak) >= 0
