"""Attention maps, saliency, plots, and the padding leak detector."""

from keras_attn.explain.attention_map import AttentionMap
from keras_attn.explain.attention_maps import attention_maps
from keras_attn.explain.doctor import doctor
from keras_attn.explain.head_measures import (
    head_distance,
    head_entropy,
    padding_attention,
)
from keras_attn.explain.hidden_states import hidden_states
from keras_attn.explain.insertion import (
    DeletionInsertion,
    deletion_and_insertion,
)
from keras_attn.explain.logit_lens import logit_lens
from keras_attn.explain.patch import PatchScores, patch
from keras_attn.explain.perturbations import FrameMasks, PatchMasks, TokenMasks
from keras_attn.explain.plot_attention import plot_attention
from keras_attn.explain.plot_beam import plot_beam
from keras_attn.explain.plot_confusion import plot_confusion
from keras_attn.explain.plot_image_attention import plot_image_attention
from keras_attn.explain.plot_logit_lens import plot_logit_lens
from keras_attn.explain.plot_patch import plot_patch
from keras_attn.explain.plot_training import plot_training
from keras_attn.explain.report import Leak, Probe, Report
from keras_attn.explain.rise import rise
from keras_attn.explain.rollout import rollout
from keras_attn.explain.view_attention import AttentionView, view_attention

__all__ = [
    "AttentionMap",
    "AttentionView",
    "DeletionInsertion",
    "FrameMasks",
    "Leak",
    "PatchMasks",
    "PatchScores",
    "Probe",
    "Report",
    "TokenMasks",
    "attention_maps",
    "deletion_and_insertion",
    "doctor",
    "head_distance",
    "head_entropy",
    "hidden_states",
    "logit_lens",
    "padding_attention",
    "patch",
    "plot_attention",
    "plot_beam",
    "plot_confusion",
    "plot_image_attention",
    "plot_logit_lens",
    "plot_patch",
    "plot_training",
    "rise",
    "rollout",
    "view_attention",
]
