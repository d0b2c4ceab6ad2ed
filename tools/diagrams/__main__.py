"""The command `python -m tools.diagrams`: writes all diagrams."""

from tools.diagrams import FOLDER, STYLE, discover, draw
from tools.diagrams.gallery import PAGE, gallery
from tools.diagrams.palette import site_style


def main():
    """Writes diagrams, style sheet and gallery; deletes other diagrams."""
    FOLDER.mkdir(exist_ok=True)
    made = {name: draw(function) for name, function in discover().items()}
    for path in FOLDER.glob("*.svg"):
        if path.stem not in made:
            path.unlink()
    for name, svg in made.items():
        (FOLDER / f"{name}.svg").write_text(svg, encoding="utf-8")
    STYLE.write_text(site_style(), encoding="utf-8")
    PAGE.write_text(gallery(), encoding="utf-8")
    print(f"Wrote {len(made)} diagrams to {FOLDER}")


if __name__ == "__main__":
    main()
