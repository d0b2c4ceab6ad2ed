"""The captioning model: its encoder against PyTorch, its decoder and files."""

import caption_plots
import caption_scores
import description
import keras
import numpy as np
import pytest
from captioner import Captioner
from pair_table import PairTable
from picture_grid import PictureGrid
from PIL import Image

from keras_attn.layers import ScoredAttention
from tests.helpers.arrays import to_numpy
from tests.helpers.contract import randomize
from tests.helpers.weight_gradients import layer_gradients

pytestmark = pytest.mark.one_backend("torch")

torch = pytest.importorskip("torch")

V = 9
SHAPE = (12, 16, 3)
PICTURES = (
    np.random.default_rng(0).integers(0, 256, (3, *SHAPE)).astype("uint8")
)
TARGET = np.array([[1, 5, 6], [1, 7, 0], [1, 8, 4]], "int32")


def tiny_captioner(**kwargs):
    sizes = {"channels": 2, "hidden_dim": 8, "dropout": 0.0}
    return randomize(Captioner(V, SHAPE, **(sizes | kwargs)), scale=0.5)


def torch_grid(weights, pictures):
    """The equations of `PictureGrid` in PyTorch, float64."""

    def part(x, name, number, stride=1, dilation=1):
        # TensorFlow's padding: an extra row or column is added at the end.
        edges = []
        for size in (x.shape[3], x.shape[2]):
            missing = max(
                (-(-size // stride) - 1) * stride + 2 * dilation + 1 - size, 0
            )
            edges += [missing // 2, missing - missing // 2]
        x = torch.nn.functional.conv2d(
            torch.nn.functional.pad(x, edges),
            weights[f"{name}/kernel"].permute(3, 2, 0, 1),
            weights[f"{name}/bias"],
            stride=stride,
            dilation=dilation,
        )
        return torch.relu(norm(x.movedim(1, -1), number)).movedim(-1, 1)

    def norm(x, number):
        return torch.nn.functional.layer_norm(
            x,
            x.shape[-1:],
            weights[f"norm_{number}/gamma"],
            weights[f"norm_{number}/beta"],
            eps=1e-3,
        )

    x = torch.tensor(pictures, dtype=torch.float64).movedim(-1, 1) / 127.5 - 1
    for number, stride in enumerate((1, 2, 2, 1)):
        x = part(x, f"local_{number}", number, stride=stride)
    local = x
    for number, dilation in enumerate((1, 2, 4)):
        x = part(x, f"around_{number}", 4 + number, dilation=dilation)
    x = torch.cat([local, x], dim=1).movedim(1, -1)
    x = x @ weights["mixing/kernel"] + weights["mixing/bias"]
    return norm(x.flatten(1, 2) + weights["places"], 7)


def test_grid_matches_torch():
    layer = PictureGrid(8, channels=2, name="grid")
    layer.build((None, *SHAPE))
    randomize(layer, scale=0.5)
    found = layer(PICTURES)
    assert layer.grid == (3, 4) and tuple(found.shape) == (3, 12, 8)
    assert layer.compute_output_shape((3, *SHAPE)) == (3, 12, 8)
    weights = {
        weight.path.removeprefix("grid/"): torch.tensor(
            to_numpy(weight), dtype=torch.float64, requires_grad=True
        )
        for weight in layer.trainable_weights
    }
    expected = torch_grid(weights, PICTURES)
    np.testing.assert_allclose(
        to_numpy(found), expected.detach().numpy(), atol=1e-4
    )
    factors = np.random.default_rng(1).normal(size=found.shape)
    _, gradients = layer_gradients(
        layer,
        lambda: keras.ops.sum(
            layer(PICTURES) * keras.ops.convert_to_tensor(factors, "float32")
        ),
    )
    (expected * torch.tensor(factors)).sum().backward()
    assert len(gradients) == len(weights)
    for name, gradient in gradients.items():
        wanted = weights[name.removeprefix("grid/")].grad.numpy()
        np.testing.assert_allclose(
            gradient,
            wanted,
            atol=2e-4 * max(1, abs(wanted).max()),
            err_msg=name,
        )


@pytest.mark.parametrize("cell", ["lstm", "gru"])
def test_decoder_starts_from_the_mean_of_the_grid(cell):
    model = tiny_captioner(cell=cell, num_layers=2)
    (memory, positions), states = model.encode(PICTURES)
    assert tuple(memory.shape) == (3, 12, 8) and model.grid == (3, 4)
    np.testing.assert_array_equal(
        to_numpy(positions), np.tile(np.arange(12), (3, 1))
    )
    mean = to_numpy(memory).mean(1)
    weights = {w.path: to_numpy(w) for w in model.weights if "first" in w.path}
    found = [part for layer in states for part in layer]
    assert len(states) == 2 and len(found) == len(weights) // 2
    for number, state in enumerate(found):
        expected = np.tanh(
            mean @ weights[f"first_{number}/kernel"]
            + weights[f"first_{number}/bias"]
        )
        np.testing.assert_allclose(to_numpy(state), expected, atol=1e-5)


def test_captions_do_not_depend_on_the_batch():
    model = tiny_captioner()
    table = PairTable([], list("abcde"))
    texts, weights = description.describe(model, table, PICTURES, 5)
    for picture, text, looks in zip(PICTURES, texts, weights, strict=True):
        (alone,), (look,) = description.describe(model, table, picture[None], 5)
        assert alone == text
        np.testing.assert_allclose(look, looks, atol=1e-5)
        assert looks.shape[1] == 12 and len(looks) >= len(text.split())
        np.testing.assert_allclose(looks.sum(1), 1, atol=1e-5)


def test_hard_attention_selects_one_position():
    model = tiny_captioner(attention=ScoredAttention("additive", hard="gumbel"))
    decoded = model.generate(PICTURES, 4, return_weights=True)
    weights = decoded.weights[0, 0, 0, 0, : decoded.lengths[0, 0]]
    assert set(np.unique(weights)) == {0.0, 1.0}
    assert (weights.sum(-1) == 1).all()


def test_save_load_and_describe_files(tmp_path, capsys):
    model = tiny_captioner()
    table = PairTable([], list("abcde"))
    description.save(tmp_path, model, table)
    again = keras.saving.load_model(tmp_path / "model.keras", compile=False)
    np.testing.assert_array_equal(
        to_numpy(again((PICTURES, TARGET))), to_numpy(model((PICTURES, TARGET)))
    )
    folder = tmp_path / "pictures"
    folder.mkdir()
    for number, picture in enumerate(PICTURES):
        Image.fromarray(picture).save(folder / f"{number}.png")
    texts, _ = description.describe(model, table, PICTURES)
    description.run(tmp_path, folder)
    said = capsys.readouterr().out.splitlines()
    for number, text in enumerate(texts):
        assert said[number] == f"{folder / f'{number}.png'}: {text}"
    assert str(tmp_path / "described.png") in said[-1]
    with Image.open(tmp_path / "described.png") as drawing:
        assert drawing.width > 100
    description.run(tmp_path, folder / "1.png")
    assert capsys.readouterr().out.splitlines()[0] == said[1]
    with pytest.raises(ValueError, match="INPUT must be a picture"):
        description.run(tmp_path)  # no squares: no scenes


@pytest.mark.parametrize(
    "inputs, answer",
    [
        (PICTURES, "must be a pair"),
        ((PICTURES[:, :4], TARGET), r"`pictures` must have shape"),
        ((PICTURES[0], TARGET), r"`pictures` must have shape"),
        ((PICTURES, TARGET[:2]), "same number of rows"),
        ((PICTURES, TARGET + 5), r"`target_ids` must lie in \[0, 9\)"),
    ],
)
def test_invalid_inputs_raise(inputs, answer):
    with pytest.raises(ValueError, match=answer):
        tiny_captioner()(inputs)


def test_invalid_pictures_raise():
    with pytest.raises(ValueError, match=r"`pictures` must have shape"):
        tiny_captioner().generate(PICTURES[..., :1], 3)


def test_picture_information_matches_the_logits():
    model = tiny_captioner()
    says = np.array([[5, 6, 2], [7, 2, 0], [8, 4, 2]], "int32")
    reads = np.array([[1, 5, 6], [1, 7, 0], [1, 8, 4]], "int32")
    expected = []
    for picture, read, say in zip(PICTURES, reads, says, strict=True):
        logits = to_numpy(model((picture[None], read[None])))[0]
        shares = torch.log_softmax(torch.tensor(logits), -1).numpy()
        expected.append(
            -sum(shares[t, word] for t, word in enumerate(say) if word)
        )
    found = caption_scores.nats(model, PICTURES, reads, says)
    np.testing.assert_allclose(found, expected, rtol=1e-4)
    told = caption_scores.told_by_pictures(model, PICTURES, reads, says)
    assert told["own"] == pytest.approx(sum(expected) / 8, rel=1e-4)
    assert told["other"] != pytest.approx(told["own"], rel=1e-6)
    # If all pictures are equal, none is more likely.
    same = np.repeat(PICTURES[:1], 3, axis=0)
    told = caption_scores.told_by_pictures(model, same, reads, says)
    assert told["chosen"] == 0.5 and told["own"] == told["other"]


def test_attended_regions_are_bright():
    look = np.zeros((3, 4))
    look[1, 2] = 0.5
    picture = np.full(SHAPE, 200, "uint8")
    bright = caption_plots.lit(picture, look)
    assert bright.shape == SHAPE
    assert np.allclose(bright[4:8, 8:12], 200 / 255)
    bright[4:8, 8:12] = 0
    assert bright.max() == pytest.approx(0.2 * 200 / 255)
    figure = caption_plots.draw_looks(
        PICTURES[:2],
        [["a", "b", "."], ["c"]],
        [np.ones((3, 12)), np.ones((1, 12))],
        (3, 4),
    )
    titles = [axes.get_title() for axes in figure.axes]
    assert [title for title in titles if title] == ["a", "b", ".", "c"]
    figure = caption_plots.draw_pictures(PICTURES, ["x", "y", "z"], 2, [1])
    assert [axes.get_title() for axes in figure.axes] == ["x", "y", "z"]
    framed = [axes.spines["left"].get_visible() for axes in figure.axes]
    assert framed == [False, True, False]
