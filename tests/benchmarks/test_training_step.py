"""The harness and its first table, without a word about speed."""

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


def test_the_flops_are_those_that_pytorch_counts():
    from benchmarks.training_step import torch_nn

    case = {**CASE, "rows": 3, "length": 6, "layers": 2}
    model = torch_nn.Model(case, dropout=0.0)
    source, target, labels = (
        torch.from_numpy(part[0]).long() for part in task.batches(case, 1)
    )
    # Masked, it takes another path, whose attention is not counted.
    source = source.clamp_min(task.END + 1)
    target = target.clamp_min(task.END + 1)
    with FlopCounterMode(display=False) as counter:
        logits = model(source, target)
        torch.nn.functional.cross_entropy(
            logits.flatten(0, 1), labels.flatten()
        ).backward()
    assert counter.get_total_flops() == pytest.approx(task.flops(case), rel=0.1)


def test_the_batches_are_as_the_notes_say():
    case = plan.CASES[0]
    sources, targets, labels = task.batches(case)
    assert sources.shape == (6, 32, 32)
    padded = (sources == task.PAD).any(-1)
    assert padded.mean() == 0.5
    share = (sources == task.PAD)[padded].mean()
    assert 0.2 < share < 0.3
    for part in (targets, labels):
        np.testing.assert_array_equal(part == task.PAD, sources == task.PAD)


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    """A quick run of the table, of this backend's contestants."""
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
def test_a_quick_run_measures_every_contestant(quick):
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
def test_a_quick_run_says_that_it_is_one(quick):
    result, page = quick
    assert result["quick"] is True
    assert "no figures" in page


@pytest.mark.one_backend
def test_ratios_are_of_the_peer_named(quick):
    result, _ = quick
    (case,) = result["results"]
    times = {
        entry["name"]: np.array(entry["seconds"])
        for entry in case["contestants"]
    }
    with_ratio = [e for e in case["contestants"] if "ratio" in e]
    # A peer that is not installed leaves ours without one.
    assert [e["name"] for e in with_ratio] == [
        e["name"] for e in case["contestants"] if e["against"] in times
    ]
    for entry in with_ratio:
        rounds = times[entry["against"]] / times[entry["name"]]
        assert entry["ratio"] == pytest.approx(np.median(rounds))


@pytest.mark.one_backend
def test_a_machine_that_slows_down_changes_no_ratio():
    # It slows down between the two, in the third round: medians give 8.
    own, peer = [1.0, 1.0, 1.0, 4.0, 4.0], [2.0, 2.0, 8.0, 8.0, 8.0]
    entries = [
        {"name": "ours", "against": "peer", "seconds": own},
        {"name": "peer", "against": "", "seconds": peer},
        {"name": "alone", "against": "nobody", "seconds": own},
    ]
    report.compare([{"contestants": entries}])
    assert entries[0]["ratio"] == pytest.approx(2)
    assert "ratio" not in entries[1] and "ratio" not in entries[2]


@pytest.mark.one_backend
def test_a_contestant_that_fails_is_named_with_its_error():
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
def test_what_is_timed_is_a_training(name, monkeypatch):
    monkeypatch.setattr(task, "RATE", 3e-3)
    module = importlib.import_module(f"benchmarks.training_step.{name}")
    run = module.prepare(CASE)
    first = run(1)
    # At random, smoothed labels cost what others do: log V and the spread of
    # the first logits.
    assert abs(first - np.log(CASE["vocabulary"])) < 1
    assert run(120) < first - 0.5


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "a.md"
    report.replace(path, "old")
    monkeypatch.setattr(os, "replace", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        report.replace(path, "new")
    assert path.read_text("utf-8") == "old"
