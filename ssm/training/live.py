"""Which hidden units each seed of a group still trains, decided on the host from what its epochs report."""

import math
import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import jax
import numpy as np
from jaxtyping import Bool, Int

from ssm.training.epoch import Info, SeedLoop, layer_name
from ssm.training.step import State
from ssm.training.task import Task
from ssm.training.units import Sizes, unit_axes

STEP = 16  # units: what a processor adds at once
RATIO = 0.86  # of two sizes that follow each other: each is one more program to compile
PASSES = 3  # of a product in a training step: forward, and two gradients


class Kept(NamedTuple):
    """The units that a seed trains, by hidden layer: the first `sizes[layer]` of `order[layer]`, which has all."""

    order: Mapping[str, Int[np.ndarray, " units"]]
    sizes: Mapping[str, int]

    @property
    def flags(self) -> dict[str, Bool[np.ndarray, " units"]]:
        """Whether each unit is trained, in the net's own order."""
        return {
            layer: np.isin(np.arange(len(order)), order[: self.sizes[layer]]) for layer, order in self.order.items()
        }


def kept(flags: Mapping[str, Bool[np.ndarray, " units"]]) -> Kept:
    """Return the order in which the units that are trained come first, both parts as in the net."""
    order = {layer: np.argsort(~one, kind="stable").astype(np.int32) for layer, one in flags.items()}
    return Kept(order, {layer: int(one.sum()) for layer, one in flags.items()})


def ladder(units: int) -> tuple[int, ...]:
    """Return the sizes to which a layer of so many units may shrink, the largest first."""
    sizes: list[int] = []
    while (units := math.floor(units * RATIO / STEP) * STEP) > 0:
        sizes.append(units)
    return tuple(sizes)


