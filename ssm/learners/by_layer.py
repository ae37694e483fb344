"""A learner for each layer: other thresholds, other densities, or layers that are trained as they are."""

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp

from ssm.errors import UserError
from ssm.learners.base import Layers, Learner, Step, is_by_layer
from ssm.paths import matches

EVERY = "*"


def by_layer(learners: Mapping[str, Learner]) -> Learner:
    """Return the learner that treats each layer as the first of some learners whose pattern matches it.

    learners: by pattern (`fnmatch`) of a layer's name, `Dense_0`, or of its kernel's path, `Dense_0/kernel`; `*` are
        all that are left.  Of a layer whose learner has no masks (`dense()`) there is no mask, and it counts nowhere.

    Raises UserError for what are no learners and, at initialisation, for a layer that none matches, or a pattern that
    no layer takes, or where no layer is left for those with masks.
    """
    if not isinstance(learners, Mapping) or not all(isinstance(one, Learner) for one in learners.values()):
        raise UserError(f"by_layer takes a dictionary of learners by pattern, {{'*': signed()}} say; got {learners!r}.")
    learners = dict(learners)

    def groups(layers: Layers) -> dict[str, list[str]]:
        """Return the layers of each pattern, in the order in which they come."""
        found: dict[str, list[str]] = {pattern: [] for pattern in learners}
        for path in layers:
            found[_first(learners, path)].append(path)
        return {pattern: paths for pattern, paths in found.items() if paths}

    def init(key, kernels):
        found = groups(kernels)
        if idle := [pattern for pattern in learners if pattern not in found and pattern != EVERY]:
            raise UserError(f"by_layer: no layer is left for {', '.join(idle)}; the layers are {', '.join(kernels)}.")
        if any(one.has_masks for one in learners.values()) and not any(learners[name].has_masks for name in found):
            raise UserError(f"by_layer: no layer is left to mask; the layers are {', '.join(kernels)}.")
        params, state = {}, {}
        for number, (pattern, paths) in enumerate(found.items()):
            own = learners[pattern].init(jax.random.fold_in(key, number), _part(kernels, paths))
            params |= own[0]
            state |= own[1]
        return params, state

    def weights(params, state, key):
        found = {}
        for number, (pattern, paths) in enumerate(groups(params).items()):
            own = None if key is None else jax.random.fold_in(key, number)
            found |= learners[pattern].weights(_part(params, paths), _part(state, paths), own)
        return found

    def masks(params, state):
        found = {}
        for pattern, paths in groups(params).items():
            if learners[pattern].has_masks:
                found |= learners[pattern].masks(_part(params, paths), _part(state, paths))
        return found

    def stepped(name: str, key, step, *given: Step) -> Step:
        """Return the last of some steps as each layer's own learner changes it, by its function of this name."""
        *before, now = given
        for number, (pattern, paths) in enumerate(groups(now.params).items()):
            function = getattr(learners[pattern], name)
            if function is not None:
                parts = (Step(*(_everywhere(tree, now.params, paths) for tree in one)) for one in (*before, now))
                after = function(jax.random.fold_in(key, number), step, *parts)
                now = Step(*(_with(tree, now.params, new) for tree, new in zip(now, after, strict=True)))
        return now

    def update(key, step, now: Step) -> Step:
        return stepped("update", key, step, now)

    def finish(key, step, before: Step, after: Step) -> Step:
        return stepped("finish", key, step, before, after)

    def variances(params, state):
        found = {}
        for pattern, paths in groups(params).items():
            function = learners[pattern].variances
            if function is not None:
                found |= function(_part(params, paths), _part(state, paths))
        return found

    def draw(params, state, key):
        found = {}
        for number, (pattern, paths) in enumerate(groups(params).items()):
            own = _part(params, paths), _part(state, paths)
            function = learners[pattern].draw
            if function is None:
                found |= learners[pattern].weights(*own, None)
            else:
                found |= function(*own, jax.random.fold_in(key, number))
        return found

    def penalty(params, state):
        total = jnp.zeros(())
        for pattern, paths in groups(params).items():
            function = learners[pattern].penalty
            if function is not None:
                total += function(_part(params, paths), _part(state, paths))
        return total

    every = learners.values()

    def where(name: str, function: Callable[..., Any]) -> Callable[..., Any] | None:
        return function if any(getattr(one, name) is not None for one in every) else None

    return Learner(
        init,
        weights,
        masks,
        update=where("update", update),
        finish=where("finish", finish),
        penalty=where("penalty", penalty),
        variances=where("variances", variances),
        draw=where("draw", draw),
        draws=max((one.draws for one in every if one.draw is not None), default=Learner._field_defaults["draws"]),
        elementwise=all(one.elementwise for one in every),
        has_masks=any(one.has_masks for one in every),
    )


def _first(learners: Mapping[str, Learner], path: str) -> str:
    layer = path.rpartition("/")[0]
    for pattern in learners:
        if matches(pattern, path, layer):
            return pattern
    raise UserError(f"by_layer: no pattern matches {path}; add '{EVERY}' for all layers that are left.")


def _part(layers: Layers, paths: list[str]) -> dict[str, Any]:
    return {path: layers[path] for path in paths}


def _everywhere(tree: Any, layers: Layers, paths: list[str]) -> Any:
    """Return a tree with only some layers in each of its dictionaries by layer."""
    by_layer = is_by_layer(layers)
    return jax.tree.map(lambda node: _part(node, paths) if by_layer(node) else node, tree, is_leaf=by_layer)


def _with(tree: Any, layers: Layers, new: Any) -> Any:
    """Return a tree whose dictionaries by layer have the layers of the new one's."""
    by_layer = is_by_layer(layers)
    return jax.tree.map(lambda node, own: {**node, **own} if by_layer(node) else own, tree, new, is_leaf=by_layer)
