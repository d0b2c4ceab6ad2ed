"""group_references, reference_streams: several correct texts for one."""

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING

from keras_attn import checks

if TYPE_CHECKING:
    from keras_attn.datasets.translation_pairs import TranslationPair


def group_references(
    pairs: "Sequence[TranslationPair]",
) -> tuple[list[str], list[list[str]]]:
    """Groups the translations of each source, as references of BLEU.

    Args:
        pairs: list of `TranslationPair`, or of other tuples (source, target)
            of str.

    Returns:
        Tuple `(sources, references)`. `sources` lists each source once, in the
        order of its first pair; `references` has for each source the list of
        its distinct translations.

    Raises:
        ValueError: `pairs` is not a list of pairs of str.

    Examples:
        >>> keras_attn.datasets.group_references(
        ...     [("Go.", "Ve."), ("Stop!", "¡Alto!"), ("Go.", "Vete.")])
        (['Go.', 'Stop!'], [['Ve.', 'Vete.'], ['¡Alto!']])
    """
    expected = "a list of tuples (source, target) of str"
    found = {}
    for pair in checks.iterable("pairs", pairs, expected):
        if (
            not isinstance(pair, (list, tuple))
            or len(pair) != 2
            or not all(isinstance(text, str) for text in pair)
        ):
            raise ValueError(
                f"`pairs` must be {expected}. "
                f"Received: an item {checks.shown(pair)}"
            )
        source, target = pair
        # A dict is an ordered set.
        found.setdefault(source, {})[target] = None
    return list(found), [list(targets) for targets in found.values()]


def reference_streams(
    references: Sequence[Sequence[str]],
) -> list[tuple[str | None, ...]]:
    """Returns lists of references in the form that sacreBLEU takes.

    Its stream i has the i-th reference of each text, or None if a text has
    fewer (Post 2018, https://github.com/mjpost/sacrebleu).

    Args:
        references: list of lists of str: the references of each text, such as
            those of `group_references`.

    Returns:
        List of tuples of str or None, as many as the longest list.

    Raises:
        ValueError: `references` is not a list of lists of str.

    Examples:
        >>> keras_attn.datasets.reference_streams([["Ve.", "Vete."], ["Alto."]])
        [('Ve.', 'Alto.'), ('Vete.', None)]
    """
    expected = "a list of lists of str"
    groups = []
    for group in checks.iterable("references", references, expected):
        groups.append([*checks.iterable("references", group, expected)])
        for text in groups[-1]:
            if not isinstance(text, str):
                raise ValueError(
                    f"`references` must be {expected}. "
                    f"Received: an item {checks.shown(text)}"
                )
    return list(itertools.zip_longest(*groups))
