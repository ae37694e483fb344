"""The wrapper that masks any Flax module, and how its variables lie."""

from ssm.supermask.variables import OWN, joined, split
from ssm.supermask.wrapper import Supermask

__all__ = ["OWN", "Supermask", "joined", "split"]
