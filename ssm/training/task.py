"""What a group of seeds trains: a masked net, and how batches, loss and optimiser are made; no names, no files."""

import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, NamedTuple, TypeAlias

import jax
import numpy as np
import optax
from flax import linen as nn
from jax import Array

from ssm.errors import UserError
from ssm.supermask import Supermask

SeedLoop: TypeAlias = Literal["map", "vmap"]
"""How a device runs its seeds: one after another, or all at once."""
Numbers: TypeAlias = Mapping[str, Any]
"""What a net may depend on and a seed brings along as traced values: a threshold, say."""
EXAMPLES = 8  # test samples of which a run keeps the outputs
EVALUATION_VALUES = 1000 * 28 * 28  # of the inputs of a batch: 1,000 digits, or 250 images of CIFAR


class Units(NamedTuple):
    """The units of a hidden layer: paths of the kernels whose outputs they are, and of those whose inputs they are."""

    fed: tuple[str, ...]
    used: tuple[str, ...]


class Hidden(NamedTuple):
    """The hidden layers whose dead units training may leave out.

    Their units have no bias, put out 0 for 0, and nothing else reads them; the learner has `settled`, and neither an
    `update` nor a `penalty`.

    units: by layer's name.  resized: units by layer -> the same task with so many.
    reach: the optimiser's state -> how far parameters still move without a gradient, in their structure.
    worth: operations that leaving out units must save, as it compiles one more program.
    """

    units: Mapping[str, Units]
    resized: Callable[[Mapping[str, int]], "Task"]
    reach: Callable[[Any], Any]
    worth: float


@dataclass(frozen=True, kw_only=True, eq=False)
class Task:
    """All that decides the compiled program of a group of seeds, but the data and the devices.

    net: numbers -> the masked net; `numbers` are values to check it with.
    example: inputs of one sample as the net takes them, [1, ...], for their shapes alone.
    batch: (data, index [batch], key) -> (inputs, targets); the key is None in evaluation, otherwise the step's for
        augmentation.
    apply: (module, variables, inputs, train, valid [batch] or None, key or None) -> (outputs, other collections).
    loss, metrics: (outputs, targets) -> one value for each sample; the trainer leaves out padding.
    optimizer: (learning_rate, weight_decay) -> transformation, whose state depends on neither.
    reshuffles: whether a seed has a new order of the data in each pass; False: its first in all.
    stops: whether a seed may end before the others (a plateau schedule's last reduction).
    transposed: whether the learner's matrices are held as [out, in], which a CPU multiplies some 8 % faster.
    halves: whether a CPU computes a batch as two halves, which a seed alone has on two devices: of a net whose outputs
        are each sample's own, without random numbers and other collections, under a learner without a penalty.
    hidden: the hidden layers whose dead units are left out of training; None: all units are trained to the end.
    accelerator_loop: how a device that is no CPU runs its seeds by default; None: as the net's kernels suggest.
    examined: the plain module in a form that compiles fast, if a run is to keep the outputs of some test samples.
    """

    net: Callable[[Numbers], Supermask]
    numbers: Numbers
    example: Any
    batch: Callable[[Any, Array, Array | None], tuple[Any, Any]]
    apply: Callable[..., tuple[Any, Mapping[str, Any]]]
    loss: Callable[[Any, Any], Array]
    metrics: Mapping[str, Callable[[Any, Any], Array]]
    optimizer: Callable[[Any, Any], optax.GradientTransformation]
    epochs: int
    batch_size: int
    passes: int = 1
    reshuffles: bool = True
    stops: bool = False
    transposed: bool = False
    halves: bool = False
    hidden: Hidden | None = None
    accelerator_loop: SeedLoop | None = None
    examined: nn.Module | None = None

    @property
    def evaluation_batch(self) -> int:
        """The samples that are evaluated at a time, as far as there are so many."""
        values = sum(math.prod(leaf.shape) for leaf in jax.tree.leaves(self.example))
        return max(1, EVALUATION_VALUES // values // 50 * 50)


def accuracy(outputs: Array, targets: Array) -> Array:
    """Return 1 where a sample's largest logit is its label's, else 0; the mean over further axes of the targets."""
    hits = outputs.argmax(-1) == targets
    return hits if hits.ndim == 1 else hits.reshape(len(hits), -1).mean(-1)


def apply_module(
    module: nn.Module,
    variables: Mapping[str, Any],
    inputs: Any,
    *,
    train: bool,
    valid: Array | None = None,
    key: Array | None = None,
) -> tuple[Any, Mapping[str, Any]]:
    """Return a module's outputs, and its collections but `params` as it leaves them in training.

    A tuple of inputs is several arguments.  `train` (also named `training` or, inverted, `deterministic`) and `valid`,
    the samples of a padded batch that count, are passed where `__call__` names them.  `key` serves every stream of
    random numbers that the module asks for (dropout, say).
    """
    arguments = inputs if isinstance(inputs, tuple) else (inputs,)
    options = _accepted(type(module), train=train, valid=valid)
    rngs = {} if key is None else {"params": key}
    if not train:
        return module.apply(variables, *arguments, rngs=rngs, **options), {}
    rest = [name for name in variables if name != "params"]
    return module.apply(variables, *arguments, rngs=rngs, mutable=rest, **options)  # type: ignore[return-value]


def _accepted(module: type[nn.Module], *, train: bool, valid: Array | None) -> dict[str, Any]:
    values = {"train": train, "training": train, "deterministic": not train, "valid": valid}
    named = inspect.signature(module.__call__).parameters
    return {name: value for name, value in values.items() if name in named}


def rated(optimizer: Any) -> Callable[[Any, Any], optax.GradientTransformation]:
    """Return an optimiser as a function of learning rate and weight decay, both of which may be traced.

    A transformation is used as it is, its own rates inside; a factory (`optax.adamw`, `ssm.sgdw`) is given those of the
    two that it names.  Raises UserError for anything else.
    """
    if isinstance(optimizer, optax.GradientTransformation):
        return lambda learning_rate, weight_decay: optimizer
    if not callable(optimizer):
        raise UserError(f"optimizer must be an optax transformation, or a function of the rates; got {optimizer!r}.")
    named = inspect.signature(optimizer).parameters

    def make(learning_rate: Any, weight_decay: Any) -> Any:
        rates = {"learning_rate": learning_rate, "weight_decay": weight_decay}
        return optimizer(**{name: rate for name, rate in rates.items() if name in named})

    return make


def one_sample(batch: Callable[..., tuple[Any, Any]], data: Any) -> Any:
    """Return zeros in the shape and dtype of one sample's inputs, [1, ...]."""
    inputs, _ = jax.eval_shape(partial(batch, key=None), data, jax.ShapeDtypeStruct((1,), np.int32))
    return jax.tree.map(lambda leaf: np.zeros(leaf.shape, leaf.dtype), inputs)
