"""Folders of captioned images."""

import builtins

import numpy as np
import pytest

from keras_attn.datasets import DataFileError, read_captions, read_nlvr
from tests.helpers.data_set_files import png_bytes

pytestmark = pytest.mark.one_backend


def test_images_and_captions(write):
    write("red.png", png_bytes(200, 100, (200, 10, 30)))
    write("tall.png", png_bytes(10, 40, (0, 99, 0)))
    text = "red.png\t a red image \n\ntall.png\tgreen\tand tall\nred.png\ttwo\n"
    folder = write("captions.tsv", text).parent
    data = read_captions(folder, height=12)
    assert data.images.shape == (3, 12, 24, 3) and data.images.dtype == "uint8"
    colors = [(200, 10, 30), (0, 99, 0), (200, 10, 30)]
    for image, color in zip(data.images, colors, strict=True):
        np.testing.assert_array_equal(
            image, np.broadcast_to(color, (12, 24, 3))
        )
    assert data.captions == ["a red image", "green\tand tall", "two"]
    assert data.names == ["red.png", "tall.png", "red.png"]


def test_images_are_averaged_when_resized(write):
    from PIL import Image

    pixels = np.random.default_rng(0).integers(0, 256, (8, 12, 3), "uint8")
    folder = write("captions.tsv", "a.png\ta\n").parent
    Image.fromarray(pixels).save(folder / "a.png")
    (image,) = read_captions(str(folder), height=4).images
    means = pixels.reshape(4, 2, 6, 2, 3).mean((1, 3))
    np.testing.assert_allclose(image, means, atol=1)


@pytest.mark.parametrize(
    "text, message",
    [
        ("", "at least one image with a caption"),
        ("a.png\n", "line 1: expected `file name<tab>caption`"),
        ("a.png\t \n", "line 1: expected `file name<tab>caption`"),
        ("\ta\n", "line 1: expected `file name<tab>caption`"),
        ("a.png\ta\nb.png\tb\n", "line 2: expected an image file, received"),
        ("captions.tsv\ta\n", "line 1: expected an image file, received"),
    ],
)
def test_invalid_folders_raise(write, text, message):
    write("a.png", png_bytes(4, 4))
    folder = write("captions.tsv", text).parent
    with pytest.raises(DataFileError, match=message):
        read_captions(folder)


def test_invalid_arguments_raise(tmp_path):
    with pytest.raises(DataFileError, match=r"captions\.tsv: no such file"):
        read_captions(tmp_path)
    with pytest.raises(ValueError, match="`folder` must be a path"):
        read_captions(None)
    with pytest.raises(ValueError, match="`height` must be a positive"):
        read_captions(tmp_path, height=0)


def test_missing_pillow_is_named(tmp_path, monkeypatch):
    original = builtins.__import__

    def no_pillow(name, *arguments, **options):
        if name.startswith("PIL"):
            raise ImportError(name)
        return original(name, *arguments, **options)

    monkeypatch.setattr(builtins, "__import__", no_pillow)
    for read in (read_captions, lambda folder: read_nlvr(folder, "dev")):
        with pytest.raises(
            ImportError, match=r"pip install \"keras-attn\[exam"
        ):
            read(tmp_path)
