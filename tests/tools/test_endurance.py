"""The soak test, its verdict, and the page of results."""

import itertools
import json
import mmap

import keras
import numpy as np
import pytest

from tools.endurance import __main__ as command
from tools.endurance import page, soak

pytestmark = pytest.mark.one_backend


@pytest.fixture(scope="module")
def run():
    return soak.Soak(seed=3)


def test_every_kind_of_call_is_checked(run):
    while len(run.calls) < 4:
        run.call()
    assert run.calls.keys() == {"continue", "translate", "predict", "fit"}


def test_no_expected_continuation_has_a_special_token():
    """With this seed, a GPT would choose the start token of its own accord."""
    expected = soak.Soak(seed=4268843846)._expected["continue"]
    assert not np.isin(expected, [0, 1]).any()


@pytest.mark.parametrize(
    ("kind", "size"),
    [("continue", (3, 8, 4)), ("translate", (3, 8, 4)), ("predict", (3, 9))],
)
def test_another_answer_is_an_error(run, monkeypatch, kind, size):
    wrong = np.roll(run._expected[kind], 1, axis=0) + 1
    monkeypatch.setitem(run._expected, kind, wrong)
    with pytest.raises(AssertionError):
        getattr(run, f"_{kind}")(*size)


def test_another_loss_is_an_error(run, monkeypatch):
    monkeypatch.setattr(soak, "cross_entropy", lambda *_: 1.0)
    with pytest.raises(AssertionError):
        run._fit(3, 9)


def test_calls_of_every_size_come_first(monkeypatch):
    sizes = []
    for name in "_continue", "_translate", "_predict", "_fit":

        def call(self, *size, name=name):
            sizes.append((name, *size))

        call.__name__ = name
        monkeypatch.setattr(soak.Soak, name, call)
    run = soak.Soak(seed=3)
    while run._first:
        run.call()
    assert len(sizes) == len(set(sizes)) == 2 * 36 + 2 * 12
    for _ in range(99):
        run.call()
    assert len(set(sizes)) == 2 * 36 + 2 * 12


def test_texts_have_the_length_that_was_drawn(run):
    ends = soak.LONGEST_TEXTS
    for shorter, longest in itertools.pairwise((0, *ends)):
        for count in soak.ROWS:
            rows = run._texts(count, longest)
            assert len(set(rows)) == count
            assert shorter < run._lengths[rows].max() <= longest


def test_a_continuation_ends():
    """The next token is the sum of the last two; 5 is the end."""

    def model(ids):
        following = (ids + np.pad(ids, ((0, 0), (1, 0)))[:, :-1]) % 7
        return np.eye(7, dtype="float32")[following]

    tokens = np.array([[1, 1, 0], [1, 3, 4]])
    found = soak.continuations(model, tokens, np.array([2, 3]), [], end_id=5)
    assert found[0, :4].tolist() == [2, 3, 5, 0]
    assert found[1, :4].tolist() == [0, 4, 4, 1]
    # Without 4, the lowest of the other tokens, all of which are equal.
    found = soak.continuations(model, tokens, np.array([2, 3]), [4])
    assert 4 not in found


def report(megabytes=lambda t: 100.0, programs=lambda t: 5, minutes=20):
    samples = [(t, megabytes(t), programs(t)) for t in range(minutes)]
    return {
        **{"minutes": minutes, "calls": {"fit": 1200}, "samples": samples},
        **{"version": "1.2", "date": "2026-01-02", "machine": "a computer"},
    }


def test_growth_after_the_warmup_is_a_problem():
    assert soak.problems(report()) == []
    assert soak.problems(report(lambda t: 100 * min(t, 5) + 0.9 * t)) == []
    (problem,) = soak.problems(report(lambda t: 50 + 1.1 * t))
    assert "grew by 1.10" in problem


def test_memory_of_a_late_program_is_no_growth():
    late = soak.problems(
        report(lambda t: 100 + 50 * (t > 8), lambda t: 5 + (t > 8))
    )
    assert late == []
    (problem,) = soak.problems(report(lambda t: 100 + 50 * (t > 8)))
    assert "memory" in problem


def test_new_programs_in_the_second_half_are_a_problem():
    assert soak.problems(report(programs=lambda t: min(t, 9))) == []
    (problem,) = soak.problems(report(programs=lambda t: min(t, 15)))
    assert "15 from 10" in problem


def test_memory_is_measured():
    before, size = soak.resident_megabytes(), 32 << 20
    # Not an array: its memory may be some that the process has already.
    with mmap.mmap(-1, size) as block:
        block.write(b"1" * size)
        assert soak.resident_megabytes() - before > 0.9 * size / 1e6


def compiled():
    """Returns a function that the backend has compiled."""
    backend = keras.config.backend()
    if backend == "torch":
        import torch

        return torch.fx.symbolic_trace(torch.nn.Identity())
    if backend == "jax":
        import jax

        function = jax.jit(lambda x: 3 * x + 5)
        function(2.0)
        return function
    import tensorflow as tf

    return tf.function(lambda x: x + 1).get_concrete_function(tf.constant(1))


def test_programs_are_counted():
    before = soak.programs()
    program = compiled()
    assert soak.programs() > before
    del program


@pytest.fixture
def reports(tmp_path):
    """A folder of reports, of which the memory of JAX grows."""
    folder = tmp_path / "endurance"
    folder.mkdir()
    kills = {
        **{"kills": 40, "during_write": 20, "trainings": 5, "resumed": 41},
        **{"arrays": 940, "different": []},
    }
    for backend in page.NAMES:
        slope = 2 if backend == "jax" else 0.5
        soaked = report(lambda t, slope=slope: 100 + slope * t)
        for name, content in ("soak", soaked), ("kills", soaked | kills):
            path = folder / f"{name}-{backend}.json"
            path.write_text(json.dumps(content))
    return folder


def test_the_page_shows_the_reports(reports):
    page.write(reports)
    assert (reports / "memory.png").stat().st_size > 10_000
    text = (reports.parent / "endurance.md").read_text("utf-8")
    line = "| JAX 1.2 | 1,200 | 110 MB | 2.00; **too much** | 5 to 5 |"
    assert line in text
    assert "| PyTorch 1.2 | 1,200 | 102 MB | 0.50 | 5 to 5 |" in text
    assert "| TensorFlow 1.2 | 40 | 20 | 5 | 41 | 940 | 0 |" in text


def test_the_command_writes_a_report(tmp_path, monkeypatch):
    monkeypatch.setattr(soak, "soak", lambda minutes, seed: report())
    options = ["soak", "--seed", "4", "--out", str(tmp_path)]
    assert command.main(options) == 0
    (path,) = tmp_path.glob("soak-*.json")
    written = json.loads(path.read_text())
    assert written["seed"] == 4
    assert {"date", "machine", "version", "keras", "backend"} <= written.keys()
    grown = report(lambda t: 3.0 * t)
    monkeypatch.setattr(soak, "soak", lambda minutes, seed: grown)
    assert command.main(options) == 1
