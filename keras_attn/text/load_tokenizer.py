"""load_tokenizer: the tokenizer of a folder."""

import pathlib

from keras_attn import checks
from keras_attn.text.byte_pair_tokenizer import BytePairTokenizer
from keras_attn.text.character_tokenizer import CharacterTokenizer
from keras_attn.text.subword_tokenizer import SubwordTokenizer
from keras_attn.text.word_piece_tokenizer import WordPieceTokenizer

# The files that select the class.
_FILES = {
    "vocab.txt": WordPieceTokenizer,
    "merges.txt": BytePairTokenizer,
    "tokenizer.model": SubwordTokenizer,
    "characters.json": CharacterTokenizer,
}


def load_tokenizer(directory):
    """Loads the tokenizer of a folder; its files select the class.

    - `vocab.txt`: `WordPieceTokenizer`;
    - `merges.txt` and `vocab.json`: `BytePairTokenizer`;
    - `tokenizer.model`: `SubwordTokenizer`;
    - `characters.json`: `CharacterTokenizer`.

    Args:
        directory: path of a folder.

    Returns:
        The tokenizer.

    Raises:
        ValueError: the folder has none of these files, or a corrupt one.
        ImportError: sentencepiece is needed and not installed.

    Examples:
        >>> import tempfile
        >>> directory = tempfile.mkdtemp()
        >>> lines = ["the cat sat on the mat", "the dog sat on the cat"]
        >>> tokenizer = keras_attn.text.SubwordTokenizer.train_from_lines(
        ...     lines, 290)
        >>> tokenizer.save(directory)
        >>> keras_attn.text.load_tokenizer(directory).tokens("the cat")
        ['▁the', '▁cat']
    """
    folder = pathlib.Path(checks.path("directory", directory))
    for name, tokenizer in _FILES.items():
        if (folder / name).is_file():
            return tokenizer.load(folder)
    raise ValueError(
        "`directory` must be a folder with one of these files: "
        f"{', '.join(_FILES)}. "
        f"Received: directory={str(directory)!r}"
    )
