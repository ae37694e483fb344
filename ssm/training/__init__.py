"""The training step, the epoch, and the loop over epochs of a group of seeds; nothing here knows a recipe or a file."""

from ssm.lazy import attributes

__getattr__ = attributes(__name__)
