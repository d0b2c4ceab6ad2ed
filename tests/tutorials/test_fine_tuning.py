"""The fine-tuning tutorial: tasks, data, scores, quick runs."""

import gzip
import json

import fine_tuning_settings
import numpy as np
import pytest
import share_bars
import tuning_data
from questions import Question
from tuning_tasks import SentenceTask, SpanTask, TokenTask, pieces_of

from keras_attn.text import WordPieceTokenizer
from tests.tutorials.programs import complaint, printed, runner

pytestmark = pytest.mark.one_backend("torch")

run = runner("fine_tuning", fine_tuning_settings.Settings)
TOKENIZER = WordPieceTokenizer(
    "[PAD] [UNK] [CLS] [SEP] [MASK] who where the old ##er man sat "
    "in rome paris ##s".split()
)


class Answers:
    """A fake model that returns the given logits."""

    def __init__(self, logits):
        self.logits = np.asarray(logits, "float32")

    def predict(self, inputs, batch_size, verbose):
        assert len(inputs["token_ids"]) == len(self.logits)
        return self.logits


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    """The folder of a quick run, and its printed output."""
    folder = tmp_path_factory.mktemp("fine_tuning")
    return folder, printed(run, QUICK=1, OUT=folder, SHARES="0.5")


def test_quick_run_prints_results_and_next_steps(quick):
    folder, said = quick
    results = json.loads((folder / "results.json").read_text("utf-8"))
    assert [*results["tasks"]] == ["sentence", "span"]
    for task in results["tasks"].values():
        for arm in task["shares"]["0.5"].values():
            assert len(arm["scores"]) == 1 and not arm["tried"]
            assert all(0 <= score <= 1 for score in arm["scores"])
    ways = results["ways"]
    assert ways["head alone"]["weights"] < ways["adapters"]["weights"]
    assert ways["adapters"]["weights"] < ways["all weights"]["weights"]
    assert [*results["padding"]["hidden"]] == ["sentence", "span"]
    assert max(results["padding"]["hidden"].values()) < 1e-4
    assert "matrices added in" in said
    assert "What to try next" in said


def test_bar_plots_have_titles_that_fit():
    words = " ".join(["word"] * 30)
    figure = share_bars.draw_shares(
        {"one\ntwo": [("a", 0.25), ("b", 0.75)], words: [("c", 1.0)]}
    )
    first, second = figure.axes
    assert [bar.get_width() for bar in first.patches] == [0.25, 0.75]
    assert first.get_title() == "one\ntwo"
    lines = second.get_title().split("\n")
    assert " ".join(lines) == words and max(map(len, lines)) <= 56


def test_sentence_classification():
    task = SentenceTask(["x", "y", "z"])
    examples = [("the old man", None, "z"), ("rome", None, "x")]
    inputs, labels = task.encode(examples, TOKENIZER, 9)
    assert inputs["token_ids"].tolist() == [[2, 7, 8, 10, 3], [2, 13, 3, 0, 0]]
    assert labels.tolist() == [2, 0]
    answers = Answers([[0, 0, 1], [0, 1, 0]])
    assert task.score(answers, examples, TOKENIZER, 9) == 0.5


def test_pair_classification():
    task = SentenceTask(["x", "y"])
    inputs, labels = task.encode([("rome", "paris", "y")], TOKENIZER, 9)
    assert inputs["token_ids"].tolist() == [[2, 13, 3, 14, 3]]
    assert inputs["segment_ids"].tolist() == [[0, 0, 0, 1, 1]]
    assert labels.tolist() == [1]


def test_span_prediction():
    task = SpanTask()
    passage = ["the", "older", "man", "sat", "in", "parises"]
    examples = [
        Question(["who"], passage, (1, 2)),
        Question(["who"], passage, None),
        # The last word is truncated.
        Question(["who"], passage, (5, 5)),
    ]
    inputs, labels = task.encode(examples, TOKENIZER, 11)
    # [CLS] who [SEP] the old ##er man sat in <unknown> [SEP]
    row = [2, 5, 3, 7, 8, 9, 10, 11, 12, 1, 3]
    assert inputs["token_ids"].tolist() == [row] * 3
    assert inputs["answerable"][0].tolist() == [False] * 3 + [True] * 7 + [
        False
    ]
    assert labels.tolist() == [[4, 6], [0, 0], [9, 9]]
    labels = task.encode(examples, TOKENIZER, 10)[1]
    assert labels.tolist() == [[4, 6], [0, 0], [0, 0]]


