"""Data of the captioning tutorial: scenes, captions, batches, NLVR files."""

import gzip
import io
import json
import tarfile

import caption_scores
import captions_data
import numpy as np
import pytest
import scene_captions
import scenes
from caption_batches import caption_batches
from pair_table import PAD, START, PairTable
from picture_files import pictures_below, read_picture
from PIL import Image
from scene_captions import caption_of, judge, relation_of
from scene_pictures import inside, paint
from scenes import COLOURS, SHAPES, UNSEEN, Thing, draw_scenes

pytestmark = pytest.mark.one_backend


@pytest.mark.parametrize("unseen", [0, 1, 2])
def test_scenes_have_the_right_number_of_unseen_kinds(unseen):
    drawn = draw_scenes(60, 40, seed=3, unseen=unseen)
    assert drawn == draw_scenes(60, 40, seed=3, unseen=unseen)
    assert drawn != draw_scenes(60, 40, seed=4, unseen=unseen)
    first_is_unseen = 0
    for scene in drawn:
        first, second = scene
        assert sum(thing.kind in UNSEEN for thing in scene) == unseen
        assert first.kind != second.kind
        apart = abs(first.x - second.x), abs(first.y - second.y)
        assert max(apart) > first.radius + second.radius
        assert max(apart) >= 1.25 * min(apart)
        for thing in scene:
            for middle in (thing.x, thing.y):
                assert thing.radius <= middle <= 40 - thing.radius
        first_is_unseen += first.kind in UNSEEN
    if unseen == 1:
        assert 15 < first_is_unseen < 45


def test_each_color_and_shape_is_held_out_once():
    assert len(UNSEEN) == 6
    for part, names in zip(
        zip(*UNSEEN, strict=True), (COLOURS, SHAPES), strict=True
    ):
        assert sorted(part) == sorted(names)


@pytest.mark.parametrize("shape", SHAPES)
def test_areas_of_shapes(shape):
    exact = {
        "circle": np.pi,
        "ring": np.pi * (1 - 0.55**2),
        "square": 1.7**2,
        "diamond": 2.0,
        # From -1 to 0.8 in height, and equally wide at the bottom.
        "triangle": 1.8 * 1.8 * 0.55,
        "cross": 2 * 2 * 0.6 - 0.6**2,
    }[shape]
    positions = (np.arange(1200) + 0.5) / 600 - 1
    found = inside(shape, positions[None], positions[:, None]).mean() * 4
    assert found == pytest.approx(exact, rel=0.01)


def test_pictures_show_objects_at_their_positions():
    scene = (
        Thing("red", "square", 8.0, 20.0, 5.0),
        Thing("blue", "ring", 28.5, 12.5, 6.0),
    )
    (picture,) = paint([scene], 40, seed=1)
    assert picture.shape == (40, 40, 3) and picture.dtype == "uint8"
    red, _, blue = picture.astype(int).transpose(2, 0, 1)
    reddish, bluish = red - blue > 60, blue - red > 60
    for seen, thing in ((reddish, scene[0]), (bluish, scene[1])):
        rows, columns = np.nonzero(seen)
        assert (rows + 0.5).mean() == pytest.approx(thing.y, abs=0.4)
        assert (columns + 0.5).mean() == pytest.approx(thing.x, abs=0.4)
        assert abs(columns + 0.5 - thing.x).max() <= thing.radius
    # A ring is hollow.
    assert not bluish[12, 28]
    grey = np.ptp(picture[:4].astype(int), axis=-1)
    assert grey.mean() < 20 and not np.array_equal(
        picture, paint([scene], 40, seed=2)[0]
    )


def test_captions_are_true():
    left = Thing("red", "square", 8.0, 20.0, 4.0)
    right = Thing("blue", "ring", 30.0, 12.0, 4.0)
    low = Thing("white", "cross", 12.0, 38.0, 4.0)
    assert relation_of(left, right) == "left of"
    assert relation_of(right, left) == "right of"
    assert relation_of(left, low) == "above"
    assert relation_of(low, left) == "below"
    assert caption_of((left, right)) == "a red square left of a blue ring"
    assert caption_of((low, left)) == "a white cross below a red square"


