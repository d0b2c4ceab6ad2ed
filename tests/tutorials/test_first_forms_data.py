"""Data of the tutorial on early attention."""

import doctest
import itertools

import corpora
import first_forms_data
import first_forms_settings
import keras
import lookup_task
import noun_lists
import numpy as np
import pair_table
import pytest
import word_lines
from alignment_maps import draw_maps
from pair_table import END, PAD, START, UNKNOWN, PairTable
from with_weights import WithWeights

from keras_attn.models import RecurrentSeq2Seq

PAIRS = [("The red car!", "el coche rojo"), ("the tree", "el árbol")]


@pytest.fixture(scope="module")
def lists():
    return noun_lists.draw_lists(1500, 1, 4, seed=3)


def test_docstring_examples():
    for module in (noun_lists, pair_table):
        found = doctest.testmod(module)
        assert found.attempted and not found.failed


def test_alignments_match_a_dictionary(lists):
    """Each pair of aligned words is in a handwritten dictionary."""
    dictionary = {
        "and": {"y"},
        "the": {"el", "la", "los", "las"},
        "this": {"este", "esta"},
        "two": {"dos"},
        "many": {"muchos", "muchas"},
        "cat": {"gato"},
        "cats": {"gatos"},
        "boxes": {"cajas"},
        "trees": {"árboles"},
        "red": {"rojo", "roja", "rojos", "rojas"},
        "big": {"grande", "grandes"},
        "old": {"viejo", "vieja", "viejos", "viejas"},
    }
    seen = set()
    for one in lists:
        english, spanish = one.english.split(), one.spanish.split()
        assert sorted(one.links) == list(range(len(english)))
        for word, position in zip(spanish, one.links, strict=True):
            if english[position] in dictionary:
                assert word in dictionary[english[position]], one
                seen.add((english[position], word))
    assert seen == {
        (word, form) for word, forms in dictionary.items() for form in forms
    }


def test_only_the_adjective_is_reordered(lists):
    moved = set()
    for one in lists:
        gaps = np.array(one.links) - np.arange(len(one.links))
        moved.update(gaps.tolist())
    assert moved == {-1, 0, 1}


def test_list_of_two_objects():
    one = noun_lists.listed(
        [
            noun_lists.thing("my", "car", "red"),
            noun_lists.thing("two", "tree", "old", plural=True),
        ]
    )
    assert one.pair == (
        "my red car and two old trees",
        "mi coche rojo y dos árboles viejos",
    )
    assert one.links == (0, 2, 1, 3, 4, 6, 5)


def test_splits_are_disjoint(lists):
    kept = noun_lists.draw_lists(300, 1, 4, held_out=True, seed=3)
    trained = {one.english for one in lists}
    assert len(trained) == len(lists)
    assert not trained & {one.english for one in kept}
    assert all(noun_lists.is_held_out(one.english) for one in kept)
    sizes = {one.english.count(" and ") + 1 for one in lists}
    assert sizes == {1, 2, 3, 4}


def test_draws_are_deterministic():
    first, again, other = (
        noun_lists.draw_lists(20, 2, 3, seed=seed) for seed in (1, 1, 2)
    )
    assert first == again != other


@pytest.mark.parametrize(
    "call, said",
    [
        (lambda: noun_lists.draw_lists(-1, 1, 2), "`count` must not be neg"),
        (lambda: noun_lists.draw_lists(1, 0, 2), "`least` must be at least 1"),
        (lambda: noun_lists.draw_lists(1, 3, 2), "least=3, most=2"),
        (lambda: noun_lists.draw_lists(9999, 1, 1), "there are.*count=9999"),
        (lambda: noun_lists.listed([]), "`things` must hold at least one"),
        (lambda: noun_lists.thing("these", "cat"), "`determiner` must suit"),
        (lambda: lookup_task.draw(-1, 2), "`count` must not be negative"),
        (lambda: lookup_task.draw(1, 13), r"`slots` must lie in \[1, 12\]"),
    ],
)
def test_invalid_input_raises(call, said):
    with pytest.raises(ValueError, match=said):
        call()


