"""The report of `doctor`."""

import dataclasses
from collections.abc import Sequence


@dataclasses.dataclass(frozen=True)
class Leak:
    """A layer whose real positions changed although its inputs did not.

    Args:
        layer: str. Its name.
        location: str. The names of the enclosing layers and its own, joined by
            "/", and the location in its own code, if known.
        max_change: float. The largest change at a real position, relative to
            the largest value there.
        order: int. The number of its call among all calls of the model.
        unmasked_since: str. Where a mask for the layer's positions was last
            seen, if the layer was called without one: the mask was lost in
            between, for example by a sum `x + y`. Default "": none was missing.

    Examples:
        >>> leak = keras_attn.explain.Leak("pool", "encoder/pool", 0.5, 3)
        >>> leak.location, leak.max_change, leak.unmasked_since
        ('encoder/pool', 0.5, '')
    """

    layer: str
    location: str
    max_change: float
    order: int
    unmasked_since: str = ""


@dataclasses.dataclass(frozen=True)
class Probe:
    """A change of the padding that should not affect the outputs.

    Args:
        change: str. Description of the change.
        max_change: float. The largest change at a real position of the model's
            output, relative to the largest value there.
        leaks: tuple of `Leak`, in the order of the calls.

    Examples:
        >>> keras_attn.explain.Probe("ids: 3 more padded positions", 0.0)
        Probe(change='ids: 3 more padded positions', max_change=0.0, leaks=())
    """

    change: str
    max_change: float
    leaks: "tuple[Leak, ...]" = ()


class Report:
    """The result of `doctor`. It is true if no leak was found.

    Args:
        probes: list of `Probe`.
        refused: list of str. Changes that the model rejected, and why.
        tolerance: float. Smaller changes are ignored.

    Examples:
        >>> leak = keras_attn.explain.Leak("pool", "pool", 0.5, 3)
        >>> probe = keras_attn.explain.Probe("more padding", 0.25, (leak,))
        >>> report = keras_attn.explain.Report([probe], [], tolerance=1e-4)
        >>> bool(report), report.leaks
        (False, ['pool'])
        >>> print(report)
        Padding leaks, first in `pool`.
        <BLANKLINE>
        changed       output moved  first leaking layer
        more padding          25 %  pool
        <BLANKLINE>
        Every layer that lets padding in, by itself:
          pool      50 %
    """

    def __init__(
        self, probes: Sequence[Probe], refused: Sequence[str], tolerance: float
    ) -> None:
        self.probes: list[Probe] = list(probes)
        self.refused: list[str] = list(refused)
        self.tolerance = tolerance

    @property
    def leaks(self) -> list[str]:
        """Names of the layers that leak padding, in the order of the calls."""
        return list(dict.fromkeys(leak.layer for leak in self._leaks()))

    def __bool__(self) -> bool:
        return not self.leaks

    def __str__(self) -> str:
        rows = [("changed", "output moved", "first leaking layer")]
        for probe in self.probes:
            first = probe.leaks[0].location if probe.leaks else "-"
            rows.append((probe.change, self._share(probe.max_change), first))
        width = max(len(row[0]) for row in rows)
        lines = [
            self._headline(),
            "",
            *(f"{a:<{width}}  {b:>12}  {c}" for a, b, c in rows),
        ]
        if not self:
            worst = {}
            for leak in self._leaks():
                worst[leak.location] = max(
                    leak.max_change, worst.get(leak.location, 0)
                )
            width = max(len(location) for location in worst)
            lines += ["", "Every layer that lets padding in, by itself:"]
            lines += [
                f"  {location:<{width}}  {_percent(max_change):>8}"
                for location, max_change in worst.items()
            ]
            lines += self._lost_masks()
        if self.refused:
            lines += ["", "Not probed:", *(f"  {x}" for x in self.refused)]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"Report(leaks={self.leaks})"

    def _share(self, max_change):
        if max_change <= self.tolerance:
            return f"< {_percent(self.tolerance)}"
        return _percent(max_change)

    def _lost_masks(self):
        """Lines on layers that were called after a mask was lost."""
        since = {
            leak.location: leak.unmasked_since
            for leak in self._leaks()
            if leak.unmasked_since
        }
        if not since:
            return []
        width = max(len(location) for location in since)
        return [
            "",
            "Called without a mask, though there had been one (`x + y` loses "
            "it,",
            "keras.layers.Add keeps it); it was last seen behind:",
            *(
                f"  {location:<{width}}  {giver}"
                for location, giver in since.items()
            ),
        ]

    def _leaks(self):
        """The leaks of all probes, in the order of the calls."""
        leaks = [leak for probe in self.probes for leak in probe.leaks]
        return sorted(leaks, key=lambda leak: leak.order)

    def _headline(self):
        if not self.leaks:
            found = (
                "No leak in what could be probed" if self.refused else "No leak"
            )
            return (
                f"{found}: no real position moved by more than "
                f"{_percent(self.tolerance)}."
            )
        return f"Padding leaks, first in `{self.leaks[0]}`."


def _percent(share):
    return f"{100 * share:.2g} %" if share < 0.1 else f"{100 * share:.0f} %"
