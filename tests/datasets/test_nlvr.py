"""Images of NLVR with sentences."""

import gzip
import tarfile

import pytest

from keras_attn.datasets import DataFileError, read_nlvr
from tests.helpers.data_set_files import write_nlvr, write_tar

pytestmark = pytest.mark.one_backend
LABELS = ["true", "false", "true"]


def colors(data):
    assert data.images.shape[1:] == (12, 48, 3)
    return [image[6, 20].tolist() for image in data.images]


def test_images_with_true_or_false_sentences(tmp_path):
    write_nlvr(tmp_path, "dev", LABELS)
    write_nlvr(tmp_path, "hidden", ["false"])
    data = read_nlvr(tmp_path, "dev", height=12)
    assert data.captions == ["dev 0", "dev 2"]
    assert data.names == ["dev-0-1-0.png", "dev-2-1-0.png"]
    # The first of the two images of each.
    assert colors(data) == [[0, 0, 9], [2, 0, 9]]
    data = read_nlvr(str(tmp_path), "dev", height=12, label=False)
    assert (data.captions, colors(data)) == (["dev 1"], [[1, 0, 9]])
    assert read_nlvr(tmp_path, "hidden", label=False).captions == ["hidden 0"]
    with pytest.raises(DataFileError, match="one sentence that is true"):
        read_nlvr(tmp_path, "hidden")


def test_files_of_a_clone(tmp_path):
    write_nlvr(tmp_path, "dev", LABELS)
    with tarfile.open(tmp_path / "images_dev.tar.gz") as archive:
        archive.extractall(tmp_path / "dev" / "images" / "0", filter="data")
    text = gzip.decompress((tmp_path / "dev.json.gz").read_bytes())
    (tmp_path / "dev" / "dev.json").write_bytes(text)
    for name in ("dev.json.gz", "images_dev.tar.gz"):
        (tmp_path / name).unlink()
    data = read_nlvr(tmp_path, "dev", height=12)
    assert colors(data) == [[0, 0, 9], [2, 0, 9]]


@pytest.mark.parametrize(
    "line",
    [
        "[",
        "[]",
        '{"label": "true", "identifier": "0-1"}',
        '{"label": [], "identifier": "0-1", "sentence": "a"}',
        '{"label": "true", "identifier": 0, "sentence": "a"}',
    ],
)
def test_invalid_lines_raise(tmp_path, line):
    write_nlvr(tmp_path, "dev", ["true"])
    path = tmp_path / "dev.json.gz"
    lines = gzip.decompress(path.read_bytes()) + f"\n{line}\n".encode()
    path.write_bytes(gzip.compress(lines))
    with pytest.raises(DataFileError, match="line 3: expected JSON with the"):
        read_nlvr(tmp_path, "dev")
    data = read_nlvr(tmp_path, "dev", on_bad_lines="skip")
    assert data.captions == ["dev 0"]


def test_invalid_files_and_arguments_raise(tmp_path):
    with pytest.raises(
        DataFileError, match=r"folder with dev\.json or dev\.js"
    ):
        read_nlvr(tmp_path, "dev")
    with pytest.raises(
        ValueError, match="`split` must be one of 'train', 'dev"
    ):
        read_nlvr(tmp_path, "validation")
    with pytest.raises(ValueError, match="`label` must be True or False"):
        read_nlvr(tmp_path, "dev", label="true")
    write_nlvr(tmp_path, "dev", LABELS)
    archive = tmp_path / "images_dev.tar.gz"
    write_tar(archive, {"dev-0-1-0.png": b"no image"})
    with pytest.raises(DataFileError, match=r"0\.png: expected an image, rece"):
        read_nlvr(tmp_path, "dev")
    archive.write_bytes(archive.read_bytes()[:20])
    with pytest.raises(DataFileError, match=r"dev\.tar\.gz: cannot be unpacke"):
        read_nlvr(tmp_path, "dev")
