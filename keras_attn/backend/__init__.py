"""Backend-specific code; no other package checks the Keras backend."""

from keras_attn.backend.add_and_norm import add_and_norm
from keras_attn.backend.batched_matmul import batched_matmul
from keras_attn.backend.blockwise import (
    blockwise_attention,
    blockwise_pays,
    ring_attention,
)
from keras_attn.backend.blockwise.online_softmax import Blocking
from keras_attn.backend.cache_layout import (
    KEY_SLOTS_AXIS,
    VALUE_SLOTS_AXIS,
    cached_heads,
    keys_by_head,
    keys_by_slot,
    no_keys,
    no_values,
    values_by_head,
    values_by_slot,
)
from keras_attn.backend.cache_write import write_rows
from keras_attn.backend.cached_until_update import cached_until_update
from keras_attn.backend.captured_step import Capturing, joined_variables
from keras_attn.backend.compiling import compiled
from keras_attn.backend.count_ids import count_ids
from keras_attn.backend.deferred_values import DeferredValues
from keras_attn.backend.dense import apply_dense
from keras_attn.backend.devices import device_names
from keras_attn.backend.dropout import (
    drawn_seed,
    dropout,
    kept_seed,
    seeded_dropout,
)
from keras_attn.backend.exporting import (
    export_onnx,
    export_options,
    writes_onnx,
)
from keras_attn.backend.full import full
from keras_attn.backend.fused import fused_attention, fused_obstacle
from keras_attn.backend.fused_qkv import apply_fused_qkv, fused_qkv
from keras_attn.backend.gather import gather_rows, take_along_axis
from keras_attn.backend.hashed_bits import advance_seed, uniform
from keras_attn.backend.inspection import (
    concrete,
    is_torch_program,
    known_size,
)
from keras_attn.backend.linear_nll import linear_nll
from keras_attn.backend.masking import (
    bool_mask,
    is_statically_false,
    zero_masked,
)
from keras_attn.backend.no_gradients import no_gradients
from keras_attn.backend.numeric_checks import nan_where
from keras_attn.backend.owned_programs import OwnedPrograms, programs_of
from keras_attn.backend.pretransposed import pretransposed
from keras_attn.backend.processes import (
    gather_texts,
    process_count,
    process_index,
    to_numpy,
)
from keras_attn.backend.program_ops import pad, reduce_max, reduce_min
from keras_attn.backend.python_state import PythonState
from keras_attn.backend.randomness import random_state, set_random_state
from keras_attn.backend.replicas import (
    divide_over_replicas,
    first_replica,
    is_replica_mean,
)
from keras_attn.backend.scan import scan
from keras_attn.backend.sharding import (
    CACHE_PATH,
    QUERY_PATH,
    merge_tokens,
    processes_share_rows,
    row_divisor,
    row_shards,
    sequence_split,
    shard_rows,
    split_tokens,
)
from keras_attn.backend.smoothed_nll import smoothed_nll
from keras_attn.backend.step_skipping import skip_steps, stop_skipping
from keras_attn.backend.top_k import argmax_first, top_k
from keras_attn.backend.torch_names import TorchNames
from keras_attn.backend.unknown_rank import broadcast_from_left, known_shape
from keras_attn.backend.while_loop import while_loop

__all__ = [
    "CACHE_PATH",
    "KEY_SLOTS_AXIS",
    "QUERY_PATH",
    "VALUE_SLOTS_AXIS",
    "Blocking",
    "Capturing",
    "DeferredValues",
    "OwnedPrograms",
    "PythonState",
    "TorchNames",
    "add_and_norm",
    "advance_seed",
    "apply_dense",
    "apply_fused_qkv",
    "argmax_first",
    "batched_matmul",
    "blockwise_attention",
    "blockwise_pays",
    "bool_mask",
    "broadcast_from_left",
    "cached_heads",
    "cached_until_update",
    "compiled",
    "concrete",
    "count_ids",
    "device_names",
    "divide_over_replicas",
    "drawn_seed",
    "dropout",
    "export_onnx",
    "export_options",
    "first_replica",
    "full",
    "fused_attention",
    "fused_obstacle",
    "fused_qkv",
    "gather_rows",
    "gather_texts",
    "is_replica_mean",
    "is_statically_false",
    "is_torch_program",
    "joined_variables",
    "kept_seed",
    "keys_by_head",
    "keys_by_slot",
    "known_shape",
    "known_size",
    "linear_nll",
    "merge_tokens",
    "nan_where",
    "no_gradients",
    "no_keys",
    "no_values",
    "pad",
    "pretransposed",
    "process_count",
    "process_index",
    "processes_share_rows",
    "programs_of",
    "random_state",
    "reduce_max",
    "reduce_min",
    "ring_attention",
    "row_divisor",
    "row_shards",
    "scan",
    "seeded_dropout",
    "sequence_split",
    "set_random_state",
    "shard_rows",
    "skip_steps",
    "smoothed_nll",
    "split_tokens",
    "stop_skipping",
    "take_along_axis",
    "to_numpy",
    "top_k",
    "uniform",
    "values_by_head",
    "values_by_slot",
    "while_loop",
    "write_rows",
    "writes_onnx",
    "zero_masked",
]
