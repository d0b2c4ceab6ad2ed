"""Complete models."""

from keras_attn.models.align_labels_with_tokens import align_labels_with_tokens
from keras_attn.models.bert import Bert
from keras_attn.models.bert_pretrainer import BertPretrainer
from keras_attn.models.best_spans import Spans, best_spans
from keras_attn.models.bio_spans import Entity, bio_spans
from keras_attn.models.classifier_free_guidance import (
    ClassifierFreeGuidance,
)
from keras_attn.models.encoder import Encoder
from keras_attn.models.entity_scores import EntityScores, entity_scores
from keras_attn.models.generative_model import GenerativeModel
from keras_attn.models.gpt import GPT
from keras_attn.models.image_captioner import ImageCaptioner
from keras_attn.models.multiple_choice import MultipleChoice
from keras_attn.models.prompt_state import PromptState
from keras_attn.models.recurrent_seq2seq import RecurrentSeq2Seq
from keras_attn.models.replaced_token_detector import ReplacedTokenDetector
from keras_attn.models.roberta import Roberta
from keras_attn.models.segment_memory import SegmentMemory
from keras_attn.models.sequence_classifier import SequenceClassifier
from keras_attn.models.span_extractor import SpanExtractor
from keras_attn.models.speech_transformer import SpeechTransformer
from keras_attn.models.token_classifier import TokenClassifier
from keras_attn.models.transformer import Transformer
from keras_attn.models.transformer_xl import TransformerXL
from keras_attn.models.vision_transformer import VisionTransformer
from keras_attn.models.xlnet import XLNet

__all__ = [
    "GPT",
    "Bert",
    "BertPretrainer",
    "ClassifierFreeGuidance",
    "Encoder",
    "Entity",
    "EntityScores",
    "GenerativeModel",
    "ImageCaptioner",
    "MultipleChoice",
    "PromptState",
    "RecurrentSeq2Seq",
    "ReplacedTokenDetector",
    "Roberta",
    "SegmentMemory",
    "SequenceClassifier",
    "SpanExtractor",
    "Spans",
    "SpeechTransformer",
    "TokenClassifier",
    "Transformer",
    "TransformerXL",
    "VisionTransformer",
    "XLNet",
    "align_labels_with_tokens",
    "best_spans",
    "bio_spans",
    "entity_scores",
]
