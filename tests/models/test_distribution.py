"""Training and generation on eight virtual devices equal those on one."""

import pathlib
import pickle
import re
import runpy
import signal
import socket
import types

import keras
import numpy as np
import pytest

from tests.helpers.processes import Process
from tests.models import mesh_runs

ROOT = pathlib.Path(__file__).parents[2]
PROGRAM = ROOT / "docs" / "guides" / "distributed_memory.py"
pytestmark = [
    pytest.mark.one_backend("jax"),
    pytest.mark.skipif(
        keras.backend.backend() != "jax", reason="only JAX shards tensors"
    ),
]


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """The results of each function of `mesh_runs`, all started at once."""
    folder = tmp_path_factory.mktemp("runs")
    backup = folder / "backup"
    killed = Process(mesh_runs.killed_run, backup)
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
    functions = {
        mesh_runs.sgd_runs: (),
        mesh_runs.adam_runs: (),
        mesh_runs.chunked_runs: (),
        mesh_runs.remat_runs: (),
        mesh_runs.decoding_runs: (),
        mesh_runs.context_runs: (),
        mesh_runs.errors: (),
        mesh_runs.file_runs: (backup,),
    }
    started = {}
    for index in range(2):
        name = f"process {index}"
        started[name] = Process(
            mesh_runs.write,
            folder / name,
            mesh_runs.two_process_runs,
            address,
            index,
        )
    for function, arguments in functions.items():
        name = function.__name__
        if backup in arguments:
            status, printed = killed.wait()
            assert status == -signal.SIGKILL, printed
        started[name] = Process(
            mesh_runs.write, folder / name, function, *arguments
        )
    found = {}
    for name, process in started.items():
        status, printed = process.wait()
        assert status == 0, printed
        found[name] = pickle.loads((folder / name).read_bytes())
    return found


def assert_close(found, expected, atol=1e-5):
    """Compares losses, and weights or logits, with those of one device."""
    np.testing.assert_allclose(found[0], expected[0], atol=atol)
    found, expected = (
        value[1] if isinstance(value[1], list) else [value[1]]
        for value in (found, expected)
    )
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, atol=atol)


@pytest.mark.parametrize("mesh", mesh_runs.MESHES)
def test_training_with_sgd(runs, mesh):
    found = runs["sgd_runs"]
    assert found[mesh][0][1] < found[mesh][0][0]
    assert_close(found[mesh], found[None])


def test_a_killed_training_resumes_on_another_mesh(runs):
    """It was killed on 2 x 4 after 16 steps, and a checkpoint of 14 steps."""
    found = runs["file_runs"]
    assert found["batches"] == [4, 5, 6, 7, 8, 9]
    assert_close(found["resumed"], runs["sgd_runs"][None])
    assert found["resumed", "bytes"] == runs["sgd_runs"][(4, 2), "bytes"]


@pytest.mark.parametrize("name", ["loaded", "gpt"])
def test_files_of_another_mesh(runs, name):
    found = runs["file_runs"]
    expected = found["gpt"] if name == "gpt" else found["resumed"][1]
    for mesh in None, (4, 2) if name == "gpt" else (1, 8):
        for one, other in zip(found[name, mesh], expected, strict=True):
            np.testing.assert_array_equal(one, other)
    weights, _ = runs["sgd_runs"][(1, 8), "bytes"]
    assert found["loaded", "bytes"] == weights


@pytest.mark.parametrize("mesh", mesh_runs.MESHES)
def test_training_with_adam_and_dropout(runs, mesh):
    """Dropout is the same on every mesh, and losses and logits are, too."""
    found = runs["adam_runs"]
    assert_close(found[mesh, "logits"], found[None, "logits"])


@pytest.mark.parametrize("mesh", mesh_runs.MESHES)
def test_training_with_dropout_is_deterministic(runs, mesh):
    found = runs["adam_runs"]
    assert_close(found[mesh, 1], found[mesh, 0], atol=0)


def test_a_loss_without_logits_and_accumulated_gradients(runs):
    """The vocabulary is split; one device computes all logits."""
    found = runs["chunked_runs"]
    assert found[(2, 4), "is chunked"] and not found[None, "is chunked"]
    assert_close(found[2, 4], found[None])


def test_training_with_rematerialization(runs):
    """Dropout is on: it is the same in both runs on one mesh."""
    plain, remat = (runs["remat_runs"]["remat", on] for on in (False, True))
    assert_close(remat[:2], plain[:2])
    assert remat[2] < 0.9 * plain[2]


def assert_same_generation(found, expected):
    np.testing.assert_array_equal(found[0], expected[0])
    np.testing.assert_allclose(found[1], expected[1], atol=1e-5)


@pytest.mark.parametrize(
    ("mesh", "name"),
    [*(((2, 4), name) for name in mesh_runs.STRATEGIES), ("data", "beam")],
)
def test_generation(runs, mesh, name):
    found = runs["decoding_runs"]
    assert_same_generation(
        found["transformer", mesh][name], found["transformer", None][name]
    )


def test_generation_with_replicated_key_value_heads(runs):
    found = runs["decoding_runs"]
    assert_same_generation(
        found["gpt", (1, 8)]["greedy"], found["gpt", None]["greedy"]
    )


