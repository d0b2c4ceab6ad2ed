"""Captures a function of tensors as a graph and generates code (PyTorch).

The step of a decoding loop is small: the Python between its operations takes
longer than the operations. `trace` records the operations, and passes named as
in compilers reduce them:

- `alias_analysis` finds which tensors share memory that the step writes into or
  returns. The other passes leave those alone.
- `simplify` eliminates operations without effect, common subexpressions and
  dead code, merges reshapes, and fuses a bias into its product;
  `squeeze_token_axis` drops the axis of the single new token.
- `loop_invariants` finds what depends only on weights and fixed arguments,
  which is computed once per run, and selections that a mask without padding
  makes redundant.
- `lowering` replaces operations by the functions that start them fastest.
- `codegen` writes the rest as one Python function.

`nest` flattens and packs the arguments and results of the step.
"""