def test_spans_are_scored_by_words():
    class Pointing:
        def extract(self, inputs, batch_size):
            class Found:
                start = np.array([4, -1, 3, 5])
                end = np.array([6, -1, 6, 6])

            return Found

    passage = ["the", "older", "man", "sat"]
    examples = [
        Question(["who"], passage, (1, 2)),  # right
        Question(["who"], passage, None),  # correct: no answer
        Question(["who"], passage, None),  # predicted, but there is no answer
        Question(["who"], passage, (1, 2)),  # starts at the same word
    ]
    found = SpanTask().score(Pointing(), examples, TOKENIZER, 16)
    assert found == pytest.approx(2 * 2 / (3 + 2))


def test_tags_are_on_first_subwords():
    task = TokenTask(["O", "B-place", "I-place"])
    examples = [
        (("the", "older", "paris"), ("O", "O", "B-place")),
        (("rome",), ("B-place",)),
    ]
    inputs, labels = task.encode(examples, TOKENIZER, 9)
    assert inputs["token_ids"][0].tolist() == [2, 7, 8, 9, 14, 3]
    assert labels.tolist() == [[-1, 0, 0, -1, 1, -1], [-1, 1, -1, -1, -1, -1]]
    logits = np.zeros((2, 6, 3))
    logits[0, 4, 1] = logits[1, 1, 2] = 1
    logits[0, 1, 1] = 1  # one too many
    # An initial I- tag starts an entity, too.
    score = task.score(Answers(logits), examples, TOKENIZER, 9)
    assert score == pytest.approx(2 * 2 / (3 + 2))
    # Truncated words are predicted as no entity.
    logits = np.zeros((2, 4, 3))
    assert task.score(Answers(logits), examples, TOKENIZER, 4) == 0


def test_words_without_subwords_are_unknown():
    assert pieces_of(["the", "\u200b", "older"], TOKENIZER) == (
        [7, 1, 8, 9],
        [0, 1, 2, 2],
    )


def test_grammar_task_splits_are_disjoint():
    tasks = tuning_data.of_grammar(40, 1)
    again = tuning_data.of_grammar(40, 1)
    for name, data in tasks.items():
        assert [len(part) for part in data[1:]] == [40, 8, 40]
        assert data[1:] == again[name][1:]
        parts = [{repr(x[:-1]) for x in part} for part in data[1:]]
        assert not parts[0] & parts[2] and not parts[0] & parts[1]
    labels = {example[-1] for example in tasks["pair"].train}
    assert labels == {"follows", "does not"}
    for first, second, label in tasks["pair"].train:
        dropped = set(second.split()) <= set(first.split())
        assert dropped or label == "does not"
    spans = [question.span for question in tasks["span"].train]
    assert None in spans and any(spans)


def test_subsets_are_class_balanced():
    task = SentenceTask("ab")
    examples = [(f"{n}", None, "ab"[n % 2]) for n in range(40)]
    chosen = tuning_data.share_of(examples, 0.1, task, 1)
    assert sorted(example[-1] for example in chosen) == ["a", "a", "b", "b"]
    assert chosen != tuning_data.share_of(examples, 0.1, task, 2)
    whole = tuning_data.share_of(examples, 1.0, task, 1)
    assert sorted(whole) == sorted(examples)


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    with gzip.open(path, "wt", encoding="utf-8") as stream:
        stream.write(text)


