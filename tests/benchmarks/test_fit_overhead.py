"""The loop without `fit` takes the same steps, and host reads are counted."""

import io
import json

import keras
import pytest

from benchmarks.fit_overhead import loop, plan
from benchmarks.harness import report, table, worker
from benchmarks.training_step import ours
from keras_attn.testing import host_reads

pytestmark = pytest.mark.one_backend("torch")
CASE = plan.QUICK_CASES[0]


def test_the_loop_takes_the_steps_of_fit():
    losses = []
    for contestant in (ours, loop):
        keras.utils.set_random_seed(0)
        run = contestant.prepare(CASE, dropout=0.0)
        losses.append([run(2), run(3)])
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)


def test_host_reads_of_a_step_are_counted():
    case = CASE | {"reads": 2}
    requests = io.StringIO('{"steps": 1}\n{"host_reads": true}\n')
    answers = io.StringIO()
    worker.serve("tests.benchmarks.reading", case, {}, requests, answers)
    ready, run, reads = map(json.loads, answers.getvalue().splitlines())
    assert ready == {"ready": True}
    assert run["loss"] == 1.0
    with host_reads() as once:
        float(keras.ops.ones(()))
    assert once and reads == {"host_reads": 2 * len(once)}


def test_the_table_shows_host_reads():
    entry = {
        "name": "one",
        "backend": "torch",
        "seconds": [0.5],
        "first_seconds": 1.0,
        "base_mib": 1.0,
        "peak_mib": None,
        "host_reads": 3.0,
    }
    results = [{"case": CASE, "contestants": [entry]}]
    contestant = plan.CONTESTANTS[1]._replace(name="one")
    plan_of_one = type("Plan", (), {**vars(plan), "CONTESTANTS": [contestant]})
    lines = table.markdown(
        report.complete(results, plan_of_one, "fit_overhead", quick=True)
    ).splitlines()
    (head,) = (line for line in lines if line.startswith("| | backend"))
    (row,) = (line for line in lines if line.startswith("| one |"))
    column = [cell.strip() for cell in head.split("|")].index("host reads")
    assert row.split("|")[column].strip() == "3"
    assert row.count("|") == head.count("|")