def test_generation_by_two_processes(runs):
    """Each has one device, passes all rows, and gets all results."""
    for index in range(2):
        found = runs[f"process {index}"]
        expected = runs["decoding_runs"]["two processes"]
        assert_same_generation(found["tokens"], expected)
        np.testing.assert_array_equal(found["streamed"], expected[0][:1])
        assert "`inputs`, `prefix`, `max_new_tokens`" in found["error"]
        assert "other arguments in process 1 than in" in found["error"]


SIZES = {
    name: mesh_runs.TRANSFORMER[name]
    for name in ("num_heads", "hidden_dim", "intermediate_dim")
} | {"vocabulary_size": mesh_runs.VOCABULARY}


@pytest.fixture(scope="module")
def guide():
    """The functions of the guide's program, and two models' sizes."""
    guide = types.SimpleNamespace(**runpy.run_path(str(PROGRAM)))
    guide.transformer = guide.Sizes(
        **SIZES, num_layers=1, num_decoder_layers=1, vocabulary_uses=3
    )
    guide.gpt = guide.Sizes(**SIZES, num_layers=2, num_key_value_heads=2)
    return guide


@pytest.mark.parametrize("mesh", mesh_runs.MESHES)
def test_bytes_of_the_guide_are_those_of_a_device(runs, guide, mesh):
    found = guide.training_bytes(guide.transformer, mesh[1], moments=1)
    weights, momentum = runs["sgd_runs"][mesh, "bytes"]
    assert (found["weights"], found["optimizer"]) == (weights, momentum)


def test_bytes_of_accumulated_gradients(runs, guide):
    """Momentum, and a sum of gradients."""
    sizes = guide.Sizes(**SIZES, num_layers=1, positions=1024, final_norms=1)
    found = guide.training_bytes(sizes, 4, moments=2)
    expected = found["weights"], found["optimizer"]
    assert runs["chunked_runs"]["bytes"] == expected


def test_bytes_of_caches(runs, guide):
    found = runs["decoding_runs"]
    for mesh, parts in (((2, 4), (2, 4)), ("data", (8, 1))):
        # The cache of the decoder has 4 beams, that of 16 sources has none.
        slots = 4 * mesh_runs.NEW_TOKENS
        expected = sum(
            guide.cache_bytes(guide.transformer, 16, length, *parts, number=4)
            for length in (slots, 16)
        )
        assert found["cache", mesh] == expected
    slots = 16 + mesh_runs.NEW_TOKENS - 1
    assert found["gpt cache"] == guide.cache_bytes(
        guide.gpt, 5, slots, 1, 8, number=4
    )


def test_sums_of_the_guide_are_those_of_the_program(runs, guide):
    """Of activations, over the 4 devices of a group, and of gradients."""
    program = runs["sgd_runs"]["program"]
    tokens, width = 16 * 5 // 2, SIZES["hidden_dim"]
    found = mesh_runs.all_reduced(program, 4)
    expected = guide.sums(guide.transformer) * tokens * width
    # The softmax over a split vocabulary sums some numbers per token.
    assert expected <= found < expected + 6 * tokens
    found = mesh_runs.all_reduced(program, 2)
    expected = guide.summed_gradients(guide.transformer, 4)
    assert expected <= found < expected + 10


def test_the_code_of_the_guide():
    page = PROGRAM.with_name("distributed.md")
    status, printed = Process(mesh_runs.run_guide, page).wait()
    assert status == 0, printed


def test_the_guide_has_the_tables_of_its_program(guide):
    page = PROGRAM.with_name("distributed.md").read_text("utf-8")
    for table in guide.table(), guide.cache_table():
        assert "\n".join(table) in page


def test_errors_come_before_the_first_step(runs):
    messages = runs["errors"]
    assert messages.pop("iterations") == 0
    assert "must have a rule for 'encoder_block_0/" in messages["other model"]
    assert "must have a rule for" in messages["no rule"]
    for name in ("last batch", "batch size", "predict", "one batch"):
        assert "a multiple of 4 rows" in messages[name], name
    assert "10 rows in batches of 8" in messages["last batch"]
    assert "7 rows in batch 9 of the data set" in messages["data set"]
    assert "7 rows in batch 9 of the data set" in messages["later"]
    assert "10 rows in batches of 8" in messages["validation"]
    assert "10 rows in batches of 5" in messages["batch size"]
    assert "10 rows in batches of 10" in messages["one batch"]


@pytest.mark.parametrize("name", ["gpt", "encoder"])
def test_training_with_split_sequences(runs, name):
    """Padding is on both sides; the GPT is causal and has a window."""
    found = runs["context_runs"]
    assert_close(found[name, True], found[name, False])


def test_generation_with_split_sequences(runs):
    tokens, scores = runs["context_runs"]["tokens", True]
    expected = runs["context_runs"]["tokens", False]
    np.testing.assert_array_equal(tokens, expected[0])
    np.testing.assert_allclose(scores, expected[1], atol=1e-5)


def test_a_length_that_devices_do_not_divide(runs):
    found = runs["context_runs"]
    assert "a multiple of 2 tokens, the number of devices" in found["error"]
    assert "Received: 17 tokens" in found["error"]
    assert found["steps"] == 0
    for one, other in zip(found["after"], found["gpt", True][1], strict=True):
        np.testing.assert_array_equal(one, other)


def test_activations_are_only_summed(runs):
    """No device gathers the rows, heads or features of others."""
    program = runs["sgd_runs"]["program"]
    moved = re.findall(
        r" (all-[a-z]+|collective-permute)(?:-start)?\(", program
    )
    assert set(moved) == {"all-reduce"}
