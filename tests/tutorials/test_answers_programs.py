"""Inference of the question answering tutorial."""

import json

import answers_lines
import answers_settings
import keras
import numpy as np
import pytest
import repair_program
from answer_reader import decide, read
from answer_strips import plot_strips
from copy_table import END, PAD, START, CopyTable
from question_table import SEGMENTS, QuestionTable
from questions import Question
from repairer import Repairer, compare

from keras_attn.models import Encoder, SpanExtractor, Transformer
from keras_attn.models import best_spans as library_spans

pytestmark = pytest.mark.one_backend("tensorflow")

PASSAGE = "the cat saw a dog . the dog slept .".split()
QUESTIONS = [
    Question("who saw a dog".split(), PASSAGE, (0, 1)),
    Question(["who", "sang"], PASSAGE, None),
    Question(["what", "slept"], PASSAGE * 3, (6, 7)),
]
TABLE = QuestionTable.of_questions(QUESTIONS)


class RandomLogits:
    """Returns logits that depend only on the row, like a model."""

    def __init__(self):
        self.shapes = set()

    def predict_on_batch(self, inputs):
        tokens, answerable = inputs["token_ids"], inputs["answerable"]
        self.shapes.add(tokens.shape)
        logits = np.full((len(tokens), 2, 1 + tokens.shape[1]), -1e9, "float32")
        for row, ids, there in zip(logits, tokens, answerable, strict=True):
            ids = ids[ids > 0]
            drawn = np.random.default_rng(ids).normal(size=(2, 1 + len(ids)))
            row[:, 0] = drawn[:, 0]
            for position in np.flatnonzero(there):
                row[:, 1 + position] = 3 * drawn[:, 1 + position]
        return logits


@pytest.mark.parametrize("longest", [None, 2])
def test_spans_match_the_library(longest):
    model = RandomLogits()
    readings = read(model, TABLE, QUESTIONS * 5, longest, batch_size=4)
    assert model.shapes == {(4, 24), (4, 48)}
    for question, one in zip(QUESTIONS * 5, readings, strict=True):
        logits = model.predict_on_batch(TABLE.encode([question]))
        spans = library_spans(logits, longest)
        begins = len(question.asked) + 1
        assert one.score == pytest.approx(spans.score[0], abs=1e-4)
        if spans.start[0] >= 0:
            expected = spans.start[0] - begins, spans.end[0] - begins
            assert one.span == expected and decide([one]) == [one.span]
        else:
            assert decide([one]) == [None]
        first, last = one.span
        assert 0 <= first <= last < len(question.passage)
        assert longest is None or last - first < longest
        for p in (one.start, one.end):
            assert p.shape == (1 + len(question.passage),)
            assert p.sum() == pytest.approx(1)
        assert one.probability == one.start[1 + first] * one.end[1 + last]
        odds = one.probability / (one.start[0] * one.end[0])
        assert one.score == pytest.approx(np.log(odds))
        assert decide([one], one.score) == [None]
        assert decide([one], one.score - 0.01) == [one.span]


