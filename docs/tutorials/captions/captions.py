# %% [markdown]
# # Show, attend and tell
#
# A network looks at a picture and says what it sees, one word after the other,
# and for each word it looks again. Where does it look when it says *ring*?
#
# ![A row for each picture: the picture, and where the model looked for each
# word of its caption](captions-4.png)
#
# Each row is a scene that the model was not trained on; what is dark was not
# looked at. And can it say *a red circle*, if it has seen red things and
# circles, but never a circle that was red?
#
# You will
#
# - paint **scenes** whose captions are true, and keep back six of the 36 kinds
#   of things;
# - turn a picture into a **grid of vectors**, and see how far each of them
#   sees;
# - train a decoder with **soft attention** over the grid (Xu et al. 2015,
#   <https://arxiv.org/abs/1502.03044>), and look where each word was found;
# - ask for **combinations never seen**;
# - go on with **hard attention**, which looks at one place a word.
#
# On two cores seventeen minutes at most: the run of this page had one. The
# scenes are painted; nothing is downloaded. As a program, on any backend:
#
#     KERAS_BACKEND=torch .venv/bin/python tutorials/captions.py
#
# With `DATA=` it learns from your own pictures: a folder with a file
# `captions.tsv`, of lines with a picture's name, a tab and a caption; or the
# folder of NLVR (Suhr et al. 2017, <https://aclanthology.org/P17-2034/>). With
# `MODEL=` a saved model says what pictures show:
#
#     DATA=pictures .venv/bin/python tutorials/captions.py
#     MODEL=runs/captions INPUT=picture.png \
#         .venv/bin/python tutorials/captions.py

# %%
import json

import caption_scores
import captions_data
import captions_settings
import description
import keras
import numpy as np
import program_settings
import scene_captions
import scenes
from caption_batches import caption_batches
from caption_plots import draw_looks, draw_pictures
from captioner import Captioner
from matplotlib.figure import Figure
from pair_table import PAD, PairTable, words_of
from scene_pictures import paint

from keras_attn.layers import ScoredAttention
from keras_attn.training import SequenceCrossentropy, TrainingBackup

try:
    run = captions_settings.read()
    if run.model:
        description.run(run.model, run.input)
        raise SystemExit(0)
    if run.data:
        train, test = captions_data.of_folder(run.data, run.height)
except ValueError as error:
    program_settings.explain_and_leave("captions", error)

run.out.mkdir(parents=True, exist_ok=True)
results = {"backend": keras.backend.backend()}
# What is asserted of trained models is so with the settings of this page.
WHOLE = captions_settings.is_default(run)
print(f"Keras {keras.__version__} on {keras.backend.backend()}")

# %% [markdown]
# ## Scenes, and what is true of them
#
# Two things on a grey ground, each in one of six colours and of one of six
# shapes. A caption names both, and says how the first stands to the second:
# left of, right of, above or below, whichever distance is the larger. So each
# scene has two true captions, one for each thing to begin with; in training one
# of them is drawn at each reading.
#
# Six kinds are **never seen** in training, one of each colour and of each
# shape. There are three tests, of scenes with none, one and two of these.

# %%
TESTS = "kinds seen", "one never seen", "both never seen"
TESTS = TESTS[: 1 if run.quick else 3]
drawn = {}
if not run.data:
    learned = scenes.draw_scenes(run.scenes, run.size, run.seed)
    train = captions_data.Captioned(
        paint(learned, run.size, run.seed),
        [
            (
                scene_captions.caption_of(scene),
                scene_captions.caption_of(scene[::-1]),
            )
            for scene in learned
        ],
    )
    drawn = {
        name: scenes.draw_scenes(run.held_out, run.size, run.seed + 1, unseen)
        for unseen, name in enumerate(TESTS)
    }
    pictures = {
        name: paint(part, run.size, run.seed + 1)
        for name, part in drawn.items()
    }
    test = captions_data.Captioned(
        pictures[TESTS[0]],
        [scene_captions.caption_of(scene) for scene in drawn[TESTS[0]]],
    )
    painted = {thing.kind for scene in learned for thing in scene}
    assert not painted & scenes.UNSEEN
else:
    train = train._replace(captions=[(text,) for text in train.captions])
table = PairTable.of_pairs(
    [("", text) for part in train.captions for text in part], run.words
)
V = table.sizes[1]
B, H, W, _ = train.pictures.shape
print(f"{B:,} pictures of {H} x {W} pixels, {V} ids of words")
for part in train.captions[:3]:
    print(*part, sep=", or: ")

