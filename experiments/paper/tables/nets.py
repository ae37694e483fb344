"""The paper's nets: their layers, their weights, and the share of weights hidden before training."""

import math
from collections.abc import Mapping

from paper.tables import cells
from paper.tables.printed import Record
from paper.tables.table import Column, Table, plain
from ssm.initializers.scales import SCALES, fans
from ssm.models.graph import Architecture, graph, kernel_shapes
from ssm.recipes.presets import DATA_CLASSES, MODEL_DATA, recipe

Shapes = Mapping[str, tuple[int, ...]]
"""A net's kernels by layer: (in, out), or (height, width, in, out)."""

# What the paper counts, by its own name for it; the ResNet110 that it counts is the masked one.
_COUNTED: Mapping[str, Record] = {
    **{model: {"model": model} for model in ("fcn", "conv2", "conv4", "conv6", "conv8", "resnet20")},
    **{f"resnet20 x{width:g}": {"model": "resnet20", "width": width} for width in (1.5, 2.0, 2.5, 3.0)},
    "resnet56": {"model": "resnet56"},
    "resnet110": {"model": "resnet110"},
    "resnet110, dense": {"model": "resnet110", "method": "baseline"},
}
_IMAGES = {"mnist": (28, 28, 1), "cifar10": (32, 32, 3), "cifar100": (32, 32, 3)}


def layer_shapes(model: str, *, method: str = "signed", width: float = 1.0) -> Shapes:
    """Return the shapes of a net's kernels under the preset `paper`."""
    data = MODEL_DATA[model][0]
    values = recipe(model, method, "paper", data)
    options = {name: values[name] for name in ("projections", "batch_norm")}
    net = Architecture(model=model, inputs=_IMAGES[data], classes=DATA_CLASSES[data], width=width, **options)
    return kernel_shapes(graph(net), net.inputs)


def hidden_at_first(model: str) -> float | None:
    """Return the expected share of a signed net's weights that the preset `paper` hides before training.

    For a threshold tau and scores from U(-b, b) that is min(1, tau / b) of a layer; for a wanted density, the rest.
    None for other scores and thresholds.
    """
    values = recipe(model, "signed", "paper", MODEL_DATA[model][0])
    rule, _, number = values["threshold"].partition(":")
    if rule == "quantile":
        return 1 - float(number)
    if rule != "absolute" or values["score_distribution"] != "uniform":
        return None
    scale = SCALES[values["score_scale"]]()
    hidden = total = 0.0
    for shape in layer_shapes(model).values():
        bound = math.sqrt(3) * scale(*fans(shape))
        hidden += math.prod(shape) * min(1.0, float(number) / bound)
        total += math.prod(shape)
    return hidden / total


def architectures(paper: Record) -> Table:
    """Return our nets' layers and weights, beside the paper's."""
    records = [_architecture(name, options, paper) for name, options in _COUNTED.items()]
    return Table(
        name="architectures",
        title="Architectures: layers and weights of our nets beside the paper's (tab:nn_architectures)",
        columns=[
            plain("model", "model"),
            plain("conv layers", "conv"),
            plain("paper", "paper_conv"),
            plain("dense layers", "dense"),
            plain("paper", "paper_dense"),
            Column("weights", lambda record: cells.count(record["weights"])),
            Column("paper", lambda record: cells.count(record["paper_weights"])),
            Column("difference", lambda record: f"{record['difference']:+,}" if record["difference"] else "0"),
        ],
        records=records,
        notes=(
            "Weights without biases, which no net has, and without batch normalisation. The paper's counts of ResNets "
            "are those of its tables of results. It prints one count for ResNet110, the masked net's "
            "(two projection blocks a stage); the dense net that it was trained against has one (docs/ledger.md, "
            "row 16).",
        ),
    )


def _architecture(name: str, options: Record, paper: Record) -> Record:
    shapes = layer_shapes(**options)
    weights = sum(map(math.prod, shapes.values()))
    printed = paper["weights"][name.removesuffix(", dense")]
    said = paper["architectures"].get(name, {})
    return {
        "model": name,
        "conv": _convolutions(shapes) if said else None,
        "paper_conv": said.get("conv"),
        "dense": ", ".join(str(shape[-1]) for layer, shape in shapes.items() if layer.startswith("Dense")),
        "paper_dense": said.get("dense"),
        "weights": weights,
        "paper_weights": printed,
        "difference": weights - printed,
    }


def _convolutions(shapes: Shapes) -> str:
    """Return the filters of a Conv net, a pool after each pair, as many as halve the image to what the net flattens."""
    filters = [shape[-1] for shape in shapes.values() if len(shape) == 4]
    if not filters:
        return ""
    side = math.isqrt(shapes["Dense_0"][0] // filters[-1])
    pools = round(math.log2(_IMAGES["cifar10"][0] / side))
    size = len(filters) // pools
    parts = [filters[start : start + size] for start in range(0, len(filters), size)]
    return "; ".join(", ".join([*map(str, part), "pool"]) for part in parts)
