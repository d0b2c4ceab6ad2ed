"""Documents of sentences."""

import pytest

from keras_attn.datasets import DataFileError, read_documents

pytestmark = pytest.mark.one_backend

TREEBANK = """\
# newdoc id = one
# sent_id = one-1
# newpar
# text = It rains = wet.
1\tIt\tit\tPRON

# text = Stay in.
1\t# text = no\t_\t_

# newdoc
#text=Hello!
"""


@pytest.mark.parametrize(
    "name, text",
    [
        ("a.conllu", TREEBANK),
        ("a.CONLLU.gz", TREEBANK.removeprefix("# newdoc id = one\n")),
        ("a.txt", "It rains = wet.\nStay in.\n\nHello!\n"),
        ("a.gz", "\n\n It rains = wet.\r\nStay in.\r\n \r\n\r\nHello! \r\n\n"),
    ],
)
def test_documents(write, name, text):
    expected = [["It rains = wet.", "Stay in."], ["Hello!"]]
    assert read_documents(write(name, text)) == expected


@pytest.mark.parametrize("name", ["a.txt", "a.conllu"])
def test_files_without_documents_raise(write, name):
    with pytest.raises(DataFileError, match="at least one document"):
        read_documents(write(name, "\n \n"))
