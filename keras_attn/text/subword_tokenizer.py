"""SubwordTokenizer: text to subword ids and back, without any loss."""

import pathlib
from collections.abc import Iterable

import keras

from keras_attn.atomic_files import whole_file
from keras_attn.text import _tensorflow, subword_model
from keras_attn.text.subword_model import checked_text


class SubwordTokenizer:
    r"""Byte-pair subwords with bytes to fall back on: any text comes back.

    A vocabulary is learned by joining, again and again, the two neighbouring
    pieces that stand together most often in a text, from single characters up
    (Sennrich et al., 2016, "Neural Machine Translation of Rare Words with
    Subword Units"; Kudo and Richardson, 2018, "SentencePiece"). A character
    outside the vocabulary is spelled in its UTF-8 bytes, so that

        decode(encode(text)) == text

    for every text: nothing is normalised, spaces, tabs and line breaks stay as
    they are, and the unknown piece never comes up. Digits are single pieces.

    A tokenizer is learned (`train`, `train_from_lines`) or read (`load`). It is
    one sentencepiece model; `encode` and `decode` run it in Python, `tokenize`
    and `detokenize` inside a `tf.data` pipeline, with the same ids.

    Ids: 0 padding `<pad>`, 1 start `<s>`, 2 end `</s>`, 3 unknown `<unk>`, then
    256 bytes, then the learned pieces. `encode` adds no start and no end. Text
    such as "</s>" is plain text and never becomes a special piece.

    Args:
        model: bytes. A model as written by `save`.

    Raises:
        ValueError: `model` is not such a model.
        ImportError: sentencepiece is not installed (tensorflow-text, for
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

    def __init__(self, model):
        sentencepiece = _tensorflow.sentencepiece()
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
    def train(cls, files, vocabulary_size=8000, *, character_coverage=0.9995):
        """Learns a vocabulary from text files.

        Equal files give an equal vocabulary, byte by byte.

        Args:
            files: a path, or an iterable of paths. UTF-8 text, one sentence a
                line.
            vocabulary_size: int. How many pieces to learn, special pieces and
                bytes included. A small text runs out of pieces to join before:
                `tokenizer.vocabulary_size` says how many there are.
            character_coverage: float in (0, 1]. Share of the text's characters
                that get a piece of their own; the rest is spelled in bytes.

        Returns:
            A SubwordTokenizer.

        Raises:
            OSError: a file cannot be read.
            ValueError: a file is not UTF-8; there is no text; the vocabulary
                has no room for the characters of the text.
        """
        lines = subword_model.read_lines(files)
        return cls.train_from_lines(
            lines, vocabulary_size, character_coverage=character_coverage
        )

    @classmethod
    def train_from_lines(
        cls, lines, vocabulary_size=8000, *, character_coverage=0.9995
    ):
        """Learns a vocabulary from texts in memory.

        Args:
            lines: iterable of str, best one sentence each.
            vocabulary_size: int. As for `train`.
            character_coverage: float in (0, 1]. As for `train`.

        Returns:
            A SubwordTokenizer.

        Raises:
            ValueError: as for `train`; `lines` holds something else than str.
        """
        if isinstance(lines, (str, bytes)):
            raise ValueError(
                "`lines` must be an iterable of str, not one text; for files "
                "there is SubwordTokenizer.train. "
                f"Received: lines of type {type(lines).__name__}"
            )
        return cls(
            subword_model.learn(lines, vocabulary_size, character_coverage)
        )

    @classmethod
    def load(cls, path):
        """Reads a tokenizer that `save` wrote.

        Args:
            path: path of the file.

        Returns:
            A SubwordTokenizer.

        Raises:
            OSError: the file cannot be read.
            ValueError: it is broken, or something else.
        """
        model = pathlib.Path(path).read_bytes()
        try:
            return cls(model)
        except ValueError as error:
            raise ValueError(
                f"{path} is broken, or not a file that SubwordTokenizer.save "
                f"wrote ({len(model)} bytes)."
            ) from error

    def save(self, path):
        """Writes the tokenizer to one file, which appears whole or not at all.

        Args:
            path: path of the file. One that is there is replaced.

        Raises:
            OSError: the file cannot be written.
        """
        with whole_file(path) as partial:
            partial.write_bytes(self._model)

    @property
    def vocabulary_size(self):
        """How many pieces there are: ids lie in [0, vocabulary_size)."""
        return self._processor.get_piece_size()

    def encode(self, texts):
        """Turns texts into ids, without start and end.

        Args:
            texts: str, or list of str.

        Returns:
            list of int, or a list of them where a list was given.

        Raises:
            ValueError: a text is not a str or holds lone surrogates.
        """
        return self._encode(texts, int)

    def tokens(self, text):
        """Shows the pieces of a text, `▁` standing for a space.

        Args:
            text: str, or list of str.

        Returns:
            list of str, or a list of them where a list was given.

        Raises:
            ValueError: as for `encode`.
        """
        return self._encode(text, str)

    def pieces(self, ids):
        """Shows the piece of each id, special ids and bytes included.

        What a model generates need not be the ids that `encode` gives to its
        text: `tokens(decode(ids))` may show others.

        Args:
            ids: int (L,): list, NumPy array or tensor.

        Returns:
            list of L str, as `tokens` shows them; `<pad>`, `<s>`, `</s>` and
            `<unk>` for the special ids, such as `<0xC3>` for a byte.

        Raises:
            ValueError: an id lies outside [0, vocabulary_size).

        Examples:
            >>> from keras_attn.text import SubwordTokenizer
            >>> tokenizer = SubwordTokenizer.train_from_lines(["a cat"], 270)
            >>> ids = [tokenizer.start_id, *tokenizer.encode("a é")]
            >>> tokenizer.pieces(ids)
            ['<s>', '▁a', '▁', '<0xC3>', '<0xA9>']
        """
        if not isinstance(ids, (list, tuple)):
            ids = keras.ops.convert_to_numpy(ids).tolist()
        return [self._processor.id_to_piece(i) for i in self._checked(ids)]

    def decode(self, ids):
        """Turns ids into texts: up to the end id, without padding and start.

        Args:
            ids: int (L,), (B, L) or of higher rank, such as the tokens that
                `generate` returns: list, NumPy array or tensor. Rows of a list
                may differ in length.

        Returns:
            str for rank 1, else (nested) list of str.

        Raises:
            ValueError: an id lies outside [0, vocabulary_size).
        """
        if hasattr(ids, "to_list"):  # a tf.RaggedTensor
            ids = ids.to_list()
        if not isinstance(ids, (list, tuple)):
            ids = keras.ops.convert_to_numpy(ids).tolist()
        if any(map(_is_row, ids[:1])):
            return [self.decode(row) for row in ids]
        ids = self._checked(ids)
        if self.end_id in ids:
            ids = ids[: ids.index(self.end_id)]
        return self._processor.decode(ids).removeprefix(" ")

    def tokenize(self, texts):
        """Turns a string tensor into ids, as `encode` does, in a graph.

        Args:
            texts: string tensor of TensorFlow of any shape, or list of str.

        Returns:
            int32 tf.RaggedTensor with one axis more, of ragged length (for a
            single string a tf.Tensor).
        """
        tf = _tensorflow.tensorflow()
        texts = tf.convert_to_tensor(texts, tf.string)
        return self._graph().tokenize(tf.where(texts == "", texts, " " + texts))

    def detokenize(self, ids):
        """Turns ids into a string tensor, as `decode` does, in a graph.

        Args:
            ids: int (B, L) tf.Tensor or tf.RaggedTensor.

        Returns:
            string tf.Tensor (B,).
        """
        tf = _tensorflow.tensorflow()
        if isinstance(ids, tf.RaggedTensor):
            ids = ids.to_tensor(self.pad_id)
        ids = tf.cast(ids, tf.int32)
        ended = tf.cumsum(tf.cast(ids == self.end_id, tf.int32), axis=-1)
        ids = tf.ragged.boolean_mask(ids, (ended == 0) & (ids != self.pad_id))
        texts = self._graph().detokenize(ids)
        return tf.strings.regex_replace(texts, r"\A ", "")

    def _graph(self):
        """Returns the same model as operations of the graph at hand.

        It is made anew for each call: an operation kept from before is gone
        after `keras.utils.set_random_seed`, which empties TensorFlow's caches,
        and one made in a traced function dies with that function.
        """
        tf, text = _tensorflow.tensorflow(), _tensorflow.tensorflow_text()
        return text.SentencepieceTokenizer(self._model, out_type=tf.int32)

    def _encode(self, texts, out_type):
        """Encodes one text or a list of them, as ids or as pieces."""
        several = isinstance(texts, Iterable) and not isinstance(
            texts, (str, bytes)
        )
        rows = [
            # A word gets the same pieces first in a text as later in it.
            " " + text if text else text
            for text in map(checked_text, texts if several else [texts])
        ]
        rows = self._processor.encode(rows, out_type=out_type)
        return rows if several else rows[0]

    def _checked(self, ids):
        """Returns ids as a list of int, or raises ValueError."""
        ids = [int(i) for i in ids]
        if ids and not 0 <= min(ids) <= max(ids) < self.vocabulary_size:
            raise ValueError(
                f"`ids` must lie in [0, {self.vocabulary_size}). "
                f"Received: ids from {min(ids)} to {max(ids)}"
            )
        return ids

    def _is_ours(self):
        """Whether the model has our special ids and our rules for spaces."""
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


def _is_row(item):
    """Whether an item of a list of ids is itself a list, not one id."""
    return isinstance(item, (list, tuple)) or len(getattr(item, "shape", ()))
