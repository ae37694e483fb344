"""What the images of a run are like: their shape, and the names of their classes."""

from ssm.data.published import PUBLISHED, STAND_INS
from ssm.errors import UserError
from ssm.runs.reader import FinishedRun

_SHAPES = {"idx": (28, 28, 1), "cifar": (32, 32, 3)}


def image_facts(run: FinishedRun) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Return the shape of a run's images and the names of its classes, as it noted them or as its data set has them.

    Raises:
        UserError: for a data set that an older run did not describe.
    """
    for _, noted in run.environments():
        if "image_shape" in noted and "class_names" in noted:
            return tuple(noted["image_shape"]), tuple(noted["class_names"])
    name = str(run.setting("dataset"))
    published = PUBLISHED.get(STAND_INS.get(name, name.removeprefix("tfds:")))
    if published is None:
        raise UserError(f"{run.folder} does not say what the images of {name} are like: an older version made it")
    return _SHAPES[published.format], published.class_names


def check_standardised(run: FinishedRun) -> None:
    """Raise UserError if a run noted that its net was given other inputs than images, each standardised."""
    if inputs := next((noted["inputs"] for _, noted in run.environments() if "inputs" in noted), None):
        raise UserError(
            f"{run.folder} was trained on inputs that are {inputs}; a file is for a net of uint8 images, which are "
            "standardised: train it with ssm.train, and save what ssm.export.from_supermask makes of its variables"
        )
