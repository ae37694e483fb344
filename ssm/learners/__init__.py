"""Mask learners: the protocol, and a factory for each method, one file a method."""

from ssm.learners.base import Layers, Learner, Step, layerwise
from ssm.learners.binary import binary
from ssm.learners.by_layer import by_layer
from ssm.learners.dense import dense
from ssm.learners.signed import signed

__all__ = ["Layers", "Learner", "Step", "binary", "by_layer", "dense", "layerwise", "signed"]
