"""What the images of a run are like: their shape, and the names of their classes."""

from ssm.data.published import PUBLISHED, STAND_INS
from ssm.errors import UserError
from ssm.files import read_json
from ssm.runs.reader import FinishedRun

_SHAPES = {"idx": (28, 28, 1), "cifar": (32, 32, 3)}


def image_facts(run: FinishedRun) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Return the shape of a run's images and the names of its classes, as it noted them or as its data set has them.

    Raises:
        UserError: for a data set that an older run did not describe.
    """
    path = run.folder / "environment.json"
    try:
        for entry in read_json(path) if path.exists() else []:
            noted = entry["environment"]
            if "image_shape" in noted and "class_names" in noted:
                return tuple(noted["image_shape"]), tuple(noted["class_names"])
    except (KeyError, TypeError) as error:
        raise UserError(f"{path} is damaged: not the environments of a run ({error!r})") from error
    name = str(run.setting("dataset"))
    published = PUBLISHED.get(STAND_INS.get(name, name.removeprefix("tfds:")))
    if published is None:
        raise UserError(f"{run.folder} does not say what the images of {name} are like: an older version made it")
    return _SHAPES[published.format], published.class_names
