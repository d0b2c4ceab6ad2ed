"""Looking inside: pictures of attention and beams, and where padding leaks."""

from keras_attn.explain.doctor import doctor
from keras_attn.explain.plot_attention import plot_attention
from keras_attn.explain.plot_beam import plot_beam
from keras_attn.explain.report import Leak, Probe, Report

__all__ = ["Leak", "Probe", "Report", "doctor", "plot_attention", "plot_beam"]