@dataclass(frozen=True)
class LiveUnits:
    """What each seed of a group trains: of a task without `hidden`, always all.

    kernels: shapes of all masked kernels by path, as they are trained.  seeds: in the order of the group.
    """

    task: Task
    kernels: Mapping[str, tuple[int, ...]]
    seeds: tuple[Kept, ...] = ()

    @property
    def some_left_out(self) -> bool:
        """Whether a seed has a unit left out."""
        return any(one.sizes[layer] < len(order) for one in self.seeds for layer, order in one.order.items())

    @property
    def flags(self) -> dict[str, Bool[np.ndarray, "seeds units"]]:
        """Whether each unit is trained, by layer, in the net's own order; empty if all are."""
        if not self.some_left_out:
            return {}
        return {layer: np.stack([one.flags[layer] for one in self.seeds]) for layer in self.seeds[0].order}

    def where(self, flags: Mapping[str, Bool[np.ndarray, "seeds units"]]) -> "LiveUnits":
        """Return the same with just the units that are flagged, all if there are no flags."""
        if not flags:
            return self.whole(len(self.seeds))
        rows = range(len(self.seeds))
        return replace(self, seeds=tuple(kept({layer: one[row] for layer, one in flags.items()}) for row in rows))

    def whole(self, seeds: int) -> "LiveUnits":
        """Return the same of so many seeds that train all units."""
        units = {layer: shape[axis] for shape, axes in self._axes() for layer, axis in axes.items()}
        everything = kept({layer: np.ones(count, bool) for layer, count in sorted(units.items())})
        return replace(self, seeds=(everything,) * seeds)

    def parts(self, places: Sequence[int], loop: SeedLoop) -> dict[Sizes, list[int]]:
        """Return which of some seeds, by place, are trained by the program of which sizes.

        One after another, each seed has a size of its own; vectorised, all have the largest.
        """
        if self.task.hidden is None:
            return {(): list(places)}
        found: dict[Sizes, list[int]] = {}
        for place in places:
            one = self.seeds[place]
            among = places if loop == "vmap" else [place]
            sizes = {layer: max(self.seeds[other].sizes[layer] for other in among) for layer in one.order}
            fewer = any(size < len(one.order[layer]) for layer, size in sizes.items())
            found.setdefault(tuple(sorted(sizes.items())) if fewer else (), []).append(place)
        return found

    def row(self, place: int, live: Mapping[str, Bool[np.ndarray, " trained"]]) -> dict[str, int]:
        """Return what a seed's history says of an epoch: its live and its trained units, in all and by layer."""
        if self.task.hidden is None:
            return {}
        sizes = self.seeds[place].sizes
        alive = {layer: int(live[layer][:size].sum()) for layer, size in sizes.items()}
        both = {"live_units": sum(alive.values()), "trained_units": sum(sizes.values())}
        return both | {f"{layer}:live_units": count for layer, count in alive.items()}

    def without_dead(self, live: Mapping[int, Mapping[str, Bool[np.ndarray, " trained"]]], samples: int) -> "LiveUnits":
        """Return what the seeds train from now on: without dead units, where that saves more than it costs.

        live: of seeds by place, by layer, which of the units trained so far are not dead for good.
        samples: that each is still to be trained on.
        The decision is in operations and of a seed alone, so that the same configuration always decides the same.
        """
        if self.task.hidden is None:
            return self
        seeds = list(self.seeds)
        for place, own in live.items():
            seeds[place] = self._without_dead(seeds[place], own, samples)
        return self if all(map(operator.is_, seeds, self.seeds)) else replace(self, seeds=tuple(seeds))

    def soon(self, live: Mapping[int, Mapping[str, Bool[np.ndarray, " trained"]]], samples: int) -> "LiveUnits":
        """Return what the seeds train after the next units have died, where half of those between two sizes have.

        Arguments are as in `without_dead`.  It is a guess at what is to be compiled: no result depends on it.
        """
        if self.task.hidden is None:
            return self

        def then(now: Kept, own: Mapping[str, Bool[np.ndarray, " trained"]]) -> dict[str, Bool[np.ndarray, " trained"]]:
            after = {}
            for layer, alive in own.items():
                size = now.sizes[layer]
                smaller = max((one for one in ladder(len(now.order[layer])) if one < size), default=size)
                near = 2 * int(alive[:size].sum()) <= size + smaller
                after[layer] = alive & (np.cumsum(alive) <= smaller) if near else alive
            return after

        return self.without_dead({place: then(self.seeds[place], own) for place, own in live.items()}, samples)

    def _without_dead(self, now: Kept, live: Mapping[str, Bool[np.ndarray, " trained"]], samples: int) -> Kept:
        assert self.task.hidden is not None
        flags = whole = now.flags
        for layer, order in now.order.items():
            size = now.sizes[layer]
            alive, dead = order[:size][live[layer][:size]], order[:size][~live[layer][:size]]
            smaller = min((one for one in ladder(len(order)) if len(alive) <= one < size), default=size)
            # What fills up the size is dead, and was trained so far.
            fewer = flags | {layer: np.isin(np.arange(len(order)), [*alive, *dead[: smaller - len(alive)]])}
            saved = 2 * PASSES * (self._weights(flags) - self._weights(fewer)) * samples
            if smaller < size and saved >= self.task.hidden.worth:
                flags = fewer
        return now if flags is whole else kept(flags)

    def moves(self, after: "LiveUnits") -> dict[str, Int[np.ndarray, "seeds units"]]:
        """Return the places in the seeds' arrays from which their units come when another order follows, by layer."""
        pairs = list(zip(self.seeds, after.seeds, strict=True))
        return {
            layer: np.stack([np.argsort(old.order[layer])[new.order[layer]] for old, new in pairs]).astype(np.int32)
            for layer in self.seeds[0].order
        }

    def combined(self, found: Sequence[tuple[Sequence[int], Info]]) -> Info:
        """Return what the programs of a group's parts report as one; weights of units that are left out are hidden.

        found: places of a part's seeds, and its information on the host, in which every seed of the group has a row.
        """
        if len(found) == 1 and not self.some_left_out:
            return found[0][1]
        sizes = {layer_name(path): math.prod(shape) for path, shape in self.kernels.items()}

        def whole(info: Info) -> Info:
            layers = {
                name: counts._replace(zero=sizes[name] - counts.minus - counts.plus)
                for name, counts in info.layers.items()
            }
            return info._replace(layers=layers, live={})

        def rows(*leaves: np.ndarray) -> np.ndarray:
            merged = np.array(leaves[0])
            for (places, _), leaf in zip(found, leaves, strict=True):
                merged[places] = leaf[places]
            return merged

        return jax.tree.map(rows, *(whole(info) for _, info in found))

    def _axes(self) -> list[tuple[tuple[int, ...], dict[str, int]]]:
        """Return the shapes of the kernels, and which of their axes are the units of which layers."""
        hidden, transposed = self.task.hidden, self.task.transposed
        if hidden is None:
            return []
        return [
            (shape, unit_axes(hidden, path, len(shape), transposed=transposed)) for path, shape in self.kernels.items()
        ]

    def _weights(self, flags: Mapping[str, np.ndarray]) -> int:
        """Return the number of weights of the kernels that have hidden units, with the flagged ones alone."""
        total = 0
        for shape, axes in self._axes():
            own = {axis: int(flags[layer].sum()) for layer, axis in axes.items()}
            total += math.prod(own.get(axis, size) for axis, size in enumerate(shape)) if axes else 0
        return total


def live_units_of(task: Task, state: State, seeds: int) -> LiveUnits:
    """Return what so many seeds of a state that was just started train: all."""
    if task.hidden is None:
        return LiveUnits(task, {}, ())
    kernels = {path: jax.tree.leaves(layer)[0].shape[1:] for path, layer in state.params.layers.items()}
    return LiveUnits(task, kernels).whole(seeds)
