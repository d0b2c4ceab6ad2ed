"""Draws mutants of the package at random, and applies one to a tree."""

import dataclasses
import pathlib
import random

import cosmic_ray.plugins
from cosmic_ray.ast import ast_nodes, get_ast_from_path
from cosmic_ray.mutating import mutate_code

PACKAGES = (
    "blocks",
    "cache",
    "decoding",
    "layers",
    "models",
    "ops",
    "pretrained",
    "training",
)


@dataclasses.dataclass(frozen=True)
class Mutant:
    """One change of one expression.

    Attributes:
        path: str. The module, relative to the root of the tree.
        operator: str. The operator of cosmic-ray that makes the change.
        occurrence: int. Index of the operator's position in the module.
        first_line: int, from 1. The first line that changes.
        last_line: int. The last line that changes.
    """

    path: str
    operator: str
    occurrence: int
    first_line: int
    last_line: int

    @property
    def name(self):
        """Module, line and operator, such as `ops/a.py:3 AddNot #0`."""
        operator = self.operator.removeprefix("core/")
        path = self.path.removeprefix("keras_attn/")
        return f"{path}:{self.first_line} {operator} #{self.occurrence}"


def list_mutants(root):
    """Lists all mutants of the tree at `root`, in a fixed order.

    Operators that need arguments are left out, as in cosmic-ray by default.

    Args:
        root: `pathlib.Path` of a checkout.

    Returns:
        List of `Mutant`.
    """
    operators = {
        name: cosmic_ray.plugins.get_operator(name)()
        for name in sorted(cosmic_ray.plugins.operator_names())
        if not cosmic_ray.plugins.get_operator(name).arguments()
    }
    found = []
    for path in _modules(root):
        tree = get_ast_from_path(path)
        for name, operator in operators.items():
            positions = [
                position
                for node in ast_nodes(tree)
                for position in operator.mutation_positions(node)
            ]
            found += [
                Mutant(
                    path.relative_to(root).as_posix(),
                    name,
                    occurrence,
                    start[0],
                    end[0],
                )
                for occurrence, (start, end) in enumerate(positions)
            ]
    return found


def draw(root, number, seed):
    """Draws some mutants, deterministically for a tree and a seed.

    Args:
        root: `pathlib.Path` of a checkout.
        number: int. Number of mutants.
        seed: int.

    Returns:
        List of `Mutant`, in the order of `list_mutants`.

    Raises:
        ValueError: `number` is not between 1 and the number of all mutants.
    """
    mutants = list_mutants(root)
    if not 1 <= number <= len(mutants):
        raise ValueError(
            f"`number` must be from 1 to {len(mutants)}, the number of all "
            f"mutants. Received: {number}"
        )
    chosen = random.Random(seed).sample(range(len(mutants)), number)
    return [mutants[index] for index in sorted(chosen)]


def mutate(mutant, root):
    """Returns the source of the mutant's module with the change applied.

    Args:
        mutant: `Mutant`.
        root: `pathlib.Path` of the tree that it was drawn from.

    Returns:
        str.

    Raises:
        ValueError: the module has no such position, since it has changed.
    """
    source = (root / mutant.path).read_text(encoding="utf-8")
    operator = cosmic_ray.plugins.get_operator(mutant.operator)()
    mutated = mutate_code(source, operator, mutant.occurrence)
    if mutated is None:
        raise ValueError(
            f"`mutant` must exist in {mutant.path}, which has changed since. "
            f"Received: {mutant.name}"
        )
    return mutated


def _modules(root):
    package = pathlib.Path(root) / "keras_attn"
    return sorted(
        path
        for name in PACKAGES
        for path in [
            *package.glob(f"{name}.py"),
            *package.glob(f"{name}/**/*.py"),
        ]
    )
