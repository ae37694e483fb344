"""What a Supermask begins with: the module's own parameters, split into masked kernels and others."""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

import jax
from flax import linen as nn
from flax.core import meta
from jax import Array

from ssm.errors import UserError
from ssm.learners import Layers, Learner
from ssm.paths import Path, matches, path_name
from ssm.trees import flatten, unflatten

Kernels: TypeAlias = Sequence[str] | Callable[[str], bool]
"""Which parameters are masked: patterns of their names or whole paths, or a function of the path."""


def drawn(
    module: nn.Module, refused: type[nn.Module], keys: Mapping[str, Array], method: str, args, kwargs
) -> tuple[dict[Path, Any], dict[Path, int]]:
    """Return a module's params as it initialises them, by path, and how many leading axes of a kernel are inputs.

    The latter is said of each DenseGeneral's kernel, as it is called.  Raises UserError where a module of the class
    `refused` is inside.
    """
    matrices: dict[Path, int] = {}
    with nn.intercept_methods(partial(_note, matrices, refused)):
        variables = module.init(dict(keys), *args, method=method, **kwargs)
    return flatten(dict(variables).get("params", {})), matrices


def _note(matrices: dict[Path, int], refused: type[nn.Module], function, args, kwargs, context):
    module = context.module
    if isinstance(module, refused):
        raise UserError(
            f"{'/'.join(module.path) or 'module'} is a Supermask inside a Supermask: mask the whole net once, and say "
            "with `kernels` which layers are masked, and with ssm.learners.by_layer how."
        )
    if isinstance(module, nn.DenseGeneral) and not module.batch_dims:
        matrices[(*module.path, "kernel")] = len(module.axis) if isinstance(module.axis, Sequence) else 1
    return function(*args, **kwargs)


def chosen(paths: Sequence[Path], kernels: Kernels, module: str) -> list[Path]:
    """Return the paths of the parameters to mask, in alphabetical order.

    A pattern is one of a parameter's own name or of its whole path.  Raises UserError where there is none, or a pattern
    of a path matches none.
    """
    names = {path: path_name(path) for path in sorted(paths)}
    if callable(kernels):
        found, wanted = [path for path, name in names.items() if kernels(name)], "chosen by `kernels`"
    else:
        found = [path for path, name in names.items() if any(matches(one, name, path[-1]) for one in kernels)]
        wanted = f"matching {' or '.join(kernels) or 'anything'}"
        idle = [one for one in kernels if "/" in one and not any(matches(one, name) for name in names.values())]
        if idle:
            raise UserError(f"{module} has no parameter {' or '.join(idle)}; it has {', '.join(names.values())}")
    if not found:
        raise UserError(
            f"{module} has no parameter to mask: wanted one {wanted}, found {', '.join(names.values()) or 'none'}.  "
            "Name them in `kernels`."
        )
    return found


def begin(
    params: Mapping[Path, Any],
    matrices: Mapping[Path, int],
    masked: Sequence[Path],
    *,
    learner: Learner,
    kernel_init: Callable[..., Array] | None,
    kernel_key: Array,
    learner_key: Array,
) -> tuple[Layers, Layers, dict[str, Any]]:
    """Return the learner's params and state by layer, and the other params, nested.

    Kernels keep their partitioning metadata, in all values of their shape.
    """
    boxes = {path: params[path] for path in masked}
    kernels = {path: meta.unbox(box) for path, box in boxes.items()}
    if kernel_init is not None:
        for index, (path, kernel) in enumerate(kernels.items()):
            key = jax.random.fold_in(kernel_key, index)
            kernels[path] = _draw(kernel_init, matrices.get(path))(key, kernel.shape, kernel.dtype)
    # Draws want a DenseGeneral's fans; a rule of rows or columns must see one shape in all of its functions.
    matrices = matrices if learner.elementwise else {}
    given = {path_name(path): kernel.reshape(_matrix(kernel, matrices.get(path))) for path, kernel in kernels.items()}
    layers, state = learner.init(learner_key, given)
    _check(kernels, layers, state)

    def as_kernels(values: Layers) -> dict[str, Any]:
        """Return values by layer with the kernel's own shape and metadata where they have the shape they were given."""

        def own(path: Path, leaf: Array) -> Any:
            kernel, box = kernels[path], boxes[path]
            if leaf.shape != _matrix(kernel, matrices.get(path)):
                return leaf
            whole = leaf.reshape(kernel.shape)
            return box.replace_boxed(whole) if isinstance(box, meta.AxisMetadata) else whole

        return {path_name(path): jax.tree.map(partial(own, path), values[path_name(path)]) for path in kernels}

    others = {path: value for path, value in params.items() if path not in boxes}
    return as_kernels(layers), as_kernels(state), unflatten(others)


def _draw(init: Callable[..., Array], inputs: int | None) -> Callable[..., Array]:
    """Return the initialiser that sees a DenseGeneral's kernel as the matrix it is: its fans aren't a convolution's."""
    if inputs is None:
        return init

    def draw(key, shape, dtype):
        matrix = math.prod(shape[:inputs]), math.prod(shape[inputs:])
        return init(key, matrix, dtype).reshape(shape)

    return draw


def _matrix(kernel: Array, inputs: int | None) -> tuple[int, ...]:
    """Return the shape in which a learner is given a kernel: that of a matrix, where it is a DenseGeneral's."""
    if inputs is None:
        return kernel.shape
    return math.prod(kernel.shape[:inputs]), math.prod(kernel.shape[inputs:])


def _check(kernels: Mapping[Path, Array], params: Layers, state: Layers) -> None:
    """Raise UserError unless a learner's params and state are by layer."""
    wanted = {path_name(path) for path in kernels}
    for name, layers in (("params", params), ("state", state)):
        if not isinstance(layers, Mapping) or set(layers) != wanted:
            raise UserError(
                f"the learner's init must return params and state as dictionaries with an entry for each layer "
                f"({', '.join(sorted(wanted))}); its {name} are {_keys_of(layers)}."
            )


def _keys_of(layers: Any) -> str:
    return ", ".join(map(str, layers)) if isinstance(layers, Mapping) else f"of type {type(layers).__name__}"
