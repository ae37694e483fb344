"""The wrapper that masks any Flax module, and how its variables lie."""

from ssm.supermask.variables import assembled, joined, module_collections, split, stacked_axes
from ssm.supermask.wrapper import Supermask

__all__ = ["Supermask", "assembled", "joined", "module_collections", "split", "stacked_axes"]
