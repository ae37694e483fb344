"""Convolutions, products, pools: operations behind Flax's own hooks; nothing here knows a model."""

from ssm.lazy import attributes

__getattr__ = attributes(__name__)
