"""The Transformer-XL tutorial: quick runs, measures, invalid input."""

import json

import keras
import memory_arms
import numpy as np
import pytest
import transformer_xl_settings
from segment_losses import bits, segment_losses

from keras_attn.models import TransformerXL
from tests.helpers.contract import randomize
from tests.tutorials.programs import complaint, printed, runner

pytestmark = pytest.mark.one_backend("torch")

run = runner("transformer_xl", transformer_xl_settings.Settings)
NONE = {"pad_id": None, "start_id": None, "end_id": None}


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    """The folder of a quick run, and its printed output."""
    folder = tmp_path_factory.mktemp("transformer_xl")
    return folder, printed(run, QUICK=1, OUT=folder)


def test_quick_run_prints_results_and_next_steps(quick):
    folder, said = quick
    results = json.loads((folder / "results.json").read_text("utf-8"))
    names = ["M = 0", "M = 16", "GPT", "GPT, half a block before"]
    assert [*results["bits"]] == names
    assert all(0 < value < 8 for value in results["bits"].values())
    assert results["reach"] == {"M = 0": 7, "M = 16": 2 * 16 + 7}
    assert len(results["by place"]["M = 16"]) == 8
    assert min(results["seconds a character"].values()) > 0
    assert not list(folder.glob("backup*"))
    assert "4 rows start, 4 go on" in said
    assert "in two pieces and in one" in said and "What to try next" in said
    model = keras.saving.load_model(folder / "model.keras", compile=False)
    assert model.memory_length == 16


def test_user_text(tmp_path, monkeypatch, capsys):
    text = tmp_path / "text.txt"
    text.write_text("To be, or not to be: that is é.\n" * 40, encoding="utf-8")
    out = tmp_path / "out"
    run(monkeypatch, QUICK=1, DATA=text, MEMORIES="0,8,20", OUT=out)
    said = capsys.readouterr().out
    assert "1,152 characters to learn from, 128 kept" in said
    results = json.loads((out / "results.json").read_text("utf-8"))
    assert "M = 20" in results["bits"]


@pytest.mark.parametrize(
    "values, answer",
    [
        ({"DATA": "nowhere"}, "There is no file nowhere."),
        ({"DATA": __file__, "BATCH": "999"}, "times SEGMENT times BATCH"),
        ({"WIDTH": "20", "HEADS": "4"}, "WIDTH must be a multiple of twice"),
        ({"MEMORIES": "64"}, "MEMORIES must be two or more numbers"),
        ({"MEMORIES": "64,0"}, "MEMORIES must be two or more numbers"),
        ({"MEMORIES": "0,many"}, "MEMORIES must be two or more numbers"),
        ({"STEPS": "0"}, "STEPS must be a positive number"),
    ],
)
def test_invalid_input_exits_with_one_line_and_status_2(
    values, answer, monkeypatch, capsys
):
    said = complaint(run, monkeypatch, capsys, **values)
    assert answer in said


@pytest.mark.parametrize("memory", [0, 6])
def test_losses_match_each_character(memory):
    model = TransformerXL(
        7, 2, 2, 8, memory_length=4, dropout=0.0, attention_dropout=0.0, **NONE
    )
    randomize(model)
    ids = np.random.default_rng(0).integers(0, 7, 20).astype("int32")
    losses, places = segment_losses(model, ids, 3, memory, rows=1)
    assert places.tolist() == [*range(3)] * 6 + [0]
    # One segment at a time, with explicit memory.
    reader, expected, before = model.with_memory(memory), [], {}
    for start in range(0, 19, 3):
        row = ids[start : min(start + 3, 19)]
        logits, kept = reader.advance({"token_ids": row[None], **before})
        before = {"memory": kept} if memory else {}
        logs = keras.ops.convert_to_numpy(keras.ops.log_softmax(logits))[0]
        wanted = ids[start + 1 : start + 1 + len(row)]
        expected += (-logs[np.arange(len(row)), wanted]).tolist()
    np.testing.assert_allclose(losses, expected, atol=1e-5)
    assert bits(np.log([2.0, 8.0])) == pytest.approx(2.0)


def test_rows_continue_the_text():
    model = TransformerXL(
        7, 1, 2, 8, memory_length=4, dropout=0.0, attention_dropout=0.0, **NONE
    )
    randomize(model)
    ids = np.random.default_rng(0).integers(0, 7, 25).astype("int32")
    one, _ = segment_losses(model, ids, 4, 8, rows=1)
    two, places = segment_losses(model, ids, 4, 8, rows=2)
    assert len(one) == len(two) == 24 and places[:5].tolist() == [0, 1, 2, 3, 0]
    # Rows have 16 tokens: only the second one starts with other context.
    np.testing.assert_allclose(two[:16], one[:16], atol=1e-5)


@pytest.mark.parametrize("width, layers", [(16, 1), (96, 3)])
def test_arms_have_equal_parameter_counts(width, layers):
    settings = transformer_xl_settings.Settings(width=width, layers=layers)
    xl = memory_arms.build_xl(30, settings, 5, stateful_batch_size=2)
    count = sum(int(np.prod(w.shape)) for w in xl.trainable_weights)
    gpt = memory_arms.build_gpt(30, settings, count)
    # Up to one unit of the feed-forward networks.
    assert abs(gpt.count_params() - count) <= layers * (2 * width + 1)


@pytest.mark.parametrize("memory, segment", [(0, 4), (8, 4), (5, 3), (2, 6)])
def test_reach_is_where_the_influence_ends(memory, segment):
    reach = memory_arms.reach(2, memory, segment)
    model = TransformerXL(
        9,
        2,
        2,
        8,
        memory_length=memory,
        dropout=0.0,
        attention_dropout=0.0,
        **NONE,
    )
    randomize(model)
    length = -(-(reach + 3) // segment) * segment
    ids = np.tile(np.arange(length, dtype="int32") % 7, (3, 1))
    ids[0, length - 1 - reach] = 8
    ids[1, length - 2 - reach] = 8
    before = {}
    for start in range(0, length, segment):
        logits, kept = model.advance(
            {"token_ids": ids[:, start : start + segment], **before}
        )
        before = {"memory": kept} if memory else {}
    last = keras.ops.convert_to_numpy(logits)[:, -1]
    # Not bitwise: rows of a batch may be rounded differently.
    assert np.abs(last[0] - last[2]).max() > 1e-5
    assert np.abs(last[1] - last[2]).max() < 2e-6
