"""Parts of recipes: option values, and the models and methods that they are for."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

OWN = "own"
"""The recipes' name for any net or learner of the user's; a net takes what the feedforward nets have in common."""
CONV_NETS = ("conv2", "conv4", "conv6", "conv8")
FEEDFORWARD = ("fcn", *CONV_NETS, OWN)


class Change(NamedTuple):
    """Option values, and the models and methods that they are for."""

    models: Sequence[str]
    methods: Sequence[str]
    values: Mapping[str, Any]


def change(models: str | Sequence[str], methods: str | Sequence[str], /, **values: Any) -> Change:
    """Return a change of some models' and methods' option values; a text names one."""
    names = (models,) if isinstance(models, str) else models
    return Change(names, (methods,) if isinstance(methods, str) else methods, values)
