"""Tokenizers, batches of token ids, text scores. Needs `keras-attn[text]`."""

from keras_attn.text.batch_report import BatchReport
from keras_attn.text.byte_pair_tokenizer import BytePairTokenizer
from keras_attn.text.character_tokenizer import CharacterTokenizer
from keras_attn.text.error_rate import edit_distance, error_rate
from keras_attn.text.load_tokenizer import load_tokenizer
from keras_attn.text.mask_tokens import MaskedTokens, mask_tokens
from keras_attn.text.packed_batches import packed_batches
from keras_attn.text.packed_segments import pack_segments
from keras_attn.text.permute_tokens import PermutedTokens, permute_tokens
from keras_attn.text.question_windows import (
    QuestionWindow,
    pad_windows,
    question_windows,
)
from keras_attn.text.sentence_pairs import SentencePair, sentence_pairs
from keras_attn.text.squad_scores import (
    SquadScores,
    squad_scores,
    squad_threshold,
)
from keras_attn.text.subword_tokenizer import SubwordTokenizer
from keras_attn.text.token_batches import token_batches
from keras_attn.text.token_blocks import token_blocks
from keras_attn.text.token_dataset import TokenDataset
from keras_attn.text.token_streams import token_streams
from keras_attn.text.unigram_tokenizer import UnigramTokenizer
from keras_attn.text.word_piece_tokenizer import WordPieceTokenizer

__all__ = [
    "BatchReport",
    "BytePairTokenizer",
    "CharacterTokenizer",
    "MaskedTokens",
    "PermutedTokens",
    "QuestionWindow",
    "SentencePair",
    "SquadScores",
    "SubwordTokenizer",
    "TokenDataset",
    "UnigramTokenizer",
    "WordPieceTokenizer",
    "edit_distance",
    "error_rate",
    "load_tokenizer",
    "mask_tokens",
    "pack_segments",
    "packed_batches",
    "pad_windows",
    "permute_tokens",
    "question_windows",
    "sentence_pairs",
    "squad_scores",
    "squad_threshold",
    "token_batches",
    "token_blocks",
    "token_streams",
]