# %% alt="Scenes of the test, each with a caption that is true"
draw_pictures(
    test.pictures[:6],
    [text.replace(" a ", "\na ", 1) for text in test.captions[:6]],
)

# %% alt="The 36 kinds of things, those never seen in training framed"
middle = run.size / 2, run.size / 2, run.size / 4
draw_pictures(
    paint(
        [(scenes.Thing(*kind, *middle),) for kind in scenes.KINDS],
        run.size,
        run.seed,
    ),
    [" ".join(kind) for kind in scenes.KINDS],
    frames=[i for i, k in enumerate(scenes.KINDS) if k in scenes.UNSEEN],
)

# %% [markdown]
# ## A picture as a grid
#
# Convolutions turn the picture into vectors, one for each place of 4 x 4
# pixels. Xu et al. took those of a network that had been trained on ImageNet;
# ours are small, and learn with the rest:
#
# $$\mathrm{local} = \mathrm{Conv}(\mathrm{Conv}_2(\mathrm{Conv}_2(
# \mathrm{Conv}(x)))), \qquad
# \mathrm{around} = \mathrm{Conv}_{d4}(\mathrm{Conv}_{d2}(
# \mathrm{Conv}(\mathrm{local}))),$$
#
# $$a_j = \mathrm{LayerNorm}([\mathrm{local}_j; \mathrm{around}_j]\, W + p_j),
# \qquad j = 1 \ldots S .$$
#
# The kernels are 3 x 3. A stride of 2 halves the grid, a dilation of d leaves
# out d - 1 places between those that it sees, and $p_j$ is a vector of the
# place, so that a vector knows where it is. Why *around*? A word such as
# *above* cannot be read off one thing. The place of a thing has to know what
# stands near it.


# %%
def build(hard=None):
    """Returns a model, the same but for its attention."""
    keras.utils.set_random_seed(run.seed)
    return Captioner(
        V,
        train.pictures.shape[1:],
        channels=run.channels,
        hidden_dim=run.width,
        dropout=run.dropout,
        attention=ScoredAttention("additive", hard=hard, seed=run.seed),
    )


model = build()
D = run.width
rows, columns = model.grid
S = rows * columns
(memory, _), ((s, c),) = model.encode(train.pictures[:2])
assert memory.shape == (2, S, D)  # a: (B, S, D)
assert s.shape == c.shape == (2, D)
print(f"{rows} x {columns} places, {model.count_params():,} parameters")

# %% [markdown]
# How far does a vector see? We change one pixel after the other along a line
# through the middle of a picture, and see which places of the same line notice.

