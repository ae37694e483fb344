"""The tables of a report, as plain text without HTML."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Int8

from ssm.analysis import (
    ALL,
    Equality,
    Shares,
    Sizes,
    always_hidden,
    by_layer,
    compression,
    equality,
    flow,
    hidden_inputs,
    shares,
    sizes,
    total,
)
from ssm.errors import UserError
from ssm.export import Artifact
from ssm.files import plain
from ssm.models.description import BLOCKS
from ssm.models.graph import NETS, Architecture, architecture, graph, kernel_shapes, value_shapes
from ssm.runs.images import image_facts
from ssm.runs.reader import FinishedRun
from ssm.runs.statistics import interval
from ssm.runs.value_file import load_values, value_path
from ssm.viz.labels import INVERTING, Signs, ordered, percent

Masks = Mapping[str, Int8[np.ndarray, "seeds ..."]]


class Table(NamedTuple):
    """Rows of text below a head; the first cell of each is its name.  `notes` are printed below."""

    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    notes: Sequence[str] = ()


def result_table(summary: Mapping[str, Any]) -> Table:
    """Return a run's figures: means over its seeds, and their 5 % and 95 % quantiles."""
    rows = []
    for name, label in (("test_accuracy", "test accuracy %"), ("remaining_weights", "remaining weights %")):
        mean, q05, q95 = (100 * summary[name][key] for key in ("mean", "q05", "q95"))
        rows.append([label, _interval(mean, q05, q95)])
    seconds = summary["seconds_per_epoch_and_seed"]["median"]
    rows.append(["s / epoch / seed", "" if seconds is None else f"{seconds:.2f}"])
    return Table(["", "mean [5 %, 95 %]"], rows, ["Seconds are the median."])


def _interval(mean: float, q05: float | None, q95: float | None) -> str:
    return f"{mean:.2f}" if q05 is None or q95 is None or q05 == q95 else f"{mean:.2f} [{q05:.2f}, {q95:.2f}]"


class Looked(NamedTuple):
    """What the tables and figures of a run's masks show, by layer in the order of the net, and "all" last."""

    shares: dict[str, Shares]
    signed: dict[str, Equality]
    absolute: dict[str, Equality]


def look(masks: Masks) -> Looked:
    """Return shares and equality of masks by layer."""
    masks = {layer: masks[layer] for layer in ordered(masks)}
    return Looked(shares(masks), by_layer(equality, masks), by_layer(equality, masks, absolute=True))


def shares_table(masks: Masks, looked: Looked, signs: Signs = INVERTING) -> Table:
    """Return the shares of -1, 0 and 1 by layer; `signs` say what these are."""
    marks = ((signs.minus, "−1"), (signs.zero, "0"), (signs.plus, "+1"))  # noqa: RUF001
    rows = []
    for layer, found in looked.shares.items():
        count = sum(mask[0].size for mask in masks.values()) if layer == ALL else masks[layer][0].size
        shape = "" if layer == ALL else " × ".join(map(str, masks[layer].shape[1:]))  # noqa: RUF001
        values = [f"{100 * np.mean(value):.2f}" for value, (word, _) in zip(found, marks, strict=True) if word]
        remaining = interval(100 * found.remaining)
        rows.append([layer, shape, f"{count:,}", *values, _interval(remaining.mean, remaining.q05, remaining.q95)])
    named = [f"{word}, {mark} (%)" for word, mark in marks if word]
    head = ["layer", "shape", "weights", *named, "remaining (%)"]
    return Table(head, rows, ["Means over the seeds; remaining weights with their 5 % and 95 % quantiles."])


def agreement_table(masks: Masks, looked: Looked) -> Table:
    """Return the equality of the seeds' masks, beside the expectation by chance, and what is hidden in all of them."""
    rows = []
    for layer, signed in looked.signed.items():
        absolute = looked.absolute[layer]
        pairs = ((signed.same, signed.chance), (absolute.same, absolute.chance))
        pairs += ((signed.pairwise, signed.pairwise_chance), (absolute.pairwise, absolute.pairwise_chance))
        cells = [f"{100 * value:.2f} ({100 * chance:.2f})" for value, chance in pairs]
        hidden, inputs = "", ""
        if layer != ALL:
            hidden = f"{100 * always_hidden(masks[layer]):.2f}"
            inputs = f"{hidden_inputs(masks[layer])} of {masks[layer].shape[-2]}"
        rows.append([layer, *cells, hidden, inputs])
    head = [
        "layer",
        "equal in all masks (%)",
        "absolute masks (%)",
        "equal in two masks (%)",
        "absolute masks (%)",
        "always hidden (%)",
        "inputs always hidden",
    ]
    notes = [
        "In brackets: the expectation for independent masks with each seed's own shares of −1, 0 and +1.",  # noqa: RUF001
        "Equal in two masks: the mean over all pairs of seeds.  Absolute masks distinguish only remaining from hidden.",
    ]
    return Table(head, rows, notes)


