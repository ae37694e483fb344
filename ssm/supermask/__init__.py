"""The wrapper that masks any Flax module, and how its variables lie."""

from ssm.supermask.variables import assembled, check_single, joined, module_collections, split
from ssm.supermask.wrapper import Supermask

__all__ = ["Supermask", "assembled", "check_single", "joined", "module_collections", "split"]
