"""group_references: all translations of each source."""


def group_references(pairs):
    """Groups the translations of each source, as references of BLEU.

    Args:
        pairs: list of `TranslationPair`, or of other tuples (source, target)
            of str.

    Returns:
        Tuple `(sources, references)`. `sources` lists each source once, in the
        order of its first pair; `references` has for each source the list of
        its distinct translations.

    Examples:
        >>> keras_attn.datasets.group_references(
        ...     [("Go.", "Ve."), ("Stop!", "¡Alto!"), ("Go.", "Vete.")])
        (['Go.', 'Stop!'], [['Ve.', 'Vete.'], ['¡Alto!']])
    """
    found = {}
    for source, target in pairs:
        # A dict is an ordered set.
        found.setdefault(source, {})[target] = None
    return list(found), [list(targets) for targets in found.values()]
