"""What `ScoredAttention` asks how well a query fits a key."""

from keras_attn.layers.scores.make_score import check_score, make_score

__all__ = ["check_score", "make_score"]
