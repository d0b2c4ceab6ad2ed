"""The quick run of all tables: forks, errors, and what is skipped."""

import os
import sys
import types

import keras
import pytest

from benchmarks.__main__ import main
from benchmarks.harness import forked, quick_run, race, report
from tests.benchmarks import plan_of_counting as plan

pytestmark = [
    pytest.mark.one_backend,
    # The contestants of these tests compute nothing on a backend.
    pytest.mark.filterwarnings("ignore:.*fork.*"),
]
BACKEND = keras.backend.backend()
OURS, PEER = plan.CONTESTANTS


def test_forks_are_measured_like_processes():
    results = race.run(
        plan, plan.CASES, [OURS, PEER], 2, runner=forked.ForkedRunner
    )
    for found in results[0]["contestants"]:
        assert len(found["seconds"]) == 2 and min(found["seconds"]) > 0
        assert found["loss"] == 12


def test_an_error_in_a_fork_is_raised():
    for broken in (
        OURS._replace(module="benchmarks.missing"),
        OURS._replace(options={"size": "x"}),
    ):
        with pytest.raises(
            RuntimeError, match=r"(?s)counting ended with sta.*"
        ):
            race.run(plan, plan.CASES, [broken], 1, runner=forked.ForkedRunner)


def test_a_stuck_contestant_is_ended():
    slow = OURS._replace(options={"size": 10**9})
    runner = forked.ForkedRunner(slow, plan.CASES[0], patience=0.3)
    runner.ready()
    process = runner._process
    with pytest.raises(RuntimeError, match="did not answer within"):
        runner.run(1)
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)
    runner.close()


@pytest.fixture
def tables(monkeypatch):
    """Sets the tables of the quick run and what warms it up."""
    monkeypatch.setattr(forked, "WARM", ("no_such_package",))

    def use(**plans):
        monkeypatch.setattr(quick_run, "TABLES", tuple(plans))
        for name, one in plans.items():
            module = f"benchmarks.{name}.plan"
            monkeypatch.setitem(sys.modules, f"benchmarks.{name}", plan)
            monkeypatch.setitem(sys.modules, module, one)

    return use


def variant(*contestants):
    return types.SimpleNamespace(
        **{**vars(plan), "CONTESTANTS": list(contestants)}
    )


def test_tables_are_written_and_absent_peers_named(tables, tmp_path, capsys):
    absent = PEER._replace(name="a peer", needs="no_such_package")
    tables(one=variant(OURS, PEER, absent), other=variant(absent))
    assert quick_run.run_backend(BACKEND, tmp_path) == 0
    printed = capsys.readouterr().out
    reason = "a peer: no_such_package is not installed"
    assert f"skipped: one: {reason}" in printed
    assert f"skipped: other: {reason}" in printed
    assert "  one: 2 contestants, 1 cases" in printed
    result = report.read(tmp_path / "one.json")
    assert result["quick"] and result["absent"] == ["no_such_package"]
    found = {path.name for path in tmp_path.iterdir()}
    assert found == {"one.json", "one.md", "one.png"}


def test_other_tables_run_after_a_failed_one(tables, tmp_path, capsys):
    broken = OURS._replace(module="benchmarks.missing")
    tables(one=variant(broken), other=variant(OURS, PEER))
    assert quick_run.run_backend(BACKEND, tmp_path) == 1
    printed = capsys.readouterr().out
    assert "one: failed. The contestant keras_attn, counting ended" in printed
    assert "No module named 'benchmarks.missing'" in printed
    assert (tmp_path / "other.json").exists()


@pytest.fixture
def programs(monkeypatch, tmp_path):
    """Replaces the programs of the quick run, and runs it."""
    monkeypatch.setenv("QUICK", "1")
    monkeypatch.setattr(quick_run, "BACKENDS", ("no_such_backend",))

    def run(**found):
        monkeypatch.setattr(quick_run, "PROGRAMS", found)
        return main(["all", "--out", str(tmp_path)])

    return run


def test_status_is_that_of_the_programs(programs, capsys):
    # `--help` imports no backend.
    good, bad = ((), "--help"), ((), "--no-such-option")
    assert programs(checkpoint_loading=good) == 0
    printed = capsys.readouterr().out
    assert "no errors" in printed
    assert (
        "skipped: all tables on no_such_backend: no_such_backend is" in printed
    )
    assert "skipped: translation_quality: trains for an hour" in printed
    needy = (("no_such_package",), "")
    assert programs(checkpoint_loading=bad, large_vocabulary=needy) == 1
    printed = capsys.readouterr()
    assert "failed: checkpoint_loading." in printed.out
    assert "skipped: large_vocabulary: no_such_package is not" in printed.out
    assert "unrecognized arguments: --no-such-option" in printed.err


def test_every_program_is_part_of_the_quick_run():
    folder = race.ROOT / "benchmarks"
    programs = {
        path.stem for path in folder.glob("*.py") if path.stem[:2] != "__"
    }
    assert programs == set(quick_run.PROGRAMS)
    packages = {
        path.parent.name
        for path in folder.glob("*/__init__.py")
        if path.parent.name != "harness"
    }
    assert packages == {*quick_run.TABLES, *quick_run.ABSENT}


def test_all_tables_need_quick(monkeypatch, capsys):
    monkeypatch.delenv("QUICK", raising=False)
    with pytest.raises(SystemExit):
        main(["all"])
    assert "`all` takes a day without QUICK=1" in capsys.readouterr().err


def test_figures_of_quick_runs_are_not_kept(monkeypatch, tmp_path):
    written = []
    monkeypatch.setenv("QUICK", "1")
    monkeypatch.setattr(
        report, "write_all", lambda _, out: written.append(out) or []
    )
    monkeypatch.setattr(race, "run", lambda *a, **k: [{"case": {}}])
    monkeypatch.setattr(report, "complete", lambda *a: {"table": "x"})
    main(["projections"])
    assert written == [race.ROOT / "runs/benchmarks"]
