"""The rows of the paper's literature table: what it prints, on which net here, and what is wrong with it."""

from pathlib import Path
from typing import NamedTuple

from ssm.runs.folder import read_summary


class Printed(NamedTuple):
    """A row as printed: method, net, accuracy in %, weights; and here: model, masked weights, method, a remark."""

    name: str
    net: str
    accuracy: float
    weights: str
    model: str
    counted: int
    method: str
    remark: str = ""


ROWS = (
    Printed("Supermask", "Conv6", 76.5, "2.3 M", "conv6", 2_261_184, "zhou"),
    Printed(
        "edge-popup",
        "Conv8",
        86,
        "5.3 M",
        "conv8",
        5_275_840,
        "edge_popup",
        "at 10 % the paper's other table prints 70",
    ),
    Printed("IteRand", "Conv6 x2", 90, "4.6 M", "conv6", 9_036_160, "iterand", "half of its weights are printed"),
    Printed("MPT-1/32", "Conv8", 91.48, "5.3 M", "vgg_small", 4_656_512, "mpt", "this accuracy is VGG-Small's at 5 %"),
    Printed("MPT-1/32 + BN", "ResNet-18", 94.8, "11.2 M", "resnet18", 11_164_352, "mpt"),
    Printed("FORCE", "VGG-19", 90, "20 M", "vgg19", 20_024_000, "force", "its weights are trained, not masked"),
    Printed(
        "SET", "VGG-Small", 88, "8.7 M", "vgg_small_1024", 12_973_440, "set", "its program has no convolutional net"
    ),
    Printed(
        "RigL", "Wide ResNet 22-2", 94, "26.8 M", "wrn22_2", 1_076_912, "rigl", "the printed weights are those of 22-10"
    ),
    Printed("GraNet", "VGG-19", 93.1, "20 M", "vgg19", 20_024_000, "granet", "the best epoch on the test set"),
    Printed(
        "TWN",
        "VGG-Small",
        92.56,
        "5.1 M",
        "vgg_small_1024",
        12_973_440,
        "twn",
        "another count; zeros count as remaining",
    ),
    Printed(
        "TTQ",
        "ResNet-20",
        91.13,
        "0.27 M",
        "resnet20",
        248_624,
        "ttq",
        "its program's has pre-activation; zeros count as remaining",
    ),
    Printed(
        "SCA", "VGG-Small", 93.41, "4.9 M", "vgg_small_1024", 12_973_440, "sca", "no program; zeros count as remaining"
    ),
    Printed(
        "LR-Net",
        "VGG-Small",
        93.26,
        "5.1 M",
        "vgg_small_1024",
        12_973_440,
        "lr_net",
        "another count; best of drawn nets",
    ),
    Printed(
        "BinaryConnect", "VGG-Small", 91.7, "4.6 M", "vgg_small_1024x2", 14_022_016, "binary_connect", "another count"
    ),
    Printed("BNN", "VGG-Small", 88.6, "4.6 M", "vgg_small_1024x2", 14_022_016, "bnn", "another count"),
    Printed("BBG", "ResNet-20", 85.3, "0.27 M", "resnet20", 248_624, "", "neither program nor recipe could be read"),
)


def rows(published: Path) -> list[list[str]]:
    """Return the table's cells, its head first; accuracies here are of runs of the published recipes in a folder."""
    found = [["method", "net, as printed", "accuracy %", "weights", "weights here", "run by", "here %", "remark"]]
    for one in ROWS:
        run, here = "", "no recipe"
        if one.method:
            run, here = f"`--model={one.model} --method={one.method}`", _accuracy(one, published) or "not run"
        counted = f"{one.counted:,}"
        found.append([one.name, one.net, f"{one.accuracy:g}", one.weights, counted, run, here, one.remark])
    return found


def _accuracy(one: Printed, published: Path) -> str:
    for path in sorted(published.glob(f"{one.model}-{one.method}-*/summary.json")):
        if (summary := read_summary(path.parent))["preset"] == "published":
            return f"{100 * summary['test_accuracy']['mean']:.2f}"
    return ""
