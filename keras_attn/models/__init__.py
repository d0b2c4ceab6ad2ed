"""F5: whole models."""

from keras_attn.models.best_spans import Spans, best_spans
from keras_attn.models.doors import check_ids
from keras_attn.models.encoder import Encoder
from keras_attn.models.gpt import GPT
from keras_attn.models.recurrent_seq2seq import RecurrentSeq2Seq
from keras_attn.models.span_extractor import SpanExtractor
from keras_attn.models.token_classifier import TokenClassifier
from keras_attn.models.transformer import Transformer

__all__ = [
    "GPT",
    "Encoder",
    "RecurrentSeq2Seq",
    "SpanExtractor",
    "Spans",
    "TokenClassifier",
    "Transformer",
    "best_spans",
    "check_ids",
]
