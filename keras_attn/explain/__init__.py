"""Looking inside: pictures of attention weights."""

from keras_attn.explain.plot_attention import plot_attention

__all__ = ["plot_attention"]
