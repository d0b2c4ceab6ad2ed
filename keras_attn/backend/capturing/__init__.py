"""Captures a function of tensors as a graph and generates code (PyTorch).

The step of a decoding loop is small: the Python between its operations takes
longer than the operations. `trace` records the operations as a graph, and these
passes turn it into a function with as little Python as possible:

- `alias_analysis` finds which tensors share memory that the step writes into or
  returns. The other passes leave those alone.
- `simplify` eliminates operations without effect, common subexpressions and
  dead code, merges reshapes, and fuses a bias into its product;
  `squeeze_token_axis` drops the axis of the single new token.
- `loop_invariants` finds what depends only on weights and fixed arguments,
  which is computed once per run, and selections that a mask without padding
  makes redundant.
- `lowering` replaces operations by the functions that start them fastest.
- `codegen` generates a Python function from the result.

`nest` flattens and packs the arguments and results of the step.
"""
