"""The attention benchmark: equal results, and reports that are updated."""

import importlib

import keras
import numpy as np
import pytest

from benchmarks.__main__ import main
from benchmarks.attention import plan, task
from benchmarks.harness import race, report, table

HERE = [
    one for one in plan.CONTESTANTS if one.backend == keras.backend.backend()
]
QUICK = [case for case in plan.QUICK_CASES if case["backward"]]
OPS = [one for one in HERE if not one.options and "nn." not in one.name]


def result(contestant, case):
    module = importlib.import_module(contestant.module)
    return module.prepare(case, **(contestant.options or {}))(2)


@pytest.mark.parametrize("case", QUICK, ids=lambda c: c["mask"])
def test_ops_agree_on_outputs_and_gradients(case):
    sums = [result(one, case) for one in OPS]
    assert len(sums) >= 2
    np.testing.assert_allclose(sums, sums[0], rtol=1e-4, atol=1e-3)
    forward = result(OPS[0], {**case, "backward": False})
    assert abs(forward - sums[0]) > 1e-3


@pytest.mark.parametrize("case", QUICK[1:3], ids=lambda c: c["mask"])
def test_layers_run(case):
    layers = [one for one in HERE if one not in OPS]
    assert len(layers) >= 2
    for layer in layers:
        assert np.isfinite(result(layer, case))


def test_masks_match_the_notes():
    case = {**plan.CASES[0], "rows": 3, "length": 1000}
    token_mask = task.tokens_there(case)
    assert token_mask[0].all()
    assert token_mask[-1].sum() == 500
    assert (np.diff(token_mask.sum(1)) < 0).all()
    window = task.dense_mask({**case, "mask": "window"})[0, 0]
    assert window[900].sum() == task.WINDOW
    assert not window[900, 901]
    assert task.flops({**case, "mask": "causal"}) * 2 == task.flops(case)


@pytest.mark.one_backend
def test_remeasured_case_replaces_the_old_one(tmp_path, monkeypatch):
    """The tests of the training step and of decoding run the processes."""
    seconds = iter([3.0, 5.0, 7.0])

    def measured(plan, cases, contestants, rounds, **options):
        assert contestants == HERE and rounds == 1
        return [
            {
                "case": case,
                "contestants": [
                    {
                        "name": one.name,
                        "backend": one.backend,
                        "first_seconds": 9.0,
                        "base_mib": 100.0,
                        "seconds": [took],
                        "loss": 1.0,
                        "peak_mib": 120.0,
                    }
                    for one in contestants
                ],
            }
            for case, took in zip(cases, seconds, strict=False)
        ]

    monkeypatch.setattr(race, "run", measured)
    monkeypatch.setenv("QUICK", "1")
    only = ("attention", "--only", keras.backend.backend())
    once = ("--out", str(tmp_path), "--rounds", "1")
    main([*only, "--cases", "causal", *once])
    target = tmp_path / "attention.json"
    first = report.read(target)["results"]
    causal = [c["name"] for c in plan.QUICK_CASES if c["mask"] == "causal"]
    assert [one["case"]["name"] for one in first] == causal
    for one in first:
        names = [entry["name"] for entry in one["contestants"]]
        assert names == [contestant.name for contestant in HERE]
    main([*only, "--cases", "causal, forward + backward", *once])
    other, again = report.read(target)["results"]
    assert [other["case"]["name"], again["case"]["name"]] == causal
    assert {entry["median_seconds"] for entry in again["contestants"]} == {7.0}
    assert other == first[0]
    page = (tmp_path / "attention.md").read_text("utf-8")
    assert page.count("| | causal |") == 2
    assert "of peak" not in page.lower()


@pytest.mark.one_backend
def test_results_of_different_conditions_are_not_merged():
    machine = {"cpu": "one", "matrix_gflops": {"jax": 1}}
    entry = {"name": "a", "backend": "jax"}
    cases = [{"case": {"name": x}, "contestants": [entry]} for x in "xy"]
    old = {"machine": machine, "versions": {}, "environment": {"jax": {}}}
    old |= {"quick": False, "results": cases}
    again = {"machine": {**machine, "matrix_gflops": {"jax": 2}}}
    report.check_alike(old, {**old, **again}, ["x"])
    settings = {"jax": {"MALLOC_ARENA_MAX": "1"}}
    for part in (
        {"machine": {**machine, "cpu": "two"}},
        {"versions": {"jax": "2"}},
        {"environment": settings},
        {"quick": True},
    ):
        with pytest.raises(ValueError, match="where the rest of the"):
            report.check_alike(old, {**old, **part}, ["x"])
    # A backend that is measured again in all cases may have other settings.
    report.check_alike(old, {**old, "environment": settings}, ["x", "y"])
    other = {"environment": {"torch": settings["jax"]}}
    report.check_alike(old, {**old, **other}, ["x"])
    merged = report.merged(old, {**old, **other, "results": []}, ["x", "y"])
    assert merged["environment"] == {"jax": {}, "torch": settings["jax"]}
    assert merged["results"] == cases


@pytest.mark.one_backend
def test_different_conditions_raise_before_measuring(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.setenv("QUICK", "1")
    backend = keras.backend.backend()
    conditions = report.here(plan, [backend], quick=True)
    conditions["environment"] = {backend: {"MALLOC_ARENA_MAX": "other"}}
    entry = {"name": "a", "backend": backend}
    results = [
        {"case": case, "contestants": [entry]} for case in plan.QUICK_CASES
    ]
    target = tmp_path / "attention.json"
    report.write({**conditions, "results": results}, target)
    monkeypatch.setattr(race, "run", lambda *args, **kwargs: 1 / 0)
    with pytest.raises(SystemExit):
        main(
            [
                "attention",
                *("--only", backend),
                *("--cases", "causal"),
                *("--out", str(tmp_path)),
            ]
        )
    printed = capsys.readouterr().err
    assert "must be measured where the rest of the table was" in printed


@pytest.mark.one_backend
def test_environment_variables_are_listed_per_backend():
    one, other = {"MALLOC_ARENA_MAX": "1"}, {}
    assert table._settings({"jax": one, "torch": one}) == [
        "- Environment variables: `MALLOC_ARENA_MAX=1`."
    ]
    assert table._settings({"jax": other, "torch": other}) == []
    assert table._settings({"jax": one, "tf": other, "torch": one}) == [
        "- Environment variables on jax and torch: `MALLOC_ARENA_MAX=1`.",
        "- Environment variables on tf: none.",
    ]


@pytest.mark.one_backend
def test_merging_keeps_other_contestants():
    def result(**seconds):
        entries = [
            {"name": name, "backend": "jax", "seconds": taken}
            for name, taken in seconds.items()
        ]
        one = {"case": {"name": "x"}, "contestants": entries}
        machine = {"cpu": "one", "matrix_gflops": dict(seconds)}
        same = {"versions": {}, "environment": {"jax": {}}, "quick": False}
        return {"machine": machine, "results": [one], **same}

    merged = report.merged(result(a=1, b=2, c=3), result(b=4), ["x"])
    assert merged == result(a=1, b=4, c=3)


@pytest.mark.one_backend
def test_cases_of_a_process_need_increasing_memory():
    for cases in (plan.CASES, plan.QUICK_CASES):
        for group in race._groups(cases):
            assert [case["backward"] for case in group] == [False, True]
            assert len({case["mask"] for case in group}) == 1
