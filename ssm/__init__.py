"""Signed Supermasks: nets whose frozen random weights are kept, hidden or inverted, in JAX and Flax.

`Supermask` masks any Flax module with a learner (`ssm.learners`), `train` trains many seeds of it, `load` reads a
trained net's file, and `ternarize` is the mask itself.  Names are imported when they are first used, so that the parts
that need no JAX (runs, tables) start at once.
"""

from typing import TYPE_CHECKING

from ssm.lazy import attributes

if TYPE_CHECKING:
    from ssm import analysis as analysis
    from ssm import data as data
    from ssm import export as export
    from ssm import initializers as initializers
    from ssm import learners as learners
    from ssm import losses as losses
    from ssm import models as models
    from ssm import optim as optim
    from ssm import thresholds as thresholds
    from ssm import viz as viz
    from ssm.errors import UserError as UserError
    from ssm.export import load as load
    from ssm.learners import Learner as Learner
    from ssm.learners import Step as Step
    from ssm.learners import layerwise as layerwise
    from ssm.optim import sgdw as sgdw
    from ssm.plateau import PlateauRule as PlateauRule
    from ssm.runs.experiment import Result as Result
    from ssm.runs.experiment import train as train
    from ssm.runs.run import RunOptions as RunOptions
    from ssm.supermask import Supermask as Supermask
    from ssm.ternary import binarize as binarize
    from ssm.ternary import ternarize as ternarize
    from ssm.training.devices import use_host_devices as use_host_devices

_HOMES = {
    "Learner": "ssm.learners",
    "PlateauRule": "ssm.plateau",
    "Result": "ssm.runs.experiment",
    "RunOptions": "ssm.runs.run",
    "Step": "ssm.learners",
    "Supermask": "ssm.supermask",
    "UserError": "ssm.errors",
    "binarize": "ssm.ternary",
    "layerwise": "ssm.learners",
    "load": "ssm.export",
    "sgdw": "ssm.optim",
    "ternarize": "ssm.ternary",
    "train": "ssm.runs.experiment",
    "use_host_devices": "ssm.training.devices",
}
__all__ = [
    "Learner",
    "PlateauRule",
    "Result",
    "RunOptions",
    "Step",
    "Supermask",
    "UserError",
    "analysis",
    "binarize",
    "data",
    "export",
    "initializers",
    "layerwise",
    "learners",
    "load",
    "losses",
    "models",
    "optim",
    "sgdw",
    "ternarize",
    "thresholds",
    "train",
    "use_host_devices",
    "viz",
]


__getattr__ = attributes(__name__, _HOMES)


def __dir__() -> list[str]:
    return __all__