def test_plots_frame_the_answer():
    readings = read(RandomLogits(), TABLE, QUESTIONS[:2])
    figure = plot_strips(QUESTIONS[:2], readings, threshold=-99)
    (axes,) = figure.axes
    assert len(axes.images) == 2
    for image, frame, one in zip(
        axes.images, axes.patches, readings, strict=True
    ):
        np.testing.assert_array_equal(
            image.get_array(), np.stack([one.start, one.end])
        )
        first, last = one.span
        # Column 0, from -0.5 to 0.5, is "no answer".
        assert frame.get_x() == first + 0.5
        assert frame.get_width() == last - first + 1
    figure = plot_strips(QUESTIONS[:2], readings, threshold=99)
    assert [p.get_x() for p in figure.axes[0].patches] == [-0.5, -0.5]
    with pytest.raises(ValueError, match="must be about one passage"):
        plot_strips(QUESTIONS, readings)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The output folder of the tutorial, with untrained models."""
    folder = tmp_path_factory.mktemp("answers")
    keras.utils.set_random_seed(0)
    sizes = {
        "num_layers": 1,
        "num_heads": 2,
        "hidden_dim": 8,
        "intermediate_dim": 8,
    }
    encoder = Encoder(
        TABLE.vocabulary_size, num_segments=len(SEGMENTS), **sizes
    )
    SpanExtractor(encoder).save(folder / "model.keras")
    TABLE.save(folder / "words.json")
    rule = {"longest": 2, "threshold": -99.0}
    (folder / "results.json").write_text(json.dumps(rule))
    table = CopyTable(["who"], slots=4)
    ids = {"pad_id": PAD, "start_id": START, "end_id": END}
    model = Transformer(table.vocabulary_size, **sizes, **ids)
    Repairer(model, table).save(folder)
    return folder


def test_saved_model_answers_lines(folder, tmp_path, capsys):
    path = tmp_path / "lines.txt"
    path.write_text("Who slept?\tThe cat slept.\n\nwho sang\ta dog\n")
    answers_lines.run(folder, path)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2
    for line, passage in zip(lines, ("The cat slept .", "a dog"), strict=True):
        words, _, share = line.rpartition(" (")
        assert words in passage and len(words.split()) <= 2
        assert share.endswith("%)")
    path.write_text("no tab\n")
    with pytest.raises(ValueError, match="a question, a tab and a passage"):
        answers_lines.run(folder, path)


def test_saved_model_repairs_lines(folder, tmp_path, capsys):
    path = tmp_path / "lines.txt"
    path.write_text("Who no who slept?\nWhat?\n")
    settings = answers_settings.read(
        {"TASK": "repair", "MODEL": str(folder), "INPUT": str(path)}
    )
    repair_program.run(settings)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2
    # The output has only known words and words of the input.
    assert set(lines[0].split()) <= {"who", "no", "slept", "?"}
    assert set(lines[1].split()) <= {"who", "what", "?"}


@pytest.mark.parametrize("task", answers_settings.TASKS)
def test_folder_without_a_model_raises(task, tmp_path):
    with pytest.raises(ValueError, match="MODEL must be a folder with"):
        if task == "repair":
            repair_program.repair_lines(tmp_path)
        else:
            answers_lines.run(tmp_path)


def test_repairs_are_compared_with_copying():
    targets = [f"who saw {name} near the big lake".split() for name in "ab"]
    sources = [["who", "did", "no", *words] for words in targets]
    found = compare(sources, targets, [targets[0], sources[1]])
    assert found["copied"]["exact match"] == 0
    assert found["behind the cue"]["exact match"] == 1
    assert found["repaired"]["exact match"] == 0.5
    assert found["behind the cue"]["BLEU"] > found["repaired"]["BLEU"]
    assert found["repaired"]["BLEU"] > found["copied"]["BLEU"] > 0


def test_pairs_from_the_grammar_and_from_files(tmp_path):
    settings = answers_settings.read({"QUESTIONS": "30", "QUICK": "1"})
    train, validation, test = repair_program.splits(settings)
    assert len(train) == 30 and validation and test
    assert all(said != meant for said, meant in train)
    paths = []
    for name, count in (("train", 25), ("test", 3)):
        pairs = {
            str(number): {
                "disfluent": f"no {name} {number}",
                "original": f"{name} {number}",
            }
            for number in range(count)
        }
        paths.append(tmp_path / f"{name}.json")
        paths[-1].write_text(json.dumps(pairs))
    settings = answers_settings.read({"DATA": ",".join(map(str, paths))})
    train, validation, test = repair_program.splits(settings)
    assert list(map(len, (train, validation, test))) == [22, 3, 3]
    every = sorted((train + validation), key=lambda pair: int(pair[1][1]))
    assert every == [
        (["no", "train", str(i)], ["train", str(i)]) for i in range(25)
    ]
