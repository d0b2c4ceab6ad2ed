"""Fonts for labels in any script."""

import functools
from collections.abc import Iterable


def label_fonts(texts: Iterable[str]) -> list[str]:
    """Returns fonts that cover the characters of some labels.

    Matplotlib's default font covers Latin, Greek, Cyrillic and a few more. For
    other characters the installed fonts are searched, those with the best
    coverage first. Characters in none of them are drawn as boxes, with a
    warning from matplotlib.

    Args:
        texts: iterable of str.

    Returns:
        List of str, font family names; matplotlib draws each character with
        the first font that has it.
    """
    from matplotlib import font_manager

    usual = font_manager.FontProperties()
    families = list(usual.get_family())
    characters = frozenset("".join(texts))
    missing = characters - _characters(font_manager.findfont(usual))
    return families + _covering(
        frozenset(c for c in missing if c.isprintable())
    )


@functools.lru_cache(maxsize=64)
def _covering(missing):
    from matplotlib import font_manager

    if not missing:
        return []
    has = {}
    for font in font_manager.fontManager.ttflist:
        if "Last Resort" in font.name:
            continue  # has a box for every character
        found = missing & _characters(font.fname)
        if len(found) > len(has.get(font.name, ())):
            has[font.name] = found
    families = []
    while missing and has:
        best = max(sorted(has), key=lambda name: len(has[name] & missing))
        if not has[best] & missing:
            break
        families.append(best)
        missing = missing - has.pop(best)
    return families


@functools.lru_cache(maxsize=512)
def _characters(path):
    from matplotlib import font_manager

    return frozenset(map(chr, font_manager.get_font(path).get_charmap()))
