"""Documents from parallel corpora: paraphrases are grouped."""

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from paraphrase_documents import TOGETHER, main, paraphrase_documents

pytestmark = pytest.mark.one_backend
PAIRS = [
    ("Go on.", "Weiter."),
    ("Stop.", "Halt."),
    ("Proceed.", "Weiter."),
    ("Hold it.", "Halt."),
    ("Proceed.", "Los."),
    ("Move.", "Los."),
    *((f"It is {number}.", f"Es ist {number}.") for number in range(20)),
]
words = st.sampled_from("abcdefgh")


def test_sentences_with_equal_translations_are_grouped():
    documents = paraphrase_documents([PAIRS])
    like = {
        frozenset(document)
        for document in documents
        if not document[0].startswith("It is")
    }
    assert like == {
        # One sentence connects both translations.
        frozenset(("Go on.", "Proceed.", "Move.")),
        frozenset(("Stop.", "Hold it.")),
    }
    sizes = [len(document) for document in documents]
    assert sorted(sizes) == [2, 3, 4, TOGETHER, TOGETHER]


@given(
    st.lists(st.lists(st.tuples(words, words), max_size=9), max_size=3),
    st.integers(0, 3),
)
def test_every_sentence_occurs_once(corpora, seed):
    documents = paraphrase_documents(corpora, seed)
    found = sorted(sentence for document in documents for sentence in document)
    assert found == sorted({first for pairs in corpora for first, _ in pairs})
    assert documents == paraphrase_documents(corpora, seed)


def test_several_corpora_and_seeds():
    more = [("Cease.", "Alto."), ("Stop.", "Alto.")]
    documents = paraphrase_documents([PAIRS, more])
    assert {"Stop.", "Hold it.", "Cease."} in map(set, documents)
    assert documents != paraphrase_documents([PAIRS, more], seed=2)


def test_command_line(tmp_path, capsys):
    path = tmp_path / "pairs.txt"
    path.write_text("".join(f"{a}\t{b}\n" for a, b in PAIRS))
    main([str(path)])
    printed = capsys.readouterr()
    documents = printed.out.rstrip("\n").split("\n\n")
    expected = ["\n".join(d) for d in paraphrase_documents([PAIRS])]
    assert documents == expected
    assert printed.err == "25 sentences, 5 documents\n"
    with pytest.raises(SystemExit, match=r"^paraphrase_documents: .*missing"):
        main([str(tmp_path / "missing")])


def test_command_without_a_file_prints_usage():
    program = "tutorials/paraphrase_documents.py"
    done = subprocess.run(
        [sys.executable, program], capture_output=True, text=True
    )
    assert done.returncode == 1
    assert "A.zip B.zip > text.txt" in done.stderr
