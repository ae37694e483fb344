"""A method's own options: typed as its factory's keyword arguments are, and written as one text in a configuration."""

import inspect
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, get_args, get_origin

from ssm import learners
from ssm.errors import UserError
from ssm.recipes.literature import LITERATURE

PRETRAINED = "pretrained"
"""The option of a method with a trained start: the steps in which the plain weights are trained."""
EXEMPT = "exempt"
"""The option of every method: the layers that it leaves out."""


class Option(NamedTuple):
    """An option: its type (float, int, bool, str or a Literal), default, and a line of help."""

    type: Any
    default: Any
    help: str


def options_of(method: str) -> dict[str, Option]:
    """Return a method's own options by name: what its factory annotates, but for `density` where that is the dial."""
    entry = LITERATURE[method]
    found = {}
    for name, parameter in inspect.signature(getattr(learners, entry.factory)).parameters.items():
        kind, *notes = get_args(parameter.annotation) or (parameter.annotation,)
        if notes and isinstance(notes[0], str) and get_origin(parameter.annotation) is not Literal:
            found[name] = Option(kind, parameter.default, notes[0])
    if entry.dial:
        found.pop("density", None)
    if entry.pretrained:
        found[PRETRAINED] = Option(int, 0, "Steps in which the plain weights are trained before the method begins.")
    found[EXEMPT] = Option(str, "", "Layers that are trained as they are, by name: Conv_0, or Conv_0+Dense_1.")
    return found


def timed_options(method: str, steps: int, epoch: int) -> dict[str, str]:
    """Return the options that follow from the steps in all and of an epoch, as texts."""
    entry = LITERATURE[method]
    timed = entry.timed(steps, epoch) | ({PRETRAINED: steps // 2} if entry.pretrained else {})
    return {name: str(value) for name, value in timed.items()}


def parsed_options(text: str) -> dict[str, str]:
    """Return the names and values of a text NAME=VALUE,NAME=VALUE."""
    pairs = [part.partition("=") for part in text.split(",") if part]
    if wrong := next((name for name, sign, _ in pairs if not sign), None):
        raise UserError(f"cannot read {wrong!r} among a method's options: write NAME=VALUE,NAME=VALUE.")
    return {name.strip(): value.strip() for name, _, value in pairs}


def written_options(options: Mapping[str, Any]) -> str:
    """Return options as a text, in alphabetical order."""
    return ",".join(f"{name}={options[name]}" for name in sorted(options))


def typed_options(method: str, text: str) -> dict[str, Any]:
    """Return a method's options as its factory takes them; raises UserError for one that it doesn't have."""
    known = options_of(method)
    return {name: _typed(method, name, value, known) for name, value in parsed_options(text).items()}


def _typed(method: str, name: str, value: str, known: Mapping[str, Option]) -> Any:
    if name not in known:
        raise UserError(f"--method={method} has no option {name}; it has {', '.join(known) or 'none'}.")
    kind = known[name].type
    words = {"True": True, "False": False} if kind is bool else {word: word for word in get_args(kind)}
    try:
        return words[value] if words else kind(value)
    except (KeyError, ValueError):
        wanted = " or ".join(words) or {int: "a whole number", float: "a number"}[kind]
        raise UserError(f"--{method}.{name.replace('_', '-')}={value} must be {wanted}.") from None
