"""The benchmark harness and the training step table."""

import importlib
import json
import os
import pathlib
import subprocess
import sys

import keras
import numpy as np
import pytest

from benchmarks.harness import race, report
from benchmarks.harness.contestant import Contestant
from benchmarks.training_step import plan, task

torch = pytest.importorskip("torch")

from torch.utils.flop_counter import FlopCounterMode

ROOT = pathlib.Path(__file__).parents[2]
CASE = plan.QUICK_CASES[0]


def test_flops_match_those_counted_by_pytorch():
    from benchmarks.training_step import torch_nn

    case = {**CASE, "rows": 3, "length": 6, "layers": 2}
    model = torch_nn.Model(case, dropout=0.0)
    source, target, labels = (
        torch.from_numpy(part[0]).long() for part in task.batches(case, 1)
    )
    # No padding: PyTorch does not count the attention of the masked path.
    source = source.clamp_min(task.END + 1)
    target = target.clamp_min(task.END + 1)
    with FlopCounterMode(display=False) as counter:
        logits = model(source, target)
        torch.nn.functional.cross_entropy(
            logits.flatten(0, 1), labels.flatten()
        ).backward()
    assert counter.get_total_flops() == pytest.approx(task.flops(case), rel=0.1)


def test_batches_match_the_notes():
    case = plan.CASES[0]
    sources, targets, labels = task.batches(case)
    assert sources.shape == (6, 32, 32)
    padded = (sources == task.PAD).any(-1)
    assert padded.mean() == 0.5
    fraction = (sources == task.PAD)[padded].mean()
    assert 0.2 < fraction < 0.3
    for part in (targets, labels):
        np.testing.assert_array_equal(part == task.PAD, sources == task.PAD)


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    """A quick run of the table with this backend's contestants."""
    folder = tmp_path_factory.mktemp("bench")
    subprocess.run(
        [
            sys.executable,
            "-m",
            "benchmarks",
            "training_step",
            "--only",
            keras.backend.backend(),
            "--out",
            str(folder),
        ],
        cwd=ROOT,
        env={**os.environ, "QUICK": "1"},
        check=True,
    )
    return json.loads((folder / "training_step.json").read_text("utf-8")), (
        folder / "training_step.md"
    ).read_text("utf-8")


@pytest.mark.one_backend
def test_quick_run_measures_every_contestant(quick):
    result, _ = quick
    (case,) = result["results"]
    names = [entry["name"] for entry in case["contestants"]]
    assert names == [
        one.name
        for one in plan.CONTESTANTS
        if one.backend == keras.backend.backend()
        and one.needs not in result["absent"]
    ]
    for entry in case["contestants"]:
        assert len(entry["seconds"]) == 2
        assert min(entry["seconds"]) > 0
        assert entry["median_seconds"] == np.median(entry["seconds"])
        assert entry["peak_mib"] >= entry["base_mib"] > 50
        tokens = CASE["rows"] * CASE["length"]
        assert entry["tokens_per_second"] * entry[
            "median_seconds"
        ] == pytest.approx(tokens)
    assert result["machine"]["cores"] > 0
    assert result["versions"]["keras"] == keras.__version__


@pytest.mark.one_backend
def test_quick_run_is_labeled(quick):
    result, page = quick
    assert result["quick"] is True
    assert "Quick run" in page


@pytest.mark.one_backend
def test_ratios_compare_with_the_named_peer(quick):
    result, _ = quick
    (case,) = result["results"]
    times = {
        entry["name"]: np.array(entry["seconds"])
        for entry in case["contestants"]
    }
    with_ratio = [e for e in case["contestants"] if "ratio" in e]
    # Without an installed peer there is no ratio.
    assert [e["name"] for e in with_ratio] == [
        e["name"] for e in case["contestants"] if e["against"] in times
    ]
    for entry in with_ratio:
        rounds = times[entry["against"]] / times[entry["name"]]
        assert entry["ratio"] == pytest.approx(np.median(rounds))


@pytest.mark.one_backend
def test_slowdown_of_the_machine_does_not_change_ratios():
    # The slowdown starts between the two in round 3: medians would give 8.
    own, peer = [1.0, 1.0, 1.0, 4.0, 4.0], [2.0, 2.0, 8.0, 8.0, 8.0]
    entries = [
        {"name": "ours", "against": "peer", "seconds": own},
        {"name": "peer", "against": "", "seconds": peer},
        {"name": "alone", "against": "missing", "seconds": own},
    ]
    report.compare([{"contestants": entries}])
    assert entries[0]["ratio"] == pytest.approx(2)
    assert "ratio" not in entries[1] and "ratio" not in entries[2]


@pytest.mark.one_backend
def test_failing_contestant_is_reported_with_its_error():
    broken = Contestant("broken", "torch", "benchmarks.no_such_module")
    runner = race.Runner(broken, CASE)
    with pytest.raises(RuntimeError, match=r"(?s)broken.*no_such_module"):
        runner.ready()
    runner.close()


MODULES = {
    "torch": ["ours", "torch_nn"],
    "jax": ["ours", "bare_jax"],
    "tensorflow": ["ours"],
}


@pytest.mark.parametrize("name", MODULES[keras.backend.backend()])
def test_timed_steps_train_the_model(name, monkeypatch):
    monkeypatch.setattr(task, "RATE", 3e-3)
    module = importlib.import_module(f"benchmarks.training_step.{name}")
    run = module.prepare(CASE)
    first = run(1)
    # At initialization, smoothed labels cost the same as others: log V and the
    # spread of the logits.
    assert abs(first - np.log(CASE["vocabulary"])) < 1
    assert run(120) < first - 0.5


def test_failed_write_keeps_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "a.md"
    report.replace(path, "old")
    monkeypatch.setattr(os, "replace", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        report.replace(path, "new")
    assert path.read_text("utf-8") == "old"