def dead_table(run: FinishedRun, masks: Masks) -> Table | None:
    """Return the inputs and units without a path from the images to the logits, means over the seeds.

    None where the net is one of the user's own, or has batch normalisation that `ssm.models.graph` does not know, or
    sign activations, by which a dead unit puts out 1, or the layers are not those that the configuration names.
    """
    try:
        inputs, class_names = image_facts(run)
    except UserError:  # an older run on the user's own data set
        return None
    model = run.setting("model")
    known_norm = run.setting("batch_norm") == "none" or model in BLOCKS
    if model not in NETS or not known_norm or run.setting("activation") == "sign":
        return None
    net = architecture(run.setting, inputs, len(class_names))
    if set(masks) != set(kernel_shapes(graph(net), inputs)):
        return None
    count = len(next(iter(masks.values())))
    flows = []
    for place, seed in enumerate(run.mask_seeds):
        own = {layer: mask[place] for layer, mask in masks.items()}
        flows.append(flow(own, net, offsets=_offsets(run, seed, net)))
    of_inputs = math.prod(inputs) if graph(net)[1].op == "flatten" else inputs[-1]
    rows = [["inputs", f"{np.mean([one.dead_inputs for one in flows]):.1f}", f"{of_inputs}", ""]]
    for layer in ordered(masks):
        dead = np.mean([one.dead_units[layer] for one in flows])
        cut = sum(layer in one.pathless for one in flows)
        rows.append([layer, f"{dead:.1f}", f"{masks[layer].shape[-1]}", f"{cut} of {count}" if cut else ""])
    head = ["layer", "dead inputs or units", "of", "seeds in which the layer has no path"]
    return Table(head, rows, ["Dead: no path of weights from the images, or none to a logit; means over the seeds."])


def _offsets(run: FinishedRun, seed: int, net: Architecture) -> dict[str, np.ndarray]:
    """Return which channels of a seed's batch normalisations have an offset, by name."""
    if not value_shapes(net):
        return {}
    norms = Artifact(layers={}, values=load_values(value_path(run.folder, seed)), architecture=net).norms()
    return {name: np.asarray(norm.offset) != 0 for name, norm in norms.items()}


def size_table(masks: Masks, *, artifact: int | None = None, own: bool = False) -> Table:
    """Return the bytes by layer and of all layers, means over the seeds, and of an exported file, if given.

    artifact: bytes of the run's exported net, of one seed, with all that inference needs.  own: whether weights have
    values of their own, which two bits and entropy do not count.
    """
    rows = []
    totals = []
    for layer in ordered(masks):
        each = [sizes(mask) for mask in masks[layer]]
        totals.append(_mean(each))
        rows.append([layer, *map(_bytes, totals[-1])])
    whole = total(totals)
    rows.append([ALL, *map(_bytes, whole)])
    rows.append(["share of dense", *(percent(value / whole.dense) for value in whole)])
    count = len(next(iter(masks.values())))
    saved = [compression({layer: mask[seed] for layer, mask in masks.items()}) for seed in range(count)]
    if artifact is not None:
        rows.append(["exported file, one seed", f"{artifact:,}", percent(artifact / whole.dense), "", ""])
    head = ["layer", "dense float32 (bytes)", "csr (bytes)", "2 bits a weight (bytes)", "order-0 entropy (bytes)"]
    notes = [
        f"Means over the seeds.  csr saves {percent(float(np.mean(saved)))} of dense: the paper's compression rate.",
        "Order-0 entropy: what a code of single weights by each layer's shares takes; the file leaves dead units out.",
    ]
    if own:
        notes.append("Two bits and entropy are of the mask alone: each weight that is kept has 4 bytes more.")
    return Table(head, rows, notes)


def _mean(each: Sequence[Sizes]) -> Sizes:
    return Sizes(*(float(np.mean(field)) for field in zip(*each, strict=True)))  # type: ignore[arg-type]


def _bytes(value: float) -> str:
    return f"{round(value):,}"


def seeds_table(summary: Mapping[str, Any]) -> Table:
    """Return the final figures of each seed, in three columns if there are many."""
    accuracy, remaining = (summary[name]["values"] for name in ("test_accuracy", "remaining_weights"))
    cells = [
        [seed, f"{100 * accuracy[seed]:.2f}", f"{100 * remaining[seed]:.3f}"] for seed in sorted(accuracy, key=int)
    ]
    columns = 3 if len(cells) > 12 else 1
    length = -(-len(cells) // columns)
    cells += [[""] * 3] * (length * columns - len(cells))
    rows = [[cell for column in range(columns) for cell in cells[row + length * column]] for row in range(length)]
    return Table(["seed", "accuracy (%)", "remaining (%)"] * columns, rows)


def settings_table(values: Mapping[str, Any], head: Sequence[str]) -> Table:
    """Return names and values unchanged."""
    return Table(head, [[name, _text(value)] for name, value in plain(values).items()])


def _text(value: Any) -> str:
    return "" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)