def test_caption_judgments():
    for scene in draw_scenes(40, 40, seed=5):
        for order in (scene, scene[::-1]):
            assert judge(scene, caption_of(order)) == (True, True, True)
    scene = (
        Thing("red", "square", 8.0, 20.0, 4.0),
        Thing("blue", "ring", 30.0, 12.0, 4.0),
    )
    for caption, verdict in {
        "a red square above a blue ring": (True, True, False),
        "a blue ring left of a red square": (True, True, False),
        "a red ring left of a blue square": (True, False, False),
        "a red square left of a red square": (True, False, False),
        "a red square a blue ring": (False, False, False),
        "a red square left a blue ring": (False, False, False),
        "a ring red left of a blue ring": (False, False, False),
        "": (False, False, False),
    }.items():
        assert judge(scene, caption) == verdict, caption


def test_caption_scores():
    scene = (
        Thing("red", "square", 6.0, 6.0, 3.0),
        Thing("blue", "ring", 34.0, 30.0, 3.0),
    )
    texts = ["a red square above a blue ring", "a red ring above a blue ring"]
    right = caption_of(scene)
    shares = caption_scores.true_shares([scene] * 3, [*texts, right])
    assert shares == pytest.approx(
        {"sentence": 1, "things": 2 / 3, "true": 1 / 3}
    )
    look = np.zeros((len(right.split()) + 1, 100))
    words = right.split()
    look[1, 11] = 1  # row 1, column 1: the square
    look[2, [11, 99]] = 0.75, 0.25
    look[len(words) - 2, 78] = 1  # row 7, column 8: the ring
    look[len(words) - 1, 0] = 1  # the corner
    found = caption_scores.on_the_thing(scene, right, look, (10, 10), 40)
    assert found == {1: 1.0, 2: 0.75, len(words) - 2: 1.0, len(words) - 1: 0.0}


def tiny_batches(slip=0.0, count=10, kinds=None):
    drawn = draw_scenes(count, 16, seed=1)
    captions = [(caption_of(s), caption_of(s[::-1])) for s in drawn]
    table = PairTable.of_pairs([("", c) for pair in captions for c in pair])
    pictures = paint(drawn, 16, seed=1)
    batches = caption_batches(table, pictures, captions, 4, slip, kinds, seed=2)
    return table, pictures, captions, batches


def test_batches_pair_pictures_with_one_of_their_captions():
    table, pictures, captions, batches = tiny_batches()
    drawn = set()
    for epoch in range(8):
        batches.set_epoch(epoch)
        for (seen, reads), says in batches:
            assert seen.shape == (4, 16, 16, 3)
            assert (reads[:, 0] == START).all()
            for picture, read, say in zip(seen, reads, says, strict=True):
                (row,) = (
                    i
                    for i, one in enumerate(pictures)
                    if np.array_equal(one, picture)
                )
                text = table.target_text(say)
                assert text in captions[row]
                assert table.target_text(read) == text
                drawn.add(text)
    assert drawn == {text for pair in captions for text in pair}
    batches.set_epoch(3)
    before = batches[1][1]
    batches.set_epoch(4)
    assert not np.array_equal(before, batches[1][1])
    batches.set_epoch(3)
    np.testing.assert_array_equal(before, batches[1][1])


@pytest.mark.parametrize("kinds", [None, (COLOURS, SHAPES, ["no such"])])
def test_noise_changes_inputs_but_not_labels(kinds):
    table, _, captions, batches = tiny_batches(0.5, 200, kinds)
    names = [None] * 4 + table.target_words
    misread, words = np.zeros(2), np.zeros(2)
    for (_, reads), says in batches:
        texts = [table.target_text(row) for row in says]
        assert all(any(text in pair for pair in captions) for text in texts)
        right, _ = table.targets(texts, reads.shape[1])
        np.testing.assert_array_equal(reads[:, 0], START)
        np.testing.assert_array_equal(reads == PAD, right == PAD)
        for read, word in zip(
            reads[:, 1:].flat, right[:, 1:].flat, strict=True
        ):
            if word == PAD:
                continue
            read, word = names[read], names[word]
            if kinds and word in COLOURS:
                assert read in COLOURS
            content = word in COLOURS or word in SHAPES
            misread[int(content)] += read != word
            words[int(content)] += 1
    # Some replacements draw the same word again.
    if kinds:
        assert misread[0] == 0
        assert misread[1] / words[1] == pytest.approx(0.5 * 5 / 6, abs=0.06)
    else:
        expected = 0.5 * (1 - 1 / (table.sizes[1] - 4))
        assert misread / words == pytest.approx(expected, abs=0.06)


