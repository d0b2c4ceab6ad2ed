"""Data of the glimpse tutorial."""

import sys

import digit_pictures
import glimpse_reader
import glimpses_settings
import numpy as np
import pytest
from cluttered_canvases import CanvasBatches, scatter
from glimpse_plots import draw_paths, pixel

pytestmark = pytest.mark.one_backend


def random_digits(count, seed=0, size=8):
    return np.random.default_rng(seed).random((count, size, size), "float32")


def test_digit_splits_are_disjoint():
    part = digit_pictures.built_in()
    assert part.images.shape == (1797, 8, 8)
    assert part.images.min() == 0 and part.images.max() == 1
    digits = digit_pictures.split(part, seed=3)
    assert [len(p.images) for p in digits] == [1198, 200, 399]
    together = np.concatenate([p.images for p in digits])
    assert sorted(x.tobytes() for x in together) == sorted(
        x.tobytes() for x in part.images
    )
    seen = [{x.tobytes() for x in p.images} for p in digits]
    assert not (seen[0] & seen[1] or seen[0] & seen[2] or seen[1] & seen[2])
    # Labels match their pictures.
    label_of = dict(
        zip((x.tobytes() for x in part.images), part.labels, strict=True)
    )
    for p in digits:
        assert all(
            label_of[x.tobytes()] == y
            for x, y in zip(p.images, p.labels, strict=True)
        )
    again, other = (digit_pictures.split(part, seed) for seed in (3, 4))
    np.testing.assert_array_equal(again.test.images, digits.test.images)
    assert (other.test.images != digits.test.images).any()


