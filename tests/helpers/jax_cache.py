"""A compilation cache of JAX that all test processes share.

Much of the time goes into compiling single operations, the same ones in every
file and in every process.
"""

import os

# Read by processes that a test starts.
_FOLDER = "TEST_JAX_CACHE"


def share(folder=None):
    """Makes JAX use the cache, in this process and those that it starts.

    Args:
        folder: `pathlib.Path`. Default: that of the process that started this
            one, if it has one.
    """
    if folder is not None:
        os.environ[_FOLDER] = str(folder)
    if _FOLDER not in os.environ:
        return
    import jax
    from jax._src.interpreters import mlir
    from jax._src.lru_cache import LRUCache

    jax.config.update("jax_compilation_cache_dir", os.environ[_FOLDER])
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    # JAX 0.10.2 writes into files that others may be reading, unless the cache
    # size is limited, and then it lists the whole folder for each program.
    LRUCache.put = _put_whole
    # JAX 0.10.2 loads all MLIR dialects again for each program, a quarter of
    # the compile time of a single operation. A context can be shared.
    context = mlir.make_ir_context()
    mlir.make_ir_context = lambda: context


def _put_whole(cache, key, value):
    path = cache.path / f"{key}-cache"
    partial = cache.path / f"{key}-{os.getpid()}"
    partial.write_bytes(value)
    partial.replace(path)
