"""The tutorial on the claims about attention: a quick run, invalid input."""

import json

import pytest
import why_attention_settings

from tests.tutorials.programs import complaint, printed, runner

pytestmark = pytest.mark.one_backend("torch")

run = runner("why_attention", why_attention_settings.Settings)


def test_quick_run_measures_every_claim(tmp_path):
    said = printed(run, QUICK=1, OUT=tmp_path)
    results = json.loads((tmp_path / "results.json").read_text("utf-8"))
    assert results["steps"]["recurrent"] == results["steps"]["lengths"]
    assert results["paths"]["self-attention"] == [1] * 7
    for name, norms in results["gradient norms"].items():
        assert len(norms) == 8 and max(norms) > 0, name
    assert [*results["curves"]] == ["self-attention"]
    assert results["order"]["self-attention"] < 1e-5
    assert str(tmp_path / "results.json") in said
    assert "What to try next" in said


@pytest.mark.parametrize("name", ["BLOCKS", "ROWS"])
def test_invalid_input_exits_with_one_line_and_status_2(
    name, monkeypatch, capsys
):
    said = complaint(run, monkeypatch, capsys, **{name: "none"})
    assert f"{name} must be a positive number" in said
