"""Writes the list of model families into the guide on published weights.

.venv/bin/python -m tools.family_list
"""

import pathlib
import textwrap

from keras_attn.pretrained.decoder_families import DECODERS
from keras_attn.pretrained.families import FAMILIES

GUIDE = pathlib.Path(__file__).parents[1] / "docs/guides/pretrained.md"
BEGIN, END = "<!-- families: begin -->\n", "<!-- families: end -->\n"


def family_list():
    """Returns the list as Markdown, from the families in the code."""
    decoders = {decoder.model_type for decoder in DECODERS}
    types = sorted(family.model_type for family in FAMILIES)
    kinds = {
        "decoder-only, with rotary positions": [
            name for name in types if name in decoders
        ],
        "others": [name for name in types if name not in decoders],
    }
    lines = [f"{len(types)} values of `model_type` are read and written:\n"]
    for kind, names in kinds.items():
        item = f"- {kind}: " + ", ".join(f"`{name}`" for name in names)
        lines += textwrap.wrap(
            item,
            84,
            subsequent_indent="  ",
            break_long_words=False,
            break_on_hyphens=False,
        )
    return "\n".join(lines) + "\n"


def with_list(page):
    """Returns a page with the current list between its two comments."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{family_list()}\n{END}{after}"


if __name__ == "__main__":
    page = GUIDE.read_text(encoding="utf-8")
    GUIDE.write_text(with_list(page), encoding="utf-8")
