"""What is to be said of a model that ends before it wrote anything."""


def count_blanks(sources, translations):
    """Says in one line how many translations are empty, and what that means.

    Args:
        sources: list of str.
        translations: list of as many str.

    Returns:
        str, with a line break; empty where every source that is not blank has
        a translation.
    """
    asked = [
        translation
        for source, translation in zip(sources, translations, strict=True)
        if source.strip()
    ]
    blank = sum(not translation.strip() for translation in asked)
    if not blank:
        return ""
    return (
        f"{blank:,} of {len(asked):,} translations are empty: the model ended "
        "at once. One that was trained for too few steps does.\n"
    )
