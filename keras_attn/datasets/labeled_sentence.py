"""LabeledSentence: a sentence, or a pair of sentences, with its class."""

from typing import NamedTuple


class LabeledSentence(NamedTuple):
    """A sentence, or a pair of sentences, with its class.

    Args:
        text: str.
        label: str. Name of the class.
        text_pair: str. The second sentence of a pair. Default None: there is
            only one sentence.

    Examples:
        >>> sentence = keras_attn.datasets.LabeledSentence("we sing", "action")
        >>> sentence.label
        'action'
    """

    text: str
    label: str
    text_pair: str = None