def test_missing_scikit_learn_is_reported(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    with pytest.raises(ValueError, match="pip install scikit-learn"):
        digit_pictures.built_in()


def test_user_pictures(tmp_path):
    path = tmp_path / "own.npz"
    images = np.arange(2 * 5 * 6).reshape(2, 5, 6)
    np.savez(path, images=images, labels=[1, 0])
    part = digit_pictures.of_file(str(path), side=32)
    np.testing.assert_allclose(part.images, images / 59, atol=1e-6)
    assert part.images.dtype == "float32" and part.labels.tolist() == [1, 0]


GOOD = {"images": np.ones((9, 8, 8)), "labels": np.arange(9) % 2}


@pytest.mark.parametrize(
    "changed, said",
    [
        ({"labels": None}, "DATA must be an .npz file"),
        ({"images": np.ones((9, 3, 8))}, "4 to 16 pixels"),
        ({"images": np.ones((9, 8, 17))}, "4 to 16 pixels"),
        ({"images": np.ones((9, 8))}, "4 to 16 pixels"),
        ({"images": np.zeros((9, 8, 8))}, "not all 0"),
        ({"images": -GOOD["images"]}, "numbers from 0"),
        ({"images": np.full((9, 8, 8), np.nan)}, "numbers from 0"),
        ({"labels": GOOD["labels"][1:]}, r"labels must be whole.*\(8,\)"),
        ({"labels": GOOD["labels"] / 2}, "labels must be whole"),
        ({"labels": GOOD["labels"] - 1}, "labels must be whole"),
        ({"labels": 0 * GOOD["labels"]}, "two classes"),
    ],
)
def test_invalid_files_raise(changed, said, tmp_path):
    path = tmp_path / "own.npz"
    arrays = {**GOOD, **changed}
    np.savez(path, **{k: v for k, v in arrays.items() if v is not None})
    with pytest.raises(ValueError, match=said):
        digit_pictures.of_file(str(path), side=32)


def test_too_few_pictures_raise():
    part = digit_pictures.Part(random_digits(4), np.array([0, 1, 0, 1]))
    with pytest.raises(ValueError, match="Received: 4 in all"):
        digit_pictures.split(part, 1)
    part = digit_pictures.Part(random_digits(30), np.array([0] * 29 + [2]))
    with pytest.raises(ValueError, match="none of class 1"):
        digit_pictures.split(part, 1)


def test_digit_is_at_its_location():
    digits, others = random_digits(300), 2 + random_digits(20, seed=1)
    drawn = scatter(
        digits, np.arange(300) % 10, others, np.random.default_rng(1), side=40
    )
    assert drawn.images.shape == (300, 40, 40, 1)
    np.testing.assert_array_equal(drawn.labels, np.arange(300) % 10)
    for image, digit, (row, column) in zip(
        drawn.images[..., 0], digits, drawn.corners, strict=True
    ):
        np.testing.assert_array_equal(
            image[row : row + 8, column : column + 8], digit
        )
    # Locations reach all edges.
    assert drawn.corners.min() == 0 and drawn.corners.max() == 32
    assert (np.bincount(drawn.corners[:, 0] // 11, minlength=3) > 60).all()


def test_clutter_comes_from_clutter_digits():
    digits, others = random_digits(40), 2 + random_digits(3, seed=1)
    drawn = scatter(
        digits,
        np.zeros(40),
        others,
        np.random.default_rng(2),
        side=48,
        pieces=1,
    )
    known = {
        other[r : r + 4, c : c + 4].tobytes()
        for other in others
        for r in range(5)
        for c in range(5)
    }
    whole = 0
    for image in drawn.images[..., 0]:
        # Digits are below 2, clutter above; a digit may cover clutter.
        rows, columns = np.nonzero(image >= 2)
        if len(rows) == 16:
            piece = image[rows[0] : rows[0] + 4, columns[0] : columns[0] + 4]
            assert np.ascontiguousarray(piece).tobytes() in known
            whole += 1
        assert len(rows) <= 16
    assert whole > 20
    bare = scatter(
        digits, np.zeros(40), others, np.random.default_rng(2), pieces=0
    )
    assert ((bare.images > 0).sum((1, 2, 3)) <= 64).all()


def test_small_spread_keeps_digits_near_the_center():
    digits = random_digits(500)
    for spread, least, most in ((0, 20, 20), (0.5, 10, 30), (1, 0, 40)):
        corners = scatter(
            digits,
            np.zeros(500),
            digits,
            np.random.default_rng(3),
            side=48,
            spread=spread,
        ).corners
        assert (corners.min(), corners.max()) == (least, most)


def test_batches_are_reproducible_and_differ_per_epoch():
    digits, labels = random_digits(50), np.arange(50) % 10

    def batches(seed):
        return CanvasBatches(digits, labels, 3, 5, seed, rise=6, side=32)

    first, again, other = batches(1), batches(1), batches(2)
    assert len(first) == 3
    (images, inputs), targets = first[1]
    assert images.shape == (5, 32, 32, 1)
    np.testing.assert_array_equal(inputs, targets)
    np.testing.assert_array_equal(images, again[1][0][0])
    assert (images != other[1][0][0]).any()
    assert (images != first[2][0][0]).any()
    again.set_epoch(4)
    assert (images != again[1][0][0]).any()
    again.set_epoch(0)
    np.testing.assert_array_equal(images, again[1][0][0])
    spreads = []
    for epoch in range(8):
        again.set_epoch(epoch)
        spreads.append(again.spread)
    assert spreads[0] < 0.3 and spreads == sorted(spreads)
    assert spreads[5] < 1 and spreads[6:] == [1, 1]
    always = CanvasBatches(digits, labels, 3, 5, 1)
    assert always.spread == 1


def test_small_pictures_are_centered(tmp_path):
    path = tmp_path / "x.npy"
    np.save(path, np.full((2, 4, 5), 255, "uint8"))
    images = glimpse_reader.read_pictures(str(path), 9)
    assert images.shape == (2, 9, 9, 1) and images.dtype == "float32"
    assert (images[:, 2:6, 2:7] == 1).all() and images.sum() == 40
    np.save(path, np.full((9, 9), 0.5))
    images = glimpse_reader.read_pictures(str(path), 9)
    assert images.shape == (1, 9, 9, 1) and (images == 0.5).all()


def test_path_plot_shows_the_glimpse_locations():
    assert pixel([[-1, 1], [0, 0]], 8).tolist() == [[-0.5, 7.5], [3.5, 3.5]]
    positions = np.array([[[0, 0], [0.5, -0.5]]] * 5)
    figure = draw_paths(
        np.zeros((5, 8, 8, 1)), positions, [[1, 2]] * 5, list("abcde"), 4
    )
    shown = [axes for axes in figure.axes if axes.images]
    assert [axes.get_title() for axes in shown] == [
        f"{x}\n1 2" for x in "abcde"
    ]
    (line,) = shown[4].lines
    assert line.get_xydata().tolist() == [[3.5, 3.5], [5.5, 1.5]]
    (frame,) = shown[0].patches
    assert frame.get_xy() == (3.5, -0.5) and frame.get_width() == 4


def test_settings():
    run = glimpses_settings.read({})
    assert glimpses_settings.is_default(run)
    assert glimpses_settings.is_default(run._replace(fresh=True))
    quick = glimpses_settings.read({"QUICK": "1"})
    assert quick.quick and not glimpses_settings.is_default(quick)
    assert glimpses_settings.read({"PIECES": "0"}).pieces == 0
    with pytest.raises(ValueError, match="WIDTH must be at least 4"):
        glimpses_settings.read({"WIDTH": "3"})
