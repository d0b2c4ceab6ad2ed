"""The page that shows all diagrams and interactive figures."""

import re

from tools.diagrams import ROOT, discover, words

PAGE = ROOT / "docs" / "diagrams.md"
_SUBJECTS = {
    "recurrent": "Recurrent models and paths",
    "attention": "Attention",
    "masks": "Masks",
    "positions": "Positions",
    "transformer": "The Transformer and its blocks",
    "decoding": "Decoding",
    "pretraining": "Pre-training and fine-tuning",
    "segments": "Transformer-XL and XLNet",
    "perception": "Images, speech, explanations",
    "library": "The library",
    "home": "The home page",
    "benchmarks": "Benchmarks",
}
FIGURES = {
    "attention_steps": "Attention, step by step",
    "attention_heads": "Heads of a trained translator",
    "beam_search": "Beam search, step by step",
    "character_gpt": "A GPT that runs in this page",
    "mask_builder": "Build a mask",
    "sampling": "Sampling the next token",
    "score_distance": "Scores by distance",
    "transformer_shapes": "The Transformer in numbers",
    "warmup": "Warmup",
}
_START = """\
# Diagrams

All diagrams and interactive figures of the site, by subject, with links to the
pages that explain them.
[Notation](tutorials/notation.md) lists the letters of shapes. A color always
means the same: blue are queries, orange keys, green values, purple attention
and its weights, gray what is masked or frozen, yellow normalization, lime
positions, brown other learned layers, pink memory and cache, red predictions
and losses, and teal the residual stream. The boxes of [the
Transformer](#the-transformer) are links. The programs in `tools/diagrams` draw
them.
"""
_IMAGE = re.compile(r"!\[([^\]]+)\]\(([./]*diagrams/(\w+)\.svg)\)")
_FIGURE = re.compile(r"<!-- figure: (\w+) -->")


def uses():
    """Finds the pages that show diagrams.

    Returns:
        Dict from a diagram's name to a list of (page, alt text). A page is a
        path relative to the folder `docs`.
    """
    docs = ROOT / "docs"
    found = {name: [] for name in discover()}
    for path in sorted(docs.rglob("*.md")):
        if path != PAGE:
            for alt, _, name in _IMAGE.findall(path.read_text("utf-8")):
                page = path.relative_to(docs).as_posix()
                found[name].append((page, " ".join(alt.split())))
    return found


def figure_uses():
    """Finds the pages that have interactive figures.

    Returns:
        Dict from a figure's name to a list of pages, relative to `docs`.
    """
    docs = ROOT / "docs"
    found = {name: [] for name in FIGURES}
    for path in sorted(docs.rglob("*.md")):
        if path != PAGE:
            for name in _FIGURE.findall(path.read_text("utf-8")):
                found[name].append(path.relative_to(docs).as_posix())
    return found


def gallery():
    """Returns the page, Markdown."""
    parts, pages = [_START], uses()
    parts.append("## Interactive figures\n")
    for name, pages_of_it in figure_uses().items():
        links = ", ".join(f"[{_title(page)}]({page})" for page in pages_of_it)
        parts.append(f"### {FIGURES[name]}\n")
        parts.append(f"<!-- figure: {name} -->\n\nFrom: {links}\n")
    subject = None
    for name, function in discover().items():
        module = function.__module__.rpartition(".")[2]
        if module != subject:
            subject = module
            parts.append(f"## {_SUBJECTS[subject]}\n")
        title, _ = words(function)
        links = ", ".join(
            f"[{_title(page)}]({page})" for page, _ in pages[name]
        )
        alt = pages[name][0][1] if pages[name] else title
        parts.append(
            f"### {title}\n\n![{alt}](diagrams/{name}.svg)\n\nFrom: {links}\n"
        )
    return "\n".join(parts)


def _title(page):
    text = (ROOT / "docs" / page).read_text("utf-8")
    found = re.search(r"^# (.+)$", text, re.MULTILINE)
    # The page of the architecture includes a file with its title.
    title = found[1] if found else "Architecture"
    # A guide and a tutorial may have the same title.
    return f"{title} (guide)" if page.startswith("guides/") else title
