"""The benchmark of quantization modes, on a little text."""

import pytest

from benchmarks import quantization

pytestmark = pytest.mark.one_backend("torch")


@pytest.mark.filterwarnings(r"ignore:[\s\S]*The use of `x.T` on tensors")
def test_a_table(capsys):
    given = {"epochs": 0, "rounds": 1, "tokens": 2, "samples": 2}
    given |= {"characters": 9000, "modes": "float32,int8,gptq"}
    quantization.main([f"--{k}={v}" for k, v in given.items()])
    # Keras prints its progress between the rows.
    lines = capsys.readouterr().out.splitlines()
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in lines
        if line.startswith("| ")
    ][2:]
    assert [row[0] for row in rows] == ["float32", "int8", "gptq"]
    perplexities = [float(row[1]) for row in rows]
    assert all(1 < x < 5 for x in perplexities)
    sizes = [int(row[2].replace(",", "")) for row in rows]
    assert sizes[0] > 3 * sizes[1]
    assert all(float(row[3]) > 0 for row in rows)
