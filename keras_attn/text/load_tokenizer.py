"""load_tokenizer: the tokenizer of a folder."""

from typing import TYPE_CHECKING

from keras_attn.text.byte_pair_tokenizer import BytePairTokenizer
from keras_attn.text.character_tokenizer import CharacterTokenizer
from keras_attn.text.pretrained_tokenizer import model_of
from keras_attn.text.subword_tokenizer import SubwordTokenizer
from keras_attn.text.tokenizer_folder import CONFIG, DEFINITION, TokenizerFolder
from keras_attn.text.unigram_tokenizer import UnigramTokenizer
from keras_attn.text.word_piece_tokenizer import WordPieceTokenizer
from keras_attn.typing import PathLike

if TYPE_CHECKING:
    from keras_attn.text.pretrained_tokenizer import PretrainedTokenizer


_PRETRAINED = WordPieceTokenizer, BytePairTokenizer, UnigramTokenizer
# The files that select the class if no setting does.
_FILES = {
    "vocab.txt": WordPieceTokenizer,
    "merges.txt": BytePairTokenizer,
    "source.spm": UnigramTokenizer,
    "spiece.model": UnigramTokenizer,
}
_OWN_FILES = {
    "tokenizer.model": SubwordTokenizer,
    "characters.json": CharacterTokenizer,
}


def load_tokenizer(directory: PathLike) -> "PretrainedTokenizer":
    """Loads the tokenizer of a folder.

    `tokenizer_class` in tokenizer_config.json (or the `model_type` in
    config.json) selects the class, otherwise the model in tokenizer.json,
    otherwise the files:

    - `vocab.txt`: `WordPieceTokenizer`;
    - `merges.txt` and `vocab.json`: `BytePairTokenizer`;
    - `source.spm`, `target.spm` and `vocab.json` (Marian): `UnigramTokenizer`;
    - `tokenizer.model`: `SubwordTokenizer`;
    - `characters.json`: `CharacterTokenizer`.

    Args:
        directory: path of a folder.

    Returns:
        The tokenizer.

    Raises:
        ValueError: the folder has no tokenizer, or a corrupt or unsupported
            one.
        ImportError: tokenizers or sentencepiece is needed and not installed.

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
    folder = TokenizerFolder(directory)
    if folder.definition is None and not folder.has(CONFIG):
        # The `model_type` in config.json says nothing about these files.
        for name, tokenizer in _OWN_FILES.items():
            if folder.has(name):
                return tokenizer.load(folder.path)
    for tokenizer in _PRETRAINED:
        if folder.name in tokenizer._CLASSES:
            return tokenizer.from_folder(folder)
    if folder.definition is not None:
        kind = model_of(folder)["type"]
        models = {tokenizer._MODEL: tokenizer for tokenizer in _PRETRAINED}
        if kind not in models:
            raise ValueError(
                f"`directory` must have a {DEFINITION} with one of these "
                f"models: {', '.join(models)}. Received: {kind}"
            )
        return models[kind].from_folder(folder)
    for name, tokenizer in _FILES.items():
        if folder.has(name):
            return tokenizer.from_folder(folder)
    for name, tokenizer in _OWN_FILES.items():
        if folder.has(name):
            return tokenizer.load(folder.path)
    raise ValueError(
        f"`directory` must be a folder with {DEFINITION} or one of these "
        f"files: {', '.join([*_FILES, *_OWN_FILES])}. "
        f"Received: directory={str(directory)!r}"
    )
