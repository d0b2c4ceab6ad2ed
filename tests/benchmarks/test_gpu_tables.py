"""The GPU tables: plans, steps, device, and how their figures are shown."""

import importlib
import math
import subprocess
import types

import keras
import numpy as np
import pytest

from benchmarks.__main__ import TABLES, main
from benchmarks.attention import plan as attention
from benchmarks.harness import device, matrix_peak, race, report, table
from benchmarks.harness.contestant import Contestant

BACKEND = keras.backend.backend()
GPU_TABLES = [name for name in TABLES if name.endswith("_gpu")]
COUNTING = Contestant(
    "counting", BACKEND, "tests.benchmarks.counting", {"size": 4}
)
PLAN = types.SimpleNamespace(
    TITLE="A table",
    NOTES=[],
    STEPS=2,
    CONTESTANTS=[COUNTING],
    DEVICE="gpu",
    PEAKS={"bfloat16": 64, "float32": 32},
    flops=lambda case: 10**9,
    tokens=lambda case: 1,
)


def plan_of(name):
    return importlib.import_module(f"benchmarks.{name}.plan")


@pytest.mark.one_backend
@pytest.mark.parametrize("name", GPU_TABLES)
def test_plans_run_on_a_gpu(name):
    plan = plan_of(name)
    assert plan.DEVICE == "gpu"
    names = {one.name for one in plan.CONTESTANTS}
    cases = {case["name"] for case in plan.CASES}
    assert len(cases) == len(plan.CASES)
    for one in plan.CONTESTANTS:
        assert one.backend in ("torch", "jax")
        assert one.against in {"", *names}
        assert cases.issuperset(one.cases)
    for case in plan.CASES + plan.QUICK_CASES:
        assert case["device"] == "gpu"
        assert not plan.PEAKS or case["dtype"] in plan.PEAKS
        assert plan.flops(case) > 0 and plan.tokens(case) > 0


@pytest.mark.skipif(BACKEND == "tensorflow", reason="no GPU table there")
@pytest.mark.parametrize("backward", [False, True])
@pytest.mark.parametrize("mask", ["none", "causal", "padded", "window"])
def test_ops_agree_in_the_steps_of_the_gpu_table(mask, backward):
    case = attention.case(2, 2, 16, 8, 2, mask, backward)
    case |= {"dtype": "float32", "device": "gpu"}
    sums = [
        importlib.import_module(one.module).prepare(case)(2)()
        for one in plan_of("attention_gpu").CONTESTANTS
        if one.backend == BACKEND
    ]
    assert len(sums) >= 2
    assert sums[0] > 0.1
    # Matrix products may run in TensorFloat-32.
    np.testing.assert_allclose(sums, sums[0], rtol=1e-3)


@pytest.mark.one_backend
def test_name_and_driver_of_the_gpu(monkeypatch):
    def answers(*args, **kwargs):
        return types.SimpleNamespace(stdout="A GPU, 1.2.3\nAnother, 1.2.3\n")

    monkeypatch.setattr(subprocess, "run", answers)
    assert device.gpu() == {"gpu": "A GPU", "driver": "1.2.3"}

    def fails(*args, **kwargs):
        raise FileNotFoundError

    monkeypatch.setattr(subprocess, "run", fails)
    assert device.gpu() is None


@pytest.mark.one_backend
def test_gpu_table_without_a_gpu_raises(monkeypatch, capsys, tmp_path):
    monkeypatch.delenv("QUICK", raising=False)
    monkeypatch.setattr(device, "gpu", lambda: None)
    monkeypatch.setattr(
        "benchmarks.harness.quick_run.present", lambda found: (found, [])
    )
    with pytest.raises(SystemExit):
        main(["attention_gpu", "--out", str(tmp_path)])
    assert "attention_gpu needs a GPU" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@pytest.mark.one_backend
def test_report_names_the_gpu_and_the_peaks(monkeypatch):
    gpu = {"gpu": "A GPU", "driver": "1.2.3"}
    monkeypatch.setattr(report, "gpu", lambda: gpu)
    peaks = {("bfloat16", "64", "float32", "32"): [2000.0, 1000.0]}
    monkeypatch.setattr(report, "_peak", lambda backend, *sizes: peaks[sizes])
    entry = {
        "name": "counting",
        "backend": BACKEND,
        "seconds": [0.002],
        "first_seconds": 1.0,
        "base_mib": 100,
        "peak_mib": 300,
    }
    results = [
        {
            "case": {"name": x, "title": "T", "column": x, "dtype": dtype},
            "contestants": [{**entry, **memory}],
        }
        for x, dtype, memory in (
            ("x", "bfloat16", {}),
            ("y", "float32", {"base_mib": None, "peak_mib": None}),
        )
    ]
    made = report.complete(results, PLAN, "a_table_gpu", quick=False)
    assert made["machine"].items() >= gpu.items()
    page = table.markdown(made)
    assert ": A GPU, driver 1.2.3; " in page
    row = (
        "| counting | 2.00 ms, 0 TFLOP/s (25%), 200 MiB "
        "| 2.00 ms, 0 TFLOP/s (50%) |"
    )
    assert row in page.splitlines()
    assert f"{BACKEND} bfloat16 2,000, {BACKEND} float32 1,000" in page
    for one in results:
        del one["case"]["column"]
    rows = [x for x in table.markdown(made).splitlines() if "| 2.0 |" in x]
    assert rows and rows[0].endswith("| 1.0 | 300 |  |")
    # The conditions of the other tables name no GPU.
    other = types.SimpleNamespace()
    assert "gpu" not in report.here(other, [BACKEND], False)["machine"]


def test_peak_of_other_sizes_and_dtypes():
    assert matrix_peak.measure(2, 16, "bfloat16", steps=1) > 0


@pytest.mark.one_backend
def test_failing_contestant_is_left_out():
    broken = COUNTING._replace(name="broken", module="benchmarks.missing")
    # It starts, and fails in its first step.
    late = COUNTING._replace(name="late", options={"size": "x"})
    here = [broken, late, COUNTING]
    cases = [{"name": x, "process": "all"} for x in ("first", "second")]
    results = race.run(PLAN, cases, here, 1, keep_going=True)
    assert [one["case"] for one in results] == cases
    for one in results:
        assert [e["name"] for e in one["contestants"]] == ["counting"]
    with pytest.raises(RuntimeError, match="broken"):
        race.run(PLAN, cases, here, 1)


@pytest.mark.one_backend
def test_no_case_starts_after_the_deadline():
    cases = [{"name": "first"}]
    assert race.run(PLAN, cases, [COUNTING], 1, deadline=-math.inf) == []
