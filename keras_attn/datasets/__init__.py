"""Synthetic data sets, and readers of public formats."""

from keras_attn.datasets.aligned_pairs import AlignedPair, make_aligned_pairs
from keras_attn.datasets.bad_line_report import report_bad_lines
from keras_attn.datasets.caption_check import CaptionCheck, check_caption
from keras_attn.datasets.captioned_images import CaptionedImages, read_captions
from keras_attn.datasets.classification_csv import read_classification_csv
from keras_attn.datasets.cluttered_digits import (
    ClutteredDigits,
    make_cluttered_digits,
)
from keras_attn.datasets.comparison_task import (
    NumberComparisons,
    make_comparison_task,
)
from keras_attn.datasets.conll_bio import read_conll_bio
from keras_attn.datasets.conllu import read_conllu
from keras_attn.datasets.data_files import BadLine, DataFileError
from keras_attn.datasets.dialogues import DialogueTurn, Slot, make_dialogues
from keras_attn.datasets.digit_audio import make_digit_audio
from keras_attn.datasets.disfl_qa import read_disfl_qa
from keras_attn.datasets.disfluent_questions import (
    DisfluentQuestion,
    make_disfluent_questions,
)
from keras_attn.datasets.document_files import read_documents
from keras_attn.datasets.documents import make_documents
from keras_attn.datasets.entailment_pairs import (
    EntailmentPair,
    make_entailment_pairs,
)
from keras_attn.datasets.handwritten_digits import (
    HandwrittenDigits,
    load_handwritten_digits,
)
from keras_attn.datasets.hash_split import split_by_hash
from keras_attn.datasets.labeled_sentence import LabeledSentence
from keras_attn.datasets.labeled_sentences import make_labeled_sentences
from keras_attn.datasets.misspelling_files import read_misspellings
from keras_attn.datasets.misspellings import (
    Misspelling,
    make_misspellings,
    misspell,
)
from keras_attn.datasets.morse_audio import make_morse_audio
from keras_attn.datasets.morse_code import MorseMessage, encode_morse
from keras_attn.datasets.nlvr import read_nlvr
from keras_attn.datasets.parallel_files import read_parallel
from keras_attn.datasets.pronoun_sentences import (
    PronounSentence,
    make_pronoun_sentences,
)
from keras_attn.datasets.question import Answer, Question
from keras_attn.datasets.questions import make_questions
from keras_attn.datasets.recall_tasks import (
    RecallSequences,
    make_lookup_task,
    make_recall_task,
)
from keras_attn.datasets.recording import Recording
from keras_attn.datasets.references import group_references, reference_streams
from keras_attn.datasets.restaurants8k import read_restaurants8k
from keras_attn.datasets.scenes import SceneObject, Scenes, make_scenes
from keras_attn.datasets.sentence_pairs import SentencePair, make_sentence_pairs
from keras_attn.datasets.sequence_tasks import (
    SequencePairs,
    make_copy_task,
    make_reversal_task,
    make_sorting_task,
)
from keras_attn.datasets.slot_questions import slot_questions
from keras_attn.datasets.spelling_words import spelling_words
from keras_attn.datasets.squad import read_squad
from keras_attn.datasets.squad_writer import write_squad
from keras_attn.datasets.tagged_sentence import TaggedSentence
from keras_attn.datasets.tagged_sentences import make_tagged_sentences
from keras_attn.datasets.text_lines import read_lines
from keras_attn.datasets.translation_pairs import (
    SHOWCASE_PAIRS,
    TranslationPair,
    make_translation_pairs,
)
from keras_attn.datasets.tsv_pairs import read_tsv_pairs
from keras_attn.datasets.wav_folder import read_wav, read_wav_folder
from keras_attn.datasets.word_stem import word_stem

__all__ = [
    "SHOWCASE_PAIRS",
    "AlignedPair",
    "Answer",
    "BadLine",
    "CaptionCheck",
    "CaptionedImages",
    "ClutteredDigits",
    "DataFileError",
    "DialogueTurn",
    "DisfluentQuestion",
    "EntailmentPair",
    "HandwrittenDigits",
    "LabeledSentence",
    "Misspelling",
    "MorseMessage",
    "NumberComparisons",
    "PronounSentence",
    "Question",
    "RecallSequences",
    "Recording",
    "SceneObject",
    "Scenes",
    "SentencePair",
    "SequencePairs",
    "Slot",
    "TaggedSentence",
    "TranslationPair",
    "check_caption",
    "encode_morse",
    "group_references",
    "load_handwritten_digits",
    "make_aligned_pairs",
    "make_cluttered_digits",
    "make_comparison_task",
    "make_copy_task",
    "make_dialogues",
    "make_digit_audio",
    "make_disfluent_questions",
    "make_documents",
    "make_entailment_pairs",
    "make_labeled_sentences",
    "make_lookup_task",
    "make_misspellings",
    "make_morse_audio",
    "make_pronoun_sentences",
    "make_questions",
    "make_recall_task",
    "make_reversal_task",
    "make_scenes",
    "make_sentence_pairs",
    "make_sorting_task",
    "make_tagged_sentences",
    "make_translation_pairs",
    "misspell",
    "read_captions",
    "read_classification_csv",
    "read_conll_bio",
    "read_conllu",
    "read_disfl_qa",
    "read_documents",
    "read_lines",
    "read_misspellings",
    "read_nlvr",
    "read_parallel",
    "read_restaurants8k",
    "read_squad",
    "read_tsv_pairs",
    "read_wav",
    "read_wav_folder",
    "reference_streams",
    "report_bad_lines",
    "slot_questions",
    "spelling_words",
    "split_by_hash",
    "word_stem",
    "write_squad",
]