@pytest.fixture
def folder(tmp_path):
    """A folder with a few lines of each of the four data sets."""
    write(
        tmp_path / "clinc150" / "data_full.json.gz",
        json.dumps(
            {
                part: [[f"{word} {n}", label] for n in range(6)]
                for part in ("train", "val", "test")
                for word, label in [("pay", "bill"), ("book", "table")][:1]
            }
        ),
    )
    lines = ["genre\tsentence1\tsentence2\tgold_label"]
    lines += [f"x\tman {n} sat\tman sat\tneutral" for n in range(60)]
    write(tmp_path / "med" / "MED.tsv.gz", "\n".join(lines))
    turn = {
        "userInput": {"text": "at 7 pm"},
        "labels": [
            {"slot": "time", "valueSpan": {"startIndex": 3, "endIndex": 7}}
        ],
    }
    turns = [turn | {"userInput": {"text": f"at 7 pm {n}"}} for n in range(30)]
    for name in ("train_0", "test"):
        write(tmp_path / "restaurant8k" / f"{name}.json.gz", json.dumps(turns))
    for name in (
        "wnut17train.conll",
        "emerging.dev.conll",
        "emerging.test.annotated",
    ):
        write(
            tmp_path / "wnut17" / f"{name}.gz",
            "Rome\tB-location\nsat\tO\n\nin\tO\nNew\tB-location\n"
            "York\tI-location\n",
        )
    return tmp_path


def test_read_four_data_sets(folder):
    tasks = tuning_data.of_folder(folder)
    assert tasks["sentence"].train[2] == ("pay 2", None, "bill")
    med = tasks["pair"]
    assert sum(map(len, med[1:])) == 60 and len(med.train) > len(med.test) > 0
    assert med.train[0][1:] == ("man sat", "neutral")
    times = [q for q in tasks["span"].test if q.asked == ["time"]]
    assert times[0].passage == ["at", "7", "pm", "0"]
    assert times[0].span == (1, 2)
    words, tags = tasks["tokens"].train[1]
    assert words == ("in", "New", "York")
    assert tags == ("O", "B-location", "I-location")
    assert tasks["tokens"].task.tags == ["O", "B-location", "I-location"]


def test_real_sentences(folder, quick, tmp_path, monkeypatch, capsys):
    run(
        monkeypatch,
        QUICK=1,
        WAYS=0,
        DATA=folder,
        TASKS="tokens",
        RATES="1e-3,1e-2",
        SEEDS=2,
        OUT=tmp_path / "out",
    )
    results = json.loads((tmp_path / "out" / "results.json").read_text("utf-8"))
    assert [*results["tasks"]] == ["tokens"] and "ways" not in results
    for arm in results["tasks"]["tokens"]["shares"]["1"].values():
        assert len(arm["scores"]) == 2 and len(arm["tried"]) == 2
    assert "over 2 seeds" in capsys.readouterr().out


def test_pretrained_model(tmp_path, monkeypatch, capsys):
    import bert_settings

    runner("bert", bert_settings.Settings)(
        monkeypatch, QUICK=1, OUT=tmp_path / "bert"
    )
    monkeypatch.delenv("OUT")
    run(
        monkeypatch,
        QUICK=1,
        WAYS=0,
        TASKS="pair",
        PRETRAINED=tmp_path / "bert",
        OUT=tmp_path / "out",
    )
    said = capsys.readouterr().out
    # The model of the BERT tutorial, with its vocabulary.
    assert "V = 175:" in said and "V = 175, D = 16," in said


@pytest.mark.parametrize(
    "values, answer",
    [
        ({"DATA": "nowhere"}, "DATA must be a folder with one of clinc150"),
        ({"TASKS": "poems"}, "TASKS must be some of sentence, pair"),
        ({"RATES": "1e-3,x"}, "RATES must be positive numbers with commas"),
        ({"SHARES": "2"}, "SHARES must be at most 1"),
        ({"SHARES": "0.1,1"}, "PASSES must be a number for each of SHARES"),
        ({"LENGTH": "8"}, "LENGTH must be at least 16"),
        ({"PRETRAINED": "nowhere"}, "MODEL must be a folder with"),
    ],
)
def test_invalid_input_exits_with_one_line_and_status_2(
    values, answer, monkeypatch, capsys
):
    said = complaint(run, monkeypatch, capsys, **values)
    assert answer in said
