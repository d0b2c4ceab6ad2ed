"""SubwordTokenizer: a lossless subword tokenizer."""

import pathlib
from collections.abc import Iterable, Sequence
from typing import Any, Self

from keras_attn import checks
from keras_attn.atomic_files import whole_file
from keras_attn.text import arguments, packages, subword_model
from keras_attn.typing import PathLike, TensorLike

# The largest published models have a few megabytes.
_MOST_BYTES = 2**28
# As in Hugging Face's folders.
_FILE = "tokenizer.model"
# What `tf.convert_to_tensor` raises.
_NO_TENSOR = NotImplementedError, RecursionError, TypeError, ValueError


class SubwordTokenizer:
    r"""Byte-pair encoding (BPE) with byte fallback; any text round-trips.

    A vocabulary is learned by repeatedly merging the most frequent pair of
    adjacent pieces, starting from single characters (Sennrich et al., 2016,
    "Neural Machine Translation of Rare Words with Subword Units"; Kudo and
    Richardson, 2018, "SentencePiece"). A character outside the vocabulary is
    encoded as its UTF-8 bytes, so that

        decode(encode(text)) == text

    for every text: nothing is normalized, spaces, tabs and line breaks are
    preserved, and the unknown token never occurs. Digits are single pieces.

    Learn a tokenizer with `train` or `train_from_lines`, or load one with
    `load`. It is a single sentencepiece model; `encode` and `decode` run it in
    Python, `tokenize` and `detokenize` in a `tf.data` pipeline, with the same
    ids.

    Ids: 0 padding `<pad>`, 1 start `<s>`, 2 end `</s>`, 3 unknown `<unk>`, then
    256 bytes, then the learned pieces. `encode` adds no start or end id. Text
    such as "</s>" is plain text and never becomes a special token.

    Args:
        model: bytes. A model written by `save`.

    Raises:
        ValueError: `model` is not such a model.
        ImportError: sentencepiece is not installed (or tensorflow-text, for
            `tokenize` and `detokenize`).

    Examples:
        >>> from keras_attn.text import SubwordTokenizer
        >>> lines = ["the cat sat on the mat", "the dog sat on the cat"]
        >>> tokenizer = SubwordTokenizer.train_from_lines(lines, 290)
        >>> tokenizer.tokens("the cat ate")
        ['▁the', '▁cat', '▁', 'at', 'e']
        >>> tokenizer.decode(tokenizer.encode("Where is\tthe 猫?"))
        'Where is\tthe 猫?'
    """

    pad_id = subword_model.PAD_ID
    start_id = subword_model.START_ID
    end_id = subword_model.END_ID
    unknown_id = subword_model.UNKNOWN_ID

    def __init__(self, model: bytes) -> None:
        sentencepiece = packages.sentencepiece()
        checks.instance("model", model, (bytes, bytearray, memoryview), "bytes")
        self._model = bytes(model)
        self._processor = sentencepiece.SentencePieceProcessor()
        try:
            self._processor.LoadFromSerializedProto(self._model)
            ours = self._model and self._is_ours()
        except RuntimeError:
            ours = False
        if not ours:
            raise ValueError(
                "`model` must be the bytes of a model that "
                "SubwordTokenizer.save wrote. "
                f"Received: {len(self._model)} bytes of something else"
            )

    @classmethod
    def train(
        cls,
        files: PathLike | Iterable[PathLike],
        vocabulary_size: int = 8000,
        *,
        character_coverage: float = 0.9995,
    ) -> Self:
        """Learns a vocabulary from text files.

        The result is deterministic, byte for byte.

        Args:
            files: a path, or an iterable of paths. UTF-8 text, one sentence per
                line.
            vocabulary_size: int. Maximum number of pieces, special tokens and
                bytes included. With little text there may be fewer: see
                `tokenizer.vocabulary_size`.
            character_coverage: float in [0.98, 1]. Fraction of the text's
                characters that get their own piece; the rest is encoded as
                bytes.

        Returns:
            A SubwordTokenizer.

        Raises:
            OSError: a file cannot be read.
            ValueError: a file is not UTF-8; there is no text; the vocabulary is
                too small for the characters of the text.
        """
        lines = subword_model.read_lines(files)
        return cls(
            subword_model.learn(
                lines, vocabulary_size, character_coverage, name="files"
            )
        )

    @classmethod
    def train_from_lines(
        cls,
        lines: Iterable[str],
        vocabulary_size: int = 8000,
        *,
        character_coverage: float = 0.9995,
    ) -> Self:
        """Learns a vocabulary from texts in memory.

        Args:
            lines: iterable of str, preferably one sentence each.
            vocabulary_size: int. As for `train`.
            character_coverage: float in [0.98, 1]. As for `train`.

        Returns:
            A SubwordTokenizer.

        Raises:
            ValueError: as for `train`, or `lines` is a single text or has an
                item that is not a str.
        """
        if isinstance(lines, (str, bytes)):
            raise ValueError(
                "`lines` must be an iterable of str, not one text; for files "
                "use `SubwordTokenizer.train`. "
                f"Received: lines of type {type(lines).__name__}"
            )
        lines = arguments.text_lines("lines", lines)
        return cls(
            subword_model.learn(lines, vocabulary_size, character_coverage)
        )

    @classmethod
    def load(cls, path: PathLike) -> Self:
        """Reads a tokenizer that `save` wrote.

        Args:
            path: path of the file, or of a folder with `tokenizer.model`.

        Returns:
            A SubwordTokenizer.

        Raises:
            OSError: the file cannot be read.
            ValueError: the file is corrupt or not a saved tokenizer.
        """
        path = _file(path)
        size = path.stat().st_size
        model = path.read_bytes() if size <= _MOST_BYTES else b""
        try:
            return cls(model)
        except ValueError as error:
            raise ValueError(
                "`path` must be a complete file that `SubwordTokenizer.save` "
                f"wrote. Received: {path}, {size} bytes of something else"
            ) from error

    def save(self, path: PathLike) -> None:
        """Writes the tokenizer to one file, atomically.

        Args:
            path: path of the file, or of an existing folder, in which the file
                is `tokenizer.model`. An existing file is replaced.

        Raises:
            OSError: the file cannot be written.
        """
        with whole_file(_file(path)) as partial:
            partial.write_bytes(self._model)

    @property
    def vocabulary_size(self) -> int:
        """Number of pieces: ids are in [0, vocabulary_size)."""
        return self._processor.get_piece_size()

    def encode(self, texts: str | Sequence[str]) -> list[Any]:
        """Encodes texts as ids, without start and end.

        Args:
            texts: str, or list of str.

        Returns:
            list of int; for a list, a list of such lists.

        Raises:
            ValueError: a text is not a str or contains lone surrogates.
        """
        return self._encode("texts", texts, int)

    def tokens(self, text: str | Sequence[str]) -> list[str]:
        """Returns the pieces of a text, with `▁` for a space.

        Args:
            text: str, or list of str.

        Returns:
            list of str; for a list, a list of such lists.

        Raises:
            ValueError: as for `encode`.
        """
        return self._encode("text", text, str)

    def pieces(self, ids: TensorLike) -> list[str]:
        """Returns the piece of each id, special ids and bytes included.

        Generated ids may differ from the ids that `encode` returns for the same
        text, so `tokens(decode(ids))` may return other pieces.

        Args:
            ids: int (L,): list, NumPy array or tensor.

        Returns:
            list of L str, in the form of `tokens`; `<pad>`, `<s>`, `</s>` and
            `<unk>` for the special ids, and for example `<0xC3>` for a byte.

        Raises:
            ValueError: no integers, or an id outside [0, vocabulary_size).

        Examples:
            >>> from keras_attn.text import SubwordTokenizer
            >>> tokenizer = SubwordTokenizer.train_from_lines(["a cat"], 270)
            >>> ids = [tokenizer.start_id, *tokenizer.encode("a é")]
            >>> tokenizer.pieces(ids)
            ['<s>', '▁a', '▁', '<0xC3>', '<0xA9>']
        """
        ids = arguments.id_list("ids", ids, self.vocabulary_size)
        return [self._processor.id_to_piece(i) for i in ids]

    def decode(self, ids: TensorLike) -> Any:
        """Decodes ids to text, up to the end id, without padding and start.

        Args:
            ids: int (L,), (B, L) or of higher rank, such as the tokens that
                `generate` returns: list, NumPy array or tensor. Rows of a list
                may differ in length.

        Returns:
            str for rank 1, else (nested) list of str.

        Raises:
            ValueError: no integers, or an id outside [0, vocabulary_size).
        """
        size = self.vocabulary_size
        return arguments.decode_rows(
            "ids", ids, size, self.end_id, self._decode
        )

    def token_bytes(self) -> list[bytes]:
        """Returns the bytes that each id adds to the middle of a text.

        Those of padding, start and end are empty, and those of a piece can be a
        part of a character in UTF-8.
        """
        found, processor = [], self._processor
        for number in range(self.vocabulary_size):
            piece = processor.id_to_piece(number)
            if processor.is_byte(number):
                found.append(bytes([int(piece[3:5], 16)]))
            elif processor.is_control(number):
                found.append(b"")
            elif processor.is_unknown(number):
                found.append(processor.decode([number]).encode())
            else:
                found.append(piece.replace("▁", " ").encode())
        return found

    def _decode(self, ids):
        return self._processor.decode(ids).removeprefix(" ")

    def tokenize(self, texts: Any) -> Any:
        """Encodes a string tensor as `encode` does, in a TensorFlow graph.

        Args:
            texts: string tf.Tensor of any shape, or list of str.

        Returns:
            int32 tf.RaggedTensor with an additional ragged axis (tf.Tensor for
            a single string).

        Raises:
            ValueError: `texts` is something else.
        """
        tf = packages.tensorflow()
        try:
            texts = tf.convert_to_tensor(texts, tf.string)
        except _NO_TENSOR as error:
            raise ValueError(
                "`texts` must be a string tensor or a list of str. "
                f"Received: texts of type {type(texts).__name__}"
            ) from error
        return self._graph().tokenize(tf.where(texts == "", texts, " " + texts))

    def detokenize(self, ids: TensorLike) -> Any:
        """Decodes ids to a string tensor, in a TensorFlow graph.

        Args:
            ids: int (B, L) tf.Tensor or tf.RaggedTensor.

        Returns:
            string tf.Tensor (B,).

        Raises:
            ValueError: `ids` are not integers, not of rank 2, or outside
                [0, vocabulary_size). In a graph, the last is an
                `InvalidArgumentError` of TensorFlow.
        """
        tf = packages.tensorflow()
        ids = self._id_tensor(tf, ids)
        ended = tf.cumsum(tf.cast(ids == self.end_id, tf.int32), axis=-1)
        ids = tf.ragged.boolean_mask(ids, (ended == 0) & (ids != self.pad_id))
        texts = self._graph().detokenize(ids)
        return tf.strings.regex_replace(texts, r"\A ", "")

    def _graph(self):
        """Returns the same model as TensorFlow ops of the current graph.

        The ops are created in each call: a cached op is lost after
        `keras.utils.set_random_seed`, which clears TensorFlow's caches
        (as of TensorFlow 2.21.0), and one created in a traced function is lost
        with that function.
        """
        tf, text = packages.tensorflow(), packages.tensorflow_text()
        return text.SentencepieceTokenizer(self._model, out_type=tf.int32)

    def _id_tensor(self, tf, ids):
        """Returns ids as int32 (B, L), or raises ValueError."""
        if isinstance(ids, tf.RaggedTensor):
            ids = ids.to_tensor(self.pad_id)
        try:
            ids = tf.convert_to_tensor(ids)
        except _NO_TENSOR as error:
            raise ValueError(
                "`ids` must be an integer tensor of shape (batch, length). "
                f"Received: ids of type {type(ids).__name__}"
            ) from error
        if not ids.dtype.is_integer or ids.shape.rank not in (2, None):
            raise ValueError(
                "`ids` must be an integer tensor of shape (batch, length). "
                f"Received: {ids.dtype.name} of shape {ids.shape}"
            )
        size = self.vocabulary_size
        if tf.executing_eagerly():
            arguments.id_list("ids", ids.numpy().ravel(), size)
            return tf.cast(ids, tf.int32)
        # A cast would wrap large ids.
        message = f"`ids` must lie in [0, {size})."
        checked = [
            tf.debugging.assert_non_negative(ids, message),
            tf.debugging.assert_less(ids, tf.cast(size, ids.dtype), message),
        ]
        with tf.control_dependencies(checked):
            return tf.cast(ids, tf.int32)

    def _encode(self, name, texts, out_type):
        """Encodes one text or a list of them, as ids or as pieces."""
        several = not isinstance(texts, str)
        expected = "a str or a list of str"
        given = (
            arguments.text_list(name, texts, expected) if several else [texts]
        )
        rows = [
            # The first word gets the same pieces as it would later in a text.
            " " + text if text else text
            for text in (
                arguments.checked_text(name, one, expected) for one in given
            )
        ]
        rows = self._processor.encode(rows, out_type=out_type)
        return rows if several else rows[0]

    def _is_ours(self):
        """Whether the model has this class's special ids and escape rules."""
        processor, probe = self._processor, "  \u2581\x1a "
        ids = [
            processor.pad_id(),
            processor.bos_id(),
            processor.eos_id(),
            processor.unk_id(),
        ]
        return (
            ids == [self.pad_id, self.start_id, self.end_id, self.unknown_id]
            and processor.decode(processor.encode(probe)) == probe
        )


def _file(path):
    path = pathlib.Path(checks.path("path", path))
    return path / _FILE if path.is_dir() else path
