"""The history of ratios, and the sentences and charts that are made from it."""

import itertools
import json
import math
import re

import numpy as np
import pytest

from benchmarks.__main__ import DOCS, TABLES, main
from benchmarks.harness import history, race, report
from tests.benchmarks import plan_of_counting
from tools.diagrams import benchmarks as charts

pytestmark = pytest.mark.one_backend

COMMITTED = history.read(DOCS / history.NAME)
PAGE = (DOCS.parent / "benchmarks.md").read_text("utf-8")


def entry(contestant, peer, ratio, case="x", date="2026-01-01", **more):
    return {
        "date": date,
        "table": "t",
        "case": case,
        "contestant": contestant,
        "backend": "torch",
        "peer": peer,
        "ratio": ratio,
        **more,
    }


def test_latest_entries_are_those_of_the_tables():
    latest = {
        (one["table"], one["case"], one["contestant"]): one for one in COMMITTED
    }
    compared = 0
    for name in TABLES:
        if not (DOCS / f"{name}.json").exists():
            continue  # not measured yet
        result = report.read(DOCS / f"{name}.json")
        for one in history.entries(result):
            found = latest[name, one["case"], one["contestant"]]
            for key in ("peer", "backend", "ratio", "machine"):
                assert found[key] == one[key]
            assert found["date"] <= one["date"]
            compared += 1
    assert compared > 300


def test_entries_are_complete():
    for one in COMMITTED:
        assert list(one) == [
            "date",
            "table",
            "case",
            "contestant",
            "backend",
            "peer",
            "ratio",
            "machine",
            "versions",
        ]
        assert re.fullmatch(r"\d{4}-\d\d-\d\d", one["date"])
        assert one["table"] in TABLES
        assert one["ratio"] > 0
        assert {"python", "keras", one["backend"]} <= set(one["versions"])
    dates = [one["date"] for one in COMMITTED]
    assert dates == sorted(dates)


@pytest.fixture
def run(monkeypatch, tmp_path):
    """Runs a table of two contestants whose steps take 2 s and 6 s."""

    def measured(plan, cases, contestants, rounds, **options):
        return [
            {
                "case": case,
                "contestants": [
                    {
                        "name": one.name,
                        "backend": one.backend,
                        "first_seconds": 1.0,
                        "base_mib": 1.0,
                        "peak_mib": 2.0,
                        "seconds": [seconds],
                    }
                    for one, seconds in zip(contestants, (2, 6), strict=True)
                ],
            }
            for case in cases
        ]

    monkeypatch.setattr(race, "run", measured)
    monkeypatch.setitem(
        __import__("sys").modules,
        "benchmarks.projections.plan",
        plan_of_counting,
    )

    def start(*arguments):
        main(["projections", "--out", str(tmp_path), *arguments])
        path = tmp_path / history.NAME
        return history.read(path) if path.exists() else []

    return start


def test_full_runs_are_appended(run, monkeypatch):
    monkeypatch.setenv("QUICK", "1")
    assert run() == []
    monkeypatch.delenv("QUICK")
    (first,) = run()
    assert first["contestant"] == "keras_attn, counting"
    assert first["peer"] == "counting" and first["ratio"] == 3
    assert first["date"] and "cores" in first["machine"]
    assert first["versions"]["keras"]
    assert run("--redraw") == [first]
    assert run() == [first, first]


def test_a_run_ends_at_a_repetition_or_another_day():
    a, b = entry("keras_attn", "p", 2), entry("keras_attn", "p", 3, case="y")
    later = {**b, "date": "2026-01-02"}
    other = {**a, "table": "u"}
    found = history.runs([a, other, b, a, later, b], "t")
    assert found == [[a, b], [a], [later], [b]]


def test_speedups_are_those_of_this_library():
    run = [
        entry("keras_attn on torch", "bare", 0.8),
        entry("KerasHub", "keras_attn on torch", 0.25),
        entry("keras_attn", "peer", 3.0),
        entry("peer", "keras_attn", 1 / 3.5),
        entry("keras_attn, a part", "keras_attn", 2.0),
        entry("one product", "three products", 2.0),
    ]
    assert history.speedups(run) == {
        ("bare", "torch", "x"): 0.8,
        ("KerasHub", "torch", "x"): 4.0,
        ("peer", "torch", "x"): 3.0,
    }
    assert history.speedups(run[::-1])["peer", "torch", "x"] == 3.0


def test_courses_keep_the_latest_result_of_each_case():
    first = [entry("keras_attn", "p", 2.0), entry("keras_attn", "p", 8.0, "y")]
    second = [entry("keras_attn", "p", 4.5, date="2026-01-02")]
    (course,) = history.courses([*first, *second], "t").values()
    np.testing.assert_allclose(
        [row[1:] for row in course], [(4, 2, 8), (6, 4.5, 8)]
    )
    assert [row[0] for row in course] == ["2026-01-01", "2026-01-02"]


def means(table):
    return {
        (peer.removesuffix(f" on {backend}"), backend): course[-1][1]
        for (peer, backend), course in history.courses(COMMITTED, table).items()
    }


def test_sentences_of_the_page_state_the_latest_means():
    start, end = PAGE.index("\n- "), PAGE.index("\n\nEach contestant runs")
    sentences = " ".join(PAGE[start:end].split()).split("- ")[1:]
    assert len(sentences) == 5
    assert all(one.count(". ") == (one != sentences[-1]) for one in sentences)
    step, attention = means("training_step"), means("attention")
    decoding = means("decoding")
    hub, gpu_step = "KerasHub", means("training_step_gpu")
    op = "keras.ops.dot_product_attention"
    backends = "torch", "jax", "tensorflow"

    def span(found):
        return [f(found[hub, b] for b in backends) for f in (min, max)]

    expected = [
        [
            *span(step),
            step["torch.nn.Transformer", "torch"],
            step["bare JAX", "jax"],
        ],
        [attention[op, b] for b in backends],
        [*span(decoding), decoding["transformers (Marian)", "torch"]],
        [decoding["CTranslate2", "torch"], decoding["bare PyTorch", "torch"]],
        [
            gpu_step[hub, "torch"],
            gpu_step["torch.nn.Transformer", "torch"],
            means("decoding_gpu")["bare PyTorch", "torch"],
            means("attention_gpu")[op, "jax"],
        ],
    ]
    for sentence, numbers in zip(sentences, expected, strict=True):
        stated = re.findall(r"\d+\.\d\d", sentence)
        assert stated == [f"{number:.2f}" for number in numbers]


def test_charts_show_every_comparison_of_their_tables():
    """The committed files are compared with those drawn in tests/site."""
    drawn = charts.speed_next_to_peers().svg("a", "b", "c")
    over_time = charts.speed_over_time().svg("a", "b", "c")
    dots = 0
    for table in charts._TABLES:
        for (peer, _), course in history.courses(COMMITTED, table).items():
            if "tutorial" in peer or "without" in peer:
                continue
            for svg in (drawn, over_time):
                assert f">{course[-1][1]:.2f}<" in svg
            dots += len(course)
    assert over_time.count('rx="2.5"') == dots


def test_a_line_of_the_file_is_one_entry(tmp_path):
    path = tmp_path / "new" / "h.jsonl"
    one, other = entry("a", "b", 1.5), entry("c", "d", math.pi)
    history.append(path, [one])
    history.append(path, [other])
    lines = path.read_text("utf-8").splitlines()
    assert [json.loads(line) for line in lines] == [one, other]
    assert history.read(path) == [one, other]
    assert list(itertools.chain(*history.runs([one, other], "t"))) == [
        one,
        other,
    ]
