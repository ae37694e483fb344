"""Convolutions, matrix products, activations and pools, for Flax's own hooks; nothing here depends on a model."""

from ssm.lazy import attributes

__getattr__ = attributes(__name__)
