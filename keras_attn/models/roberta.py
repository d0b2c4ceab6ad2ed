"""RoBERTa, a BERT that is pretrained on masked tokens alone."""

from typing import Any

import keras

from keras_attn.models.bert import Bert

# As published; keyword arguments override them.
_DEFAULTS = {"epsilon": 1e-5, "num_segments": 1, "pad_id": 1}


@keras.saving.register_keras_serializable(package="keras_attn")
class Roberta(Bert):
    """RoBERTa encoder with per-token outputs and a pooled output.

    Liu et al. 2019, https://arxiv.org/abs/1907.11692; also XLM-RoBERTa (Conneau
    et al. 2020, https://arxiv.org/abs/1911.02116), which has a larger
    vocabulary. The network is that of `Bert` with a single segment. It is
    pretrained with `BertPretrainer(encoder, next_sentence=False)`. The defaults
    are those of the base model.

    The position tables of published files have `pad_id` + 1 more rows, which no
    token uses; `max_sequence_length` does not count them.

    Args:
        vocabulary_size: int. V. Default 50,265; XLM-RoBERTa has 250,002.
        **kwargs: other arguments of `Bert`. Other defaults: `epsilon=1e-5`,
            `num_segments=1`, `pad_id=1`.

    Call arguments:
        inputs: as for `Bert`.
        training: bool. Whether to apply dropout.

    Returns:
        Dict, as `Bert`.

    Raises:
        ValueError: as for `Bert`.

    Examples:
        >>> model = keras_attn.models.Roberta(
        ...     100, num_layers=2, num_heads=2, hidden_dim=16,
        ...     intermediate_dim=32)
        >>> outputs = model(np.array([[0, 7, 8, 2, 1]]))
        >>> tuple(outputs["sequence_output"].shape)
        (1, 5, 16)
    """

    def __init__(self, vocabulary_size: int = 50_265, **kwargs: Any) -> None:
        super().__init__(vocabulary_size, **(_DEFAULTS | kwargs))
