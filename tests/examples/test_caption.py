"""examples/caption.py: predictions, files, bad input."""

import pytest
from PIL import Image

from tests.helpers.programs import results, run

pytestmark = pytest.mark.one_backend

COLORS = ("red", "green", "blue", "yellow", "purple", "white", "gray", "orange")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Images of one color; the second line of the captions is bad."""
    path = tmp_path_factory.mktemp("data")
    lines = []
    for number in range(96):
        color = COLORS[number % len(COLORS)]
        size = (24, 16) if number else (24, 20)
        Image.new("RGB", size, color).save(path / f"{number}.png")
        lines.append(f"{number}.png\tA {color} image.")
    lines.insert(1, "missing.png\tA red image.")
    lines.append("0.png\tIt is red.")
    (path / "captions.tsv").write_text("\n".join(lines), "utf-8")
    return path


@pytest.fixture(scope="module")
def trained(folder, tmp_path_factory):
    """The options of an uninterrupted training, its folder and its output."""
    options = ("train", "--data", folder, "--height", 16, "--quick")
    options = (*options, "--epochs", 2, "--attention", "hard")
    out = tmp_path_factory.mktemp("caption")
    return options, out, run("caption", *options, "--out", out)


def test_prediction_from_a_folder_and_from_typed_names(trained, tmp_path):
    _, out, _ = trained
    for name, size in (("a.png", (24, 16)), ("b.jpg", (60, 40))):
        Image.new("RGB", size, "blue").save(tmp_path / name)
    (tmp_path / "notes.txt").write_text("not an image", "utf-8")
    predict = ("predict", "--out", out)
    found = run("caption", *predict, "--input", tmp_path).stdout.splitlines()
    names = [line.split("\t")[0] for line in found]
    assert names == [str(tmp_path / "a.png"), str(tmp_path / "b.jpg")]
    assert (out / "described.png").stat().st_size > 1000
    typed = f"nowhere.png\n{names[0]}\n"
    done = run("caption", *predict, stdin=typed)
    assert done.stdout == found[0] + "\n"
    assert "nowhere.png" in done.stderr
    notes = ("--input", tmp_path / "notes.txt")
    assert "has no image" in run("caption", *predict, *notes, status=1).stderr


def test_patches_instead_of_convolutions(trained, tmp_path):
    image, out = tmp_path / "a.png", tmp_path / "out"
    run("caption", "train", "--quick", "--patch-size", 8, "--out", out)
    Image.new("RGB", (24, 16), "blue").save(image)
    predict = ("predict", "--out", out, "--input", image)
    assert run("caption", *predict).stdout.startswith(f"{image}\t")
    options = (*trained[0], "--patch-size", 8, "--out", tmp_path / "other")
    error = run("caption", *options, status=1).stderr
    assert "`image_shape[1]` must be a multiple of 8" in error


def test_training_starts_from_another_model(trained, tmp_path):
    options, out, _ = trained
    more = ("--init", out, "--epochs", 1, "--rate", 1e-9, "--out", tmp_path)
    run("caption", *options, *more)
    for name in ("bleu", "loss_own"):
        value = pytest.approx(results(out)[name], rel=1e-4)
        assert results(tmp_path)[name] == value


def test_bad_lines_are_reported_and_counted(trained, folder, tmp_path):
    options, _, done = trained
    where = f"{folder / 'captions.tsv'}, line 2: expected an image file"
    assert where in done.stderr and "Skipped 1 bad line." in done.stderr
    strict = (*options, "--strict", "--out", tmp_path)
    assert where in run("caption", *strict, status=1).stderr