# %% alt="Which places notice a change of which pixel: a band, and nearly all"
line = np.repeat(train.pictures[:1], 1 + W, axis=0)  # the last as it is
line[np.arange(W), H // 2, np.arange(W)] ^= 128
at = H // 2 * rows // H  # the row of the grid that the line runs through
noticed = {}
for name, part in (
    ("local", model.picture_grid.local),
    ("with around", model.picture_grid),
):
    found = keras.ops.convert_to_numpy(part(line))
    found = found.reshape(1 + W, rows, columns, -1)[:, at]
    noticed[name] = np.abs(found[:-1] - found[-1]).max(-1) > 1e-5
    assert noticed[name].shape == (W, columns)
figure = Figure(figsize=(8, 3.2), layout="constrained")
for panel, (name, where) in zip(
    figure.subplots(1, 2), noticed.items(), strict=True
):
    panel.imshow(where.T, cmap="Blues", aspect="auto", vmin=0, vmax=1.5)
    panel.set(title=name, xlabel="pixel that changes", ylabel="place")
# A local vector sees 17 pixels: 1 + 2 + 2 + 4 + 8.
assert noticed["local"].sum(0).max() == min(17, W)
if WHOLE:
    assert noticed["with around"].mean() > 0.9
figure

# %% [markdown]
# ## Words that look
#
# The decoder begins with the mean of the grid, and is then that of
# [recurrent translation](../recurrent/index.md), with places in place of source
# words. It reads the word that it has written, asks the grid, and mixes what it
# finds with what it knows:
#
# $$s_0 = \tanh(\bar a W_0), \qquad s_i = \mathrm{LSTM}(s_{i-1}, E\, y_i),$$
#
# $$w_{ij} = \mathrm{softmax}_j\; v \cdot \tanh(s_i W + a_j U), \qquad
# c_i = \sum_j w_{ij} a_j, \qquad
# \mathrm{logits}_i = \tanh([c_i; s_i]\, W_m)\, W_o + b .$$
#
# ### Misread words
#
# A decoder is a language model as well. It soon knows that *red* is followed by
# one of five shapes, because it never met the sixth, and then says so whatever
# it sees. So in training some of the colours and shapes that it *reads* are
# taken for others. What it shall *say* stays true. It then does well to believe
# its eyes more than its words. But words are of use: which thing was named
# already? So the last passes are made with words as they are.

# %%
batches = caption_batches(
    table,
    train.pictures,
    train.captions,
    run.batch,
    run.slip,
    None if run.data else (scenes.COLOURS, scenes.SHAPES),
    run.seed,
)
(seen, reads), says = batches[0]
T = reads.shape[1]
assert seen.shape[1:] == (H, W, 3) and reads.shape == says.shape
before = table.targets([table.target_text(row) for row in says], T)[0]
misread = (reads != before)[says != PAD].mean()
print("shall say:", table.target_text(says[0]))
print("reads:    ", table.target_text(reads[0]))
print(f"{misread:.0%} of the words are misread")

# %% [markdown]
# ## Training
#
# The loss is the cross-entropy of the next word. The learning rate rises for
# the first twentieth, and falls to 0 along half a cosine. Whatever kills the
# program, the same command goes on from the model and the epoch that it had
# reached; `FRESH=1` starts anew.


# %%
def train_one(name, model, epochs, rate, data=batches):
    """Trains a model; returns the loss of each epoch."""
    steps = epochs * len(data)
    rise = max(1, steps // 20)
    schedule = keras.optimizers.schedules.CosineDecay(
        rate / 100, steps - rise, warmup_target=rate, warmup_steps=rise
    )
    model.compile(
        keras.optimizers.Adam(schedule, clipnorm=1.0), SequenceCrossentropy()
    )
    try:
        backup = TrainingBackup(
            run.out / "backup" / name,
            data=data,
            settings=program_settings.identity(run)
            | {"backend": keras.backend.backend()},
            resume=not run.fresh,
        )
    except ValueError as error:
        program_settings.explain_and_leave(
            "captions", f"{error}. FRESH=1 starts anew."
        )
    backups.append(backup)
    return model.fit(
        data,
        epochs=epochs,
        shuffle=False,  # the batches do it
        callbacks=[backup],
        verbose=2,
    ).history["loss"]


backups, losses = [], {}
as_they_are = caption_batches(
    table, train.pictures, train.captions, run.batch, seed=run.seed + 1
)
losses["soft"] = train_one("soft", model, run.epochs, run.rate)
if run.settle:
    losses["soft"] += train_one(
        "settle", model, run.settle, run.rate / 2, as_they_are
    )

# %% [markdown]
# ## What it says
#
# Captions of pictures of the test, word by word the likeliest.

# %%
results |= {"true": {}, "looked": {}}
LONGEST = T + 2


def test_model(name, model):
    """Describes the pictures of each test; returns captions and weights."""
    said, results["true"][name] = {}, {}
    for part, scenes_of_part in drawn.items():
        said[part] = description.describe(model, table, pictures[part], LONGEST)
        shares = caption_scores.true_shares(scenes_of_part, said[part][0])
        results["true"][name][part] = shares
        print(
            f"{name:<15} {part:<16} names both things {shares['things']:6.1%}, "
            f"and all is true {shares['true']:6.1%}"
        )
    return said


def draw_first(said):
    """Draws where the words of the first captions of the test looked."""
    texts, weights = said
    return draw_looks(
        test.pictures[:4],
        [[*text.split(), "."] for text in texts[:4]],
        weights[:4],
        model.grid,
    )


said = {"soft": test_model("soft", model)}
if run.data:
    first = description.describe(model, table, test.pictures[:16], LONGEST)
else:
    first = said["soft"][TESTS[0]]
for text, truth in list(zip(first[0], test.captions, strict=False))[:5]:
    print(f"  says: {text}\n        ({truth})")

# %% alt="Where the model looked for each word, a row for each picture"
draw_first(first)

# %% [markdown]
# ### Does it look at what it names?
#
# The things of a scene lie where we put them. So for each colour and each shape
# of a caption that names the right things we can say how much of its weight
# lies on the thing that it names, with a margin of one place.


# %%
def looked_right(name):
    """Returns the share of weight on what is named, for colours and shapes."""
    shares = {"colour": [], "shape": []}
    scenes_of_part = drawn[TESTS[0]]
    for scene, text, look in zip(
        scenes_of_part, *said[name][TESTS[0]], strict=True
    ):
        if not scene_captions.judge(scene, text).things:
            continue
        on_it = caption_scores.on_the_thing(
            scene, text, look, model.grid, run.size
        )
        for place, share in on_it.items():
            colour = text.split()[place] in scenes.COLOURS
            shares["colour" if colour else "shape"].append(share)
    return {kind: float(np.mean(found or 0)) for kind, found in shares.items()}


if not run.data:
    filled = np.mean(
        [
            (2 * thing.radius + 2 * run.size / rows) ** 2 / run.size**2
            for scene in drawn[TESTS[0]]
            for thing in scene
        ]
    )
    print(f"a thing, with its margin, fills {filled:.0%} of the picture")
    results["looked"]["soft"] = looked_right("soft")
    for kind, share in results["looked"]["soft"].items():
        print(f"{kind}: {share:.0%} of the weight lies on the thing named")

# %% [markdown]
# ### The mirror
#
# Does it understand *left*? In a mirror the same things stand the other way
# round. A model that has learned the relation says so.

# %%
if not run.data and not run.quick:
    mirrored = [
        tuple(thing._replace(x=run.size - thing.x) for thing in scene)
        for scene in drawn[TESTS[0]]
    ]
    flipped = np.ascontiguousarray(pictures[TESTS[0]][:, :, ::-1])
    texts, _ = description.describe(model, table, flipped, LONGEST)
    print(f"  picture: {first[0][0]}\n  mirror:  {texts[0]}")
    results["mirror"] = caption_scores.true_shares(mirrored, texts)
    print(f"{results['mirror']['true']:.1%} are true of the mirrored scene")

# %% [markdown]
# ## Combinations never seen
#
# A red circle was never shown, nor said. How much of the answer is due to the
# misread words? The same model once more, trained as long on words as they are.

# %%
if run.slip and not run.data and not run.quick:
    believer = build()
    losses["no slips"] = train_one(
        "no-slips", believer, run.epochs + run.settle, run.rate, as_they_are
    )
    said["no slips"] = test_model("no slips", believer)

# %% alt="Shares of true captions, for kinds seen and never seen, by model"
figure = Figure(figsize=(8, 3.2), layout="constrained")
panel = figure.subplots()
shown = results["true"]
for number, (name, parts) in enumerate(shown.items()):
    heights = [part["true"] for part in parts.values()]
    bars = panel.bar(
        np.arange(len(heights))
        + (number - (len(shown) - 1) / 2) / (len(shown) + 1),
        heights,
        1 / (len(shown) + 1),
        label=name,
    )
    panel.bar_label(bars, [f"{height:.0%}" for height in heights])
panel.set(ylabel="true captions", ylim=(0, 1.2))
panel.set_xticks(range(len(drawn)), drawn)
panel.legend(ncols=2, loc="upper center")
figure

# %% [markdown]
# On what was seen both make no mistake in these tests; nothing there tells them
# apart. On what was not they differ widely. Colour and shape are in the grid
# for both. But a model that read *red* a thousand times, and never *circle*
# behind it, has learned that there is no such thing; one whose words were
# unreliable has learned less of that. Not nothing: where both things are of
# kinds that it never saw, one caption in four is still wrong.
#
# ## One place a word
#
# Soft attention mixes all places. **Hard** attention takes one. When it
# describes, that is the place of the largest weight; in training a place is
# drawn, with the probability that is its soft weight
# ([here](../first_forms/index.md#soft-against-hard) is how a draw can learn).
# From nothing that is slow: as long as the words do not know what they look
# for, a draw tells next to nothing. So we begin with the weights of the soft
# model. First as they are, and then after some more training with draws, whose
# gradient is that of the Gumbel softmax, straight through.

# %%
if run.hard:
    hard = build("gumbel")
    for mine, other in zip(
        hard.trainable_weights, model.trainable_weights, strict=True
    ):
        mine.assign(keras.ops.convert_to_numpy(other))
    if not run.quick:
        said["hard, as it is"] = test_model("hard, as it is", hard)
    losses["hard"] = train_one("hard", hard, run.hard, run.rate / 4)
    said["hard, trained"] = test_model("hard, trained", hard)
    for name in [name for name in said if name.startswith("hard") and drawn]:
        first = said[name][TESTS[0]]
        for looks in first[1]:
            assert set(np.unique(looks)) <= {0.0, 1.0}
            assert (looks.sum(-1) == 1).all()
        results["looked"][name] = looked_right(name)
        for kind, share in results["looked"][name].items():
            print(f"{name}: {share:.0%} of the {kind}s look at their thing")

# %% alt="One place for each word: where hard attention looked"
draw_first(first)

# %% [markdown]
# One place is enough: the soft model, looking only at the place of its largest
# weight, still says nearly everything right of kinds that it has seen. And that
# place lies on the thing more surely than the soft weights do, part of which is
# on the other thing, most of all when a colour is to be said.
#
# Training with draws is another matter. It makes captions of what was seen a
# little better, and loses many of those of kinds never seen. A place that is
# drawn is sometimes on the wrong thing, and then only words can say what would
# have been seen: so, perhaps, it learns to trust them after all. Where one
# place a word is what is wanted, it need not be trained for.

# %% [markdown]
# ## What the pictures tell
#
# Of captions that people wrote nobody has said by rule whether they are true.
# What can be measured of any: how likely is a caption, given its own picture,
# and given another one of the test? If the own picture makes it likelier, the
# model has seen what it speaks of.

# %%
reads_test, says_test = table.targets(
    test.captions, 1 + max(len(words_of(text)) for text in test.captions)
)
told = caption_scores.told_by_pictures(
    model, test.pictures, reads_test, says_test, run.seed
)
results["told"] = told
print(
    f"{told['own']:.2f} nats a word with its own picture, {told['other']:.2f} "
    f"with another; its own is the likelier one for {told['chosen']:.1%}"
)

# %% alt="The loss of each epoch, of all trainings"
figure = Figure(figsize=(7.5, 3.2), layout="constrained")
panel = figure.subplots()
for (name, curve), style in zip(losses.items(), ("-", "--", ":"), strict=False):
    panel.plot(1 + np.arange(len(curve)), curve, f"o{style}", label=name)
panel.set(xlabel="epoch", ylabel="loss (nats a word)", ylim=(0, None))
panel.legend()
figure

# %% [markdown]
# With misread words the loss of the training stays higher: which thing was
# named already cannot be known for certain. It falls at once when the words are
# right.
#
# ## What should hold
#
# With the settings of this page:

# %%
if WHOLE:
    true = {
        name: [parts[part]["true"] for part in TESTS]
        for name, parts in results["true"].items()
    }
    assert true["soft"][0] > 0.8 and min(true["soft"][1:]) > 0.6
    assert true["soft"][2] > true["no slips"][2] + 0.15
    assert true["hard, as it is"][0] > 0.7 and true["hard, trained"][0] > 0.6
    assert results["mirror"]["true"] > 0.8
    assert min(results["looked"]["soft"].values()) > 2 * filled
    assert told["chosen"] > 0.95

# %% [markdown]
# ## Keeping it
#
# The model with soft attention, its words, and all figures. Now that they are
# safe, the backups may go.

# %%
description.save(run.out, model, table)
results["losses"] = losses
results["settings"] = {k: str(v) for k, v in run._asdict().items()}
(run.out / "results.json").write_text(
    json.dumps(results, indent=1, ensure_ascii=False), encoding="utf-8"
)
for backup in backups:
    backup.remove()
program = ".venv/bin/python tutorials/captions.py"
print(f"""
The model is in {run.out / "model.keras"}, its words beside it, and all figures
in {run.out / "results.json"}.

What to try next, with {program} behind it:
  MODEL={run.out}                    describe new scenes, and draw the looks
  MODEL={run.out} INPUT=picture.png  describe a picture, or a folder of them
  SLIP=0.5                           rely on words even less
  DATA=folder                        pictures and captions of your own""")

# %% [markdown]
# ## Exercises
#
# **1.** Fill in. Pictures of 40 x 40 pixels give a grid of ___ x ___ places; a
# has the shape ___ for a batch of B. A caption of nine tokens has ___ weights.
# Hard attention makes ___ of them 1.
#
# <details markdown>
# <summary>Answer</summary>
#
# 10 x 10; (B, 100, D). 9 times 100 = 900; nine of them are 1, one a token.
#
# </details>
#
# **2.** The decoder's first state is the mean of all places. Why can it not say
# *left of* from that alone, however long it is trained? (Take $p_j$, *around*
# and LayerNorm away, and forget the edges.) What changes with $p_j$?
#
# <details markdown>
# <summary>Answer</summary>
#
# A mean does not change when places are exchanged, and *local* vectors say
# nothing of where they are: the red thing to the left and the red thing to the
# right have the same mean. With $p_j$ the mean knows that something red and
# something blue are there, and that something is left and something is right,
# but a sum cannot say which. *Around* can: then the vector of the red thing has
# the blue one in it, on one side.
#
# </details>
#
# **3.** A model trained without misread words is asked for a scene with a red
# circle. It says *red*, and then? How would you find out whether its eyes or
# its words are to blame?
#
# <details markdown>
# <summary>Answer</summary>
#
# It says one of the shapes that it has seen in red. Let it read *blue* in place
# of *red* and see what it says next: if now it is *circle*, the eyes were right
# and the words were wrong. Or let it begin with the other thing, whose kind it
# knows, and compare.
#
# </details>