def test_sentences_become_rows():
    table = PairTable.of_pairs(PAIRS)
    assert table.source_words == ["the", "!", "car", "red", "tree"]
    assert table.sizes == (9, 8)
    the, mark, car, red = 4, 5, 6, 7
    sources = table.sources(["THE red car!", "the bike"], 6)
    assert sources.dtype == "int32"
    assert sources.tolist() == [
        [the, red, car, mark, END, PAD],
        [the, UNKNOWN, END, PAD, PAD, PAD],
    ]
    turned = table.sources(["the red car"], 5, backwards=True)
    assert turned.tolist() == [[car, red, the, END, PAD]]
    reads, says = table.targets(["el coche"], 4)
    assert reads[0, 0] == START and says[0, 2] == END
    np.testing.assert_array_equal(reads[0, 1:3], says[0, :2])
    assert table.target_text(says[0]) == "el coche"


def test_too_short_row_raises():
    table = PairTable.of_pairs(PAIRS)
    with pytest.raises(ValueError, match=r"at least 4.*Received: length=3"):
        table.sources(["the red car"], 3)
    with pytest.raises(ValueError, match=r"at least 4.*Received: length=3"):
        table.targets(["el coche rojo"], 3)


def test_rare_words_are_unknown():
    table = PairTable.of_pairs(PAIRS, most=1)
    assert table.source_words == ["the"] and table.target_words == ["el"]
    assert table.targets(["el coche"], 3)[1].tolist() == [[4, UNKNOWN, END]]


def test_table_roundtrip(tmp_path):
    table = PairTable.of_pairs(PAIRS)
    table.save(tmp_path / "words.json")
    loaded = PairTable.load(tmp_path / "words.json")
    assert loaded.sizes == table.sizes
    ids = table.targets(["el árbol"], 4)[1]
    np.testing.assert_array_equal(loaded.targets(["el árbol"], 4)[1], ids)
    assert loaded.target_text(ids[0]) == "el árbol"


def test_corpus_is_read_and_encoded(tmp_path):
    path = tmp_path / "pairs.txt"
    path.write_text("Go.\tVe.\nHi!\tHola.\textra\n", encoding="utf-8")
    table = PairTable.of_pairs(corpora.read_pairs(path))
    assert table.source_words == ["!", ".", "go", "hi"]
    assert table.target_words == [".", "hola", "ve"]


def test_lookups_have_one_answer():
    data = lookup_task.draw(2000, 5, seed=4)
    assert data.names.shape == data.colours.shape == (2000, 5)
    for row in range(0, 2000, 37):
        names = data.names[row].tolist()
        assert len(set(names)) == 5
        assert names.index(data.asked[row]) == data.slots[row]
        assert data.colours[row, data.slots[row]] == data.answers[row]
    # All are drawn about equally often, within 5 standard deviations.
    for drawn, kinds in (
        (data.slots, 5),
        (data.answers, len(lookup_task.COLOURS)),
        (data.asked, len(lookup_task.NAMES)),
    ):
        counts = np.bincount(drawn, minlength=kinds)
        error = np.sqrt(2000 / kinds * (1 - 1 / kinds))
        assert (np.abs(counts - 2000 / kinds) < 5 * error).all()


def test_lookup_as_text():
    data = lookup_task.Lookup(
        *(np.array(x) for x in ([[0, 2]], [[1, 0]], [2], [1], [0]))
    )
    assert lookup_task.text(data, 0) == "Ana blue, Eva red. Eva? red"


def test_settings():
    run = first_forms_settings.read({})
    assert first_forms_settings.is_default(run)
    quick = first_forms_settings.read({"QUICK": "1", "OUT": "o"})
    assert quick.quick and not first_forms_settings.is_default(quick)
    assert first_forms_settings.is_default(run._replace(fresh=True))
    with pytest.raises(ValueError, match="LONGEST must be at least 3"):
        first_forms_settings.read({"LONGEST": "2"})


def test_folder_without_a_model_raises(tmp_path):
    with pytest.raises(ValueError, match=r"without model\.keras"):
        word_lines.run(tmp_path)
    (tmp_path / "model.keras").touch()
    with pytest.raises(ValueError, match=r"without words\.json"):
        word_lines.run(tmp_path)