def write_picture(path, colour, size=(20, 10)):
    Image.new("RGB", size, colour).save(path)


def test_user_folder(tmp_path):
    lines = []
    for number in range(60):
        write_picture(tmp_path / f"{number}.png", (number, 0, 255))
        lines.append(f"{number}.png\tNumber {number}")
        lines.append(f"{number}.png\tAgain {number}")
    (tmp_path / "captions.tsv").write_text("\n".join(lines), "utf-8")
    train, test = captions_data.of_folder(tmp_path, 12)
    assert train.pictures.shape[1:] == test.pictures.shape[1:] == (12, 24, 3)
    sides = []
    for part in (train, test):
        assert len(part.pictures) == len(part.captions)
        for picture, caption in zip(*part, strict=True):
            assert (picture == (int(caption.split()[1]), 0, 255)).all()
        sides.append({caption.split()[1] for caption in part.captions})
    assert not sides[0] & sides[1] and len(sides[0] | sides[1]) == 60
    assert len(train.captions) + len(test.captions) == 120


@pytest.mark.parametrize(
    "content, answer",
    [
        (None, "with captions.tsv"),
        ("one.png\tone\n", "at least two pictures"),
        ("one.png one\n", "a file, a tab and a caption"),
        ("none.png\tone\n", "there must be a picture"),
        ("captions.tsv\tone\n", "there must be a picture"),
    ],
)
def test_invalid_folders_raise(content, answer, tmp_path):
    write_picture(tmp_path / "one.png", "red")
    if content is not None:
        (tmp_path / "captions.tsv").write_text(content, "utf-8")
    with pytest.raises(ValueError, match=answer):
        captions_data.of_folder(tmp_path, 12)


def write_nlvr(folder, parts=("dev", "test", "hidden")):
    for number, part in enumerate(parts):
        rows = []
        with tarfile.open(folder / f"images_{part}.tar.gz", "w:gz") as archive:
            for row in range(4):
                file = io.BytesIO()
                Image.new("RGB", (80, 20), (number, row, 9)).save(file, "PNG")
                info = tarfile.TarInfo(f"images_{part}/{part}-{row}-0-0.png")
                info.size = file.tell()
                file.seek(0)
                archive.addfile(info, file)
                rows.append(
                    {
                        "sentence": f"{part} {row}",
                        "label": "false" if row == 1 else "true",
                        "identifier": f"{row}-0",
                    }
                )
        with gzip.open(folder / f"{part}.json.gz", "wt") as file:
            file.write("\n".join(map(json.dumps, rows)))


def test_read_nlvr(tmp_path):
    write_nlvr(tmp_path)
    train, test = captions_data.of_folder(tmp_path, 12)
    assert train.pictures.shape == (6, 12, 48, 3)
    assert test.captions == ["hidden 0", "hidden 2", "hidden 3"]
    assert train.captions[:3] == ["dev 0", "dev 2", "dev 3"]
    for picture, caption in zip(*train, strict=True):
        part, row = caption.split()
        expected = ["dev", "test"].index(part), int(row), 9
        assert (picture == expected).all()
    (tmp_path / "dev.json.gz").write_bytes(b"no gzip")
    with pytest.raises(ValueError, match="the files of NLVR"):
        captions_data.of_folder(tmp_path, 12)


def test_pictures_to_describe(tmp_path):
    for name in ("b.png", "a.jpg", "note.txt"):
        if name != "note.txt":
            write_picture(tmp_path / name, "green")
        else:
            (tmp_path / name).write_text("no picture", "utf-8")
    found = pictures_below(tmp_path)
    assert [path.name for path in found] == ["a.jpg", "b.png"]
    assert pictures_below(found[0]) == found[:1]
    assert read_picture(found[1], 6).shape == (6, 12, 3)
    assert read_picture(found[1], 6, 5).shape == (6, 5, 3)
    with pytest.raises(ValueError, match="INPUT must be a picture"):
        pictures_below(tmp_path / "none")


def test_relations_match_the_captions():
    said = {relation_of(*scene) for scene in draw_scenes(60, 40, seed=1)}
    assert said == set(scene_captions.RELATIONS)
    assert len(scenes.KINDS) == 36
