"""question_windows: rows, offsets and answers, also of long contexts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keras_attn.datasets import make_questions
from keras_attn.text import SubwordTokenizer, pad_windows, question_windows

pytestmark = pytest.mark.one_backend


class Letters:
    """A tokenizer whose tokens are letters."""

    end_id = 0

    def encode(self, words):
        return [[ord(letter) for letter in word] for word in words]


def text_of(ids):
    return "".join(map(chr, ids))


def test_rows():
    question = ("Where is Ann's cat?", "Ann left. Cats sit", [("Cats", 10)])
    (window,) = question_windows([question], Letters())
    assert text_of(window.token_ids) == "whereisann'scat?\0annleft.catssit"
    assert window.segment_ids == [0] * 17 + [2] * 3 + [1] * 12
    assert window.span == (25, 28)
    assert window.offsets[17:21] == [(0, 3)] * 3 + [(4, 8)]
    (window,) = question_windows([question], Letters(), lowercase=False)
    assert text_of(window.token_ids)[17:] == "Annleft.Catssit"
    # A part of a word is answered by the whole word, in the question's words.
    (window,) = question_windows([(*question[:2], [("ef", 5)])], Letters())
    assert window.span == (20, 23)


@given(
    words=st.lists(st.sampled_from(["a", "bc", "def", "."]), max_size=25),
    question=st.sampled_from(["", "a", "abc def a bc"]),
    max_length=st.integers(4, 40),
    place=st.tuples(st.integers(0, 24), st.integers(1, 3)),
)
def test_windows_cover_the_context(words, question, max_length, place):
    context = " ".join(words)
    part = words[place[0] : sum(place)]
    start = len(" ".join(words[: place[0]])) + bool(place[0])
    answers = [(" ".join(part), start)] if part else []
    windows = question_windows(
        [("q", "c", []), (question, context, answers)], Letters(), max_length
    )
    assert [window.index for window in windows] == [0] + [1] * (
        len(windows) - 1
    )
    letters, seen, is_answered = "".join(words), set(), False
    start_of_context = windows[1].segment_ids.count(0)
    size = max_length - start_of_context
    for number, window in enumerate(windows[1:]):
        assert len(window.token_ids) <= max_length
        lengths = {len(part) for part in window[1:4]}
        assert lengths == {len(window.token_ids)}
        asked = text_of(window.token_ids[: start_of_context - 1])
        assert asked == question.replace(" ", "")[: max_length // 2]
        first = number * max(1, size // 2)
        found = text_of(window.token_ids[start_of_context:])
        assert found == letters[first : first + size]
        seen.update(range(first, first + len(found)))
        if window.span:
            is_answered = True
            begin, end = (window.offsets[i] for i in window.span)
            assert context[begin[0] : end[1]] == answers[0][0]
    assert seen == set(range(len(letters)))
    fits = len("".join(part)) <= size // 2
    assert is_answered or not (part and fits)


def test_answers_of_subwords():
    questions = make_questions(30)
    lines = [text for question in questions for text in question[:2]]
    tokenizer = SubwordTokenizer.train_from_lines(lines, 300)
    windows = question_windows(questions, tokenizer)
    assert [window.index for window in windows] == [*range(30)]
    for window, (_, context, answers) in zip(windows, questions, strict=True):
        assert (window.span is None) == (not answers)
        if answers:
            first, last = window.span
            begin, end = window.offsets[first][0], window.offsets[last][1]
            assert context[begin:end] == answers[0].text
            shown = tokenizer.decode(window.token_ids[first : last + 1])
            assert shown.split() == answers[0].text.split() or " " in shown


@pytest.mark.parametrize(
    "arguments, message",
    [
        (("abc", Letters()), "`questions` must be a list of tuples"),
        (([("a", "b")], Letters()), "`questions` must be a list of tuples"),
        (([("a", "b", [("b", -1)])], Letters()), "`questions` must be a list"),
        (([], object()), "`tokenizer` must be a tokenizer with `encode`"),
        (([], Letters(), 3), "`max_length` must be at least 4"),
        (([], Letters(), 9, 1), "`lowercase` must be True or False"),
    ],
)
def test_invalid_arguments_raise(arguments, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        question_windows(*arguments)


def test_padded_rows():
    questions = [("a b", "c a d", [("a", 2)]), ("a", "b", [])]
    inputs, labels = pad_windows(question_windows(questions, Letters()))
    rows = [[97, 98, 0, 99, 97, 100], [97, 0, 98, 0, 0, 0]]
    assert inputs["token_ids"].tolist() == rows
    rows = [[0, 0, 0, 1, 2, 1], [0, 0, 1, 0, 0, 0]]
    assert inputs["segment_ids"].tolist() == rows
    assert inputs["answerable"].tolist() == [[n > 0 for n in x] for x in rows]
    assert labels.tolist() == [[5, 5], [0, 0]]
    windows = question_windows(questions, Letters())
    inputs, _ = pad_windows(windows, 8, pad_id=3)
    assert inputs["token_ids"][:, -2:].tolist() == [[3, 3], [3, 3]]
    with pytest.raises(ValueError, match=r"^`length` must be at least 6"):
        pad_windows(windows, 5)
    inputs, labels = pad_windows([])
    assert inputs["token_ids"].shape == (0, 1) and labels.shape == (0, 2)