class Echo:
    """Repeats the ids of the source."""

    def generate(self, ids, max_length):
        assert max_length == 60
        return type("Decoded", (), {"tokens": np.array(ids)[:, None]})


def test_lines_are_translated_in_order():
    table = PairTable(["a", "b", "c"], ["x", "y", "z"])
    lines = ["b a", "", "  ", "c ?"]
    expected = ["y x", "", "", "z <unknown>"]
    assert word_lines.translate(Echo(), table, lines) == expected
    assert word_lines.translate(Echo(), table, [" "]) == [""]
    for order in itertools.permutations(range(4)):
        found = word_lines.translate(Echo(), table, [lines[i] for i in order])
        assert found == [expected[i] for i in order]


def test_synthetic_test_sentences_are_longer():
    found = first_forms_data.made_up(300, 200, 11, seed=2)
    longest = [
        max(len(source.split()) for source, _ in part)
        for part in (found.train, found.test)
    ]
    assert longest[0] == 11 and 11 < longest[1] <= 11 + found.further
    for (source, target), links in zip(found.test, found.links, strict=True):
        assert len(links) == len(target.split()) == len(source.split())
    assert not set(found.train) & set(found.test)


def test_sentences_of_a_corpus(tmp_path):
    path = tmp_path / "pairs.txt"
    lines = [f"go {i} .\tve {i} ." for i in range(400)]
    lines += [f"go {i} far , far away .\tve {i}" for i in range(400)]
    path.write_text("\n".join(lines), encoding="utf-8")
    found = first_forms_data.of_corpus(str(path), 200, 9, 4, seed=1)
    assert (len(found.train), len(found.test)) == (200, 9)
    assert found.links is None and found.further == 0
    assert all(len(s.split()) == 3 for s, _ in found.train + found.test)
    assert not {s for s, _ in found.train} & {s for s, _ in found.test}
    again, other = (
        first_forms_data.of_corpus(str(path), 200, 9, 4, seed=seed)
        for seed in (1, 2)
    )
    assert found == again != other
    with pytest.raises(ValueError, match="too few sentences of at most 2"):
        first_forms_data.of_corpus(str(path), 200, 9, 2, seed=1)


@pytest.mark.parametrize("attention", ["dot", None])
def test_model_returns_alignments(attention):
    model = RecurrentSeq2Seq(
        9, hidden_dim=4, cell="gru", attention=attention, dropout=0.0
    )
    ids = np.array([[5, 6, 2, 0], [7, 2, 0, 0]], "int32")
    found = WithWeights(model).predict((ids, ids), verbose=0)
    output = found if attention is None else found[0]
    expected = keras.ops.convert_to_numpy(model((ids, ids)))
    np.testing.assert_allclose(output, expected, atol=1e-5)
    if attention is not None:
        weights = found[1]
        assert weights.shape == (2, 4, 4)
        np.testing.assert_allclose(weights.sum(-1), 1, atol=1e-5)
        assert not weights[0, :, 3].any() and not weights[1, :, 2:].any()


def test_plots_have_words_and_frames():
    weights = np.eye(4)[[0, 2, 1, 3]]
    words = ["the", "red", "car", "</s>"]
    target = ["el", "coche", "rojo", "</s>"]
    figure = draw_maps(
        {"there": weights, "back": weights},
        words,
        target,
        links=(0, 2, 1),
        backwards=["back"],
    )
    there, back = (axes for axes in figure.axes if axes.images)
    for axes, columns, positions in (
        (there, words, [0, 2, 1]),
        (back, ["car", "red", "the", "</s>"], [2, 0, 1]),
    ):
        assert [t.get_text() for t in axes.get_xticklabels()] == columns
        assert [t.get_text() for t in axes.get_yticklabels()] == target
        middles = [
            (line.get_xdata()[:-1].mean(), line.get_ydata()[:-1].mean())
            for line in axes.lines
        ]
        assert middles == [(x, y) for y, x in enumerate(positions)]
    with pytest.raises(ValueError, match="`maps` must hold at least one"):
        draw_maps({}, words, target)
