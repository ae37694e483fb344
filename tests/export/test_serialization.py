"""Artefacts as bytes and back, and that a header that lies is one message."""

import copy
import json
import os
import re
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from ssm.errors import UserError
from ssm.export import Artifact, Layer, load
from ssm.export.coding import encode
from ssm.export.container import MOST_HEADER, Parts, pack, pack_text, unpack
from ssm.export.loading import load_bytes
from ssm.export.serialization import to_bytes
from ssm.models.graph import Architecture, graph, kernel_shapes, value_shapes
from tests.support.artifacts import second_reader, tiny

RESNET = Architecture(model="resnet20", inputs=(4, 4, 3), classes=2, width=0.1, batch_norm="affine")
CONFIG = {"model": "fcn", "width": 0.01, "init": "he", "weight_distribution": "uniform", "nesterov": False}
HASHES = {"Dense_0": "0123456789abcdef", "Dense_2": "fedcba9876543210"}
RECIPE = {"config": CONFIG, "seed": 2**32 - 1, "hashes": HASHES}

words = st.text(st.characters(exclude_categories=("Cc", "Cs")), max_size=12)
finite = st.floats(width=32, allow_nan=False, allow_infinity=False)
scalars = st.none() | st.booleans() | st.integers(-(2**63) + 1, 2**63 - 1) | words | finite


def told(net: Artifact) -> tuple:
    """Return all that a file says of a net, in a form that compares by bits."""
    fields = [getattr(net, name) for name in ("architecture", "precision", "class_names", "about", "recipe")]
    layers = [
        (name, one.ternary.tolist(), one.ternary.shape, one.constant, None if one.own is None else one.own.tobytes())
        for name, one in net.layers.items()
    ]
    values = [(name, value.shape, value.tobytes()) for name, value in net.values.items()]
    return *fields, layers, values


def drawn() -> Artifact:
    """Return a net two of whose layers are redrawn from the seed."""
    layers = {
        name: layer if name == "Dense_1" else layer._replace(constant=None) for name, layer in TINY_LAYERS.items()
    }
    return tiny(layers=layers, recipe=RECIPE)


TINY_LAYERS = tiny().layers
OTHER_LAYERS = {name: layer._replace(ternary=np.ones_like(layer.ternary)) for name, layer in TINY_LAYERS.items()}


def mixed(**other) -> Artifact:
    """Return a net of two constants in one layer, and of each weight's own value in another."""
    layers = TINY_LAYERS | {
        "Dense_0": TINY_LAYERS["Dense_0"]._replace(constant=(0.5, 0.125)),
        "Dense_1": Layer(np.asarray([[0], [1], [1]], np.int8), None, np.asarray([-0.75, 3], np.float32)),
    }
    return tiny(layers=layers, **other)


@st.composite
def own_layers(draw, ternary):
    """Layers of each kind that needs no recipe."""
    constants = st.floats(0, 2.0**90, width=32)
    if draw(st.booleans()):
        return Layer(ternary, draw(constants | st.tuples(constants, constants)))
    values = arrays.arrays(np.float32, int(np.count_nonzero(ternary)), elements=finite.filter(bool))
    return Layer(np.abs(ternary), None, draw(values))


@st.composite
def own_nets(draw):
    """Nets of modules of the user's own: any shapes."""
    shapes = arrays.array_shapes(min_dims=1, max_dims=4, min_side=0, max_side=5)
    layers = {
        f"Layer_{number}": draw(own_layers(draw(arrays.arrays(np.int8, shape, elements=st.integers(-1, 1)))))
        for number, shape in enumerate(draw(st.lists(shapes, max_size=4)))
    }
    sizes = arrays.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4)
    values = {
        f"params/Value_{number}/bias": draw(arrays.arrays(np.float32, shape, elements=finite))
        for number, shape in enumerate(draw(st.lists(sizes, max_size=3)))
    }
    about = draw(st.dictionaries(words, scalars | st.lists(scalars, max_size=3), max_size=3))
    names = tuple(draw(st.lists(words, max_size=3)))
    return Artifact(layers=layers, values=values, architecture=None, class_names=names, about=about)


@given(own_nets())
def test_any_net_comes_again(net):
    found = load_bytes(to_bytes(net))
    assert told(found) == told(net)
    assert all(layer.ternary.dtype == np.int8 for layer in found.layers.values())


def test_nets_of_known_architectures_come_again(tmp_path):
    rng = np.random.default_rng(0)
    shapes = kernel_shapes(graph(RESNET), RESNET.inputs)
    resnet = Artifact(
        layers={name: Layer(rng.integers(-1, 2, shape, np.int8), 0.125) for name, shape in shapes.items()},
        values={name: rng.random(shape, np.float32) for name, shape in value_shapes(RESNET).items()},
        architecture=RESNET,
        precision="bfloat16",
    )
    for number, net in enumerate((tiny(), resnet, drawn(), tiny(class_names=()), mixed())):
        size = net.save(path := tmp_path / f"{number}.ssm")
        assert path.stat().st_size == size
        assert told(load(path)) == told(net)
        assert to_bytes(load(path)) == path.read_bytes()


def test_the_header_of_a_tiny_net():
    assert unpack(to_bytes(tiny())).header == {
        "architecture": {
            "model": "fcn", "inputs": [2, 2, 1], "classes": 2, "width": 0.01, "projections": 1, "batch_norm": "none",
            "stem_affine": False,
        },
        "precision": "float32",
        "preprocessing": "per_image_standardization",
        "class_names": ["no", "yes"],
        "about": {"seed": 7},
        "recipe": None,
        "layers": [["Dense_0", [4, 3], 1, 3, 0.5], ["Dense_1", [3, 1], 1, 1, 0.25], ["Dense_2", [1, 2], 1, 1, 1.0]],
        "values": [],
    }  # fmt: skip


def changed(net: Artifact, path: str, value) -> bytes:
    """Return a net's file with a right checksum whose header holds `value`, as JSON text, at a path."""
    parts = unpack(to_bytes(net))
    header = copy.deepcopy(parts.header)
    *parents, last = (int(part) if part.isdigit() else part for part in path.split("/"))
    at = header
    for part in parents:
        at = at[part]
    if value is None:
        del at[last]
    else:
        at[last] = "@hole@"
    text = json.dumps(header, ensure_ascii=False).replace('"@hole@"', value or "")
    return pack_text(text.encode(), parts.values.tobytes(), parts.words.tobytes(), version=parts.version)


BAD = [
    ("precision", '"float64"', "preprocessing and precision"),
    ("precision", "[]", "preprocessing and precision"),
    ("preprocessing", '"none"', "preprocessing and precision"),
    ("extra", "1", "a field is missing or unknown"),
    *((name, None, "a field is missing or") for name in ("architecture", "about", "recipe", "layers", "values")),
    *((name, value, f"{name}: ") for name in ("class_names", "layers", "values") for value in ("null", "{}", '"a"')),
    *((name, value, f"{name}: ") for name in ("about", "architecture") for value in ("[]", '"a"', "1", "true")),
    ("class_names", '["no",1]', "class_names"),
    ("class_names", '["no"]', "1 class names for 2 classes"),
    ("class_names", '["a","b","c"]', "3 class names for 2 classes"),
    ("class_names/0", '"\\ud800"', "cannot be printed"),
    ("about/test_accuracy", '"high"', "test_accuracy"),
    ("about/remaining_weights", "1.5", "remaining_weights"),
    ("layers/0", '"abcde"', "layers"),
    ("layers/0", "[1,2,3,4]", "layers"),
    ("layers/0", '{"a":1,"b":1,"c":1,"d":1,"e":1}', "layers"),
    ("layers/0", None, "do not match its architecture: ['Dense_0']"),
    *(("layers/0/0", value, "the name of a layer") for value in ("1", "null", '""', '"/"', '"a//b"', '"Dense_1"')),
    ("layers/0/0", '"Other"', "do not match its architecture: ['Dense_0', 'Other']"),
    *(
        ("layers/0/1", value, "the shape of a layer")
        for value in (
            "null", "4", '"43"', "[4.0,3]", "[true,3]", '["4",3]', "[]", "[-4,-3]", "[4,3,1,1,1,1,1,1,1]",
            "[2147483648]", "[2147483647,0,2147483647]", "[[4],[3]]", "[4,null]",
        )
    ),
    ("layers/0/1", "[3,4]", "do not match its architecture: ['Dense_0']"),
    ("layers/0/1", "[12]", "do not match its architecture: ['Dense_0']"),
    *(("layers/0/2", value, "the elements of -1") for value in ("null", "-1", "13", "1.0", "true", '"1"', "[]")),
    *(("layers/0/3", value, "the elements of +1") for value in ("null", "-1", "12", "1e0", "{}")),
    ("layers/0/2", "2", "part 0 of its stream has other elements"),
    *(
        ("layers/0/4", value, "the constant of a layer")
        for value in ("true", '"1"', "[]", "1e30", "-1e30", "0.1", "1e-50", "16777217", "9223372036854775807")
    ),
    ("layers/0/4", "1e999", "too large a number"),
    ("layers/0/4", "null", "a recipe of frozen weights is missing, or not needed"),
    ("values", '[["a/b"]]', "values"),
    ("values", '[["a/b",[0]]]', "its values do not match its architecture: ['a/b']"),
    ("values", '[["a",[0]]]', "a value without a collection: 'a'"),
    ("values", '[["a/b",[0]],["a/b",[0]]]', "the name of a value, or it appears twice"),
    ("values", '[["a/b",[0]],["a/b/c",[0]]]', "two parameters in one place: 'a/b'"),
    ("values", '[["params/Dense_0/kernel",[0]]]', "two parameters in one place: 'params/Dense_0/kernel'"),
    ("values", '[["params/Dense_0",[0]]]', "two parameters in one place: 'params/Dense_0'"),
    ("values", '[["' + "a/" * 40 + 'b",[0]]]', "the name of a value"),
    ("recipe", "{}", "a recipe of frozen weights is missing, or not needed"),
    ("architecture/extra", "1", "architecture"),
    ("architecture/width", None, "architecture"),
    *((f"architecture/{name}", "[]", f"architecture: {name}") for name in ("model", "batch_norm", "classes")),
    ("architecture/inputs", '"abc"', "architecture: inputs"),
    ("architecture/inputs", "[2,2]", "no net has inputs (2, 2)"),
    ("architecture/inputs", "[0,2,1]", "no net has inputs"),
    ("architecture/inputs", "[4096,4097,1]", "too small or too large"),
    ("architecture/model", '"gpt"', "model 'gpt' is not known"),
    ("architecture/model", '"' + "x" * 5000 + '"', "architecture: model 'xxx"),
    ("architecture/model", '"conv4"', "too small or too large"),
    ("architecture/model", '"resnet20"', "no batch normalisation 'none'"),
    ("architecture/classes", "true", "architecture: classes"),
    ("architecture/classes", "3", "do not match its architecture: ['Dense_2']"),
    *(("architecture/width", value, "width") for value in ("true", "0", "-1", "1001", '"1"', "null")),
    ("architecture/width", "1" + "0" * 400, "too large a number"),
    ("architecture/stem_affine", "0", "stem_affine must be true or false"),
    ("architecture/projections", "2", "leave projections at 1"),
]  # fmt: skip


@pytest.mark.parametrize(("path", "value", "message"), BAD, ids=[f"{p}={str(v)[:20]}" for p, v, _ in BAD])
def test_a_header_that_lies_is_one_message(path, value, message):
    with pytest.raises(UserError, match=re.escape(message)) as caught:
        load_bytes(changed(tiny(), path, value))
    assert len(str(caught.value)) < 250


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("recipe", "null", "a recipe of frozen weights"),
        *(("recipe", value, "recipe") for value in ("[]", '"a"', "1", '{"seed":1}')),
        *(("recipe/seed", value, "recipe: seed") for value in ("-1", "4294967296", "1.0", "true", "null", '"1"')),
        *(("recipe/hashes", value, "recipe: hashes") for value in ("[]", "{}", '{"Dense_0":"0123456789abcdef"}')),
        ("recipe/hashes/Dense_1", '"0123456789abcdef"', "recipe: hashes"),
        *(("recipe/hashes/Dense_0", value, "recipe: hashes") for value in ("1", '"0123456789ABCDEF"', '"0"', "null")),
        *(
            ("recipe/config", value, "recipe: config")
            for value in ("[]", "{}", '{"model":1}', '{"model":"fcn","a":[]}')
        ),
        ("recipe/config/width", "1000", "has another architecture"),
        ("recipe/config/model", '"resnet110"', "has another architecture"),
        ("recipe/config/model", '"gpt"', "is not known"),
        ("recipe/config/width", '"1"', "width"),
    ],
)
def test_a_recipe_that_lies_is_one_message(path, value, message):
    with pytest.raises(UserError, match=re.escape(message)):
        load_bytes(changed(drawn(), path, value))


def test_the_layers_of_version_2():
    parts = unpack(to_bytes(mixed(values={})))
    assert parts.version == 2 and unpack(to_bytes(tiny())).version == unpack(to_bytes(drawn())).version == 1
    assert parts.header["layers"][:2] == [["Dense_0", [4, 3], 1, 3, [0.5, 0.125]], ["Dense_1", [3, 1], 0, 2, "own"]]
    assert parts.values.tolist() == [-0.75, 3]
    kernels = load_bytes(to_bytes(mixed())).to_dense()
    assert kernels["Dense_0"].tolist() == [[0.125, 0, -0.5], [0, 0, 0], [0, 0.125, 0], [0, 0, 0.125]]
    assert kernels["Dense_1"].tolist() == [[0], [-0.75], [3]] and kernels["Dense_2"].tolist() == [[1, -1]]
    assert all(kernel.dtype == np.float32 for kernel in kernels.values())
    assert (mixed().own_values, tiny().own_values) == (2, 0)


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        *(
            ("layers/0/4", value, "the constant of a layer")
            for value in ("[]", "[0.5]", "[0.5,0.5,0.5]", "[0.5,null]", '[0.5,"own"]', "[0.5,[0.5]]", "[0.1,0.5]")
        ),
        ("layers/1/4", '"owner"', "the constant of a layer"),
        ("layers/1/2", "1", "the elements of -1 in a layer of its own values"),
        ("layers/1/3", "1", "it holds 2 values, and its header names 1"),
        ("layers/2/4", '"own"', "the elements of -1 in a layer of its own values"),
        ("layers/1/4", "0.5", "it holds 2 values, and its header names 0"),
    ],
)
def test_a_header_of_version_2_that_lies_is_one_message(path, value, message):
    with pytest.raises(UserError, match=re.escape(message)):
        load_bytes(changed(mixed(), path, value))


def test_a_file_has_the_lowest_version_that_it_needs():
    for net, version in ((tiny(), 2), (mixed(), 1)):
        with pytest.raises(UserError, match=f"one of version {3 - version} in a file of version {version}"):
            load_bytes(pack(unpack(to_bytes(net))._replace(version=version)))


def dying(**other) -> Artifact:
    """Return a net of which half of the units are dead: its layers are blocks."""
    draw = np.random.default_rng(0)
    first, last = (draw.choice(np.asarray([-1, 0, 1], np.int8), shape) for shape in ((40, 30), (30, 20)))
    first[:, ::2], last[::2] = 0, 0
    own = draw.random(np.count_nonzero(last)).astype(np.float32) + 1
    layers = {"A": Layer(first, 0.5), "B": Layer(np.abs(last), None, own), "C": Layer(last[1::2][:2], 1.0)}
    return Artifact(layers=layers, values={}, architecture=None, **other)


def test_the_layers_of_version_3():
    parts = unpack(to_bytes(dying()))
    assert parts.version == 3
    assert [len(entry) for entry in parts.header["layers"]] == [7, 7, 5]  # the last has no dead unit
    assert parts.header["layers"][0][4:] == [0.5, 40, 15] and parts.header["layers"][1][4:] == ["own", 15, 20]
    assert told(load_bytes(to_bytes(dying()))) == told(dying())
    _, values, layers = second_reader().read(to_bytes(dying()))
    assert layers == {name: layer.ternary.reshape(-1).tolist() for name, layer in dying().layers.items()}
    assert len(values) == dying().own_values


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        *(("layers/0/5", value, "the live rows of a layer") for value in ("41", "-1", "1.0", "true", "null")),
        *(("layers/0/6", value, "the live columns of a layer") for value in ("31", '"15"')),
        ("layers/0/5", "3", "the live rows and columns of a layer"),
        ("layers/0/5", "30", "part 0 of its stream has other elements"),
        ("layers/0/6", "14", "part 1 of its stream has other elements"),
        ("layers/0/6", None, "its header is damaged: layers"),
        ("layers/0", '["A",[2147483647,0],0,0,0.5,0,0]', "the live rows and columns of a layer"),
        ("layers/2", None, "the stream is longer than its layers"),
    ],
)
def test_a_header_of_version_3_that_lies_is_one_message(path, value, message):
    with pytest.raises(UserError, match=re.escape(message)):
        load_bytes(changed(dying(), path, value))


def uneven() -> Artifact:
    """Return a net whose first layer has two classes of rows and columns, and a row and a column of zeros."""
    draw = np.random.default_rng(0)
    first = draw.choice(np.asarray([-1, 1], np.int8), (120, 60)) * (draw.random((120, 60)) < 0.04)
    first[:40, :20] = draw.choice((-1, 1), (40, 20))
    first[50], first[:, 30] = 0, 0
    return Artifact(layers={"Z": Layer(first.astype(np.int8), 0.5), **dying().layers}, values={}, architecture=None)


def test_the_layers_of_version_4():
    parts = unpack(to_bytes(uneven()))
    entry = parts.header["layers"][0]
    assert parts.version == 4 and [len(one) for one in parts.header["layers"]] == [8, 7, 7, 5]
    assert entry[5:7] == [[40, 72], [20, 38]] and [sum(one) for one in zip(*entry[7], strict=True)] == entry[2:4]
    assert told(load_bytes(to_bytes(uneven()))) == told(uneven())
    _, _, layers = second_reader().read(to_bytes(uneven()))
    assert layers == {name: layer.ternary.reshape(-1).tolist() for name, layer in uneven().layers.items()}


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        *(("layers/0/5", value, "the live rows of a layer") for value in ("[120,1]", "[-1,79]", "[40]", "40", "null")),
        *(("layers/0/6/1", value, "the live columns of a layer") for value in ("41", '"39"', "true")),
        *(
            ("layers/0/7", value, "the parts of a layer")
            for value in ("[]", "null", "[[1,2],[3,4],[5,6]]", "[1,2,3,4]")
        ),
        ("layers/0/7/0/0", "801", "the parts of a layer"),
        ("layers/0/7/0/0", "1", "the parts of a layer"),
        ("layers/0/5", "[39,80]", "the parts of a layer"),
        ("layers/0/7", None, "the live rows of a layer"),
    ],
)
def test_a_header_of_version_4_that_lies_is_one_message(path, value, message):
    with pytest.raises(UserError, match=re.escape(message)):
        load_bytes(changed(uneven(), path, value))


def test_a_value_of_its_own_is_not_0():
    parts = unpack(to_bytes(mixed()))
    with pytest.raises(UserError, match="a value of its own in a layer is 0"):
        load_bytes(pack(parts._replace(values=np.asarray([1, -0.0], np.float32))))


def test_a_configuration_that_no_net_has_is_said_when_it_is_needed():
    with pytest.raises(UserError, match="its recipe of frozen weights is damaged"):
        load_bytes(changed(drawn(), "recipe/config/init", '"he"')).to_dense()  # most of its fields lack


def test_the_recipe_of_a_net_that_the_file_does_not_know_is_refused():
    with pytest.raises(UserError, match="recipe"):
        load_bytes(changed(drawn(), "architecture", "null"))


def test_values_must_be_as_many_as_the_header_names():
    net = Artifact(layers={}, values={"params/A/bias": np.ones(3, np.float32)}, architecture=None)
    for shape in ("[2]", "[4]", "[]", "[0]", "[2147483647,2]"):
        with pytest.raises(UserError, match="it holds 3 values, and its header names"):
            load_bytes(changed(net, "values/0/1", shape))
    assert load_bytes(changed(net, "values/0/1", "[1,3,1]")).values["params/A/bias"].shape == (1, 3, 1)


def test_variances_below_0_are_refused():
    values = {name: np.zeros(shape, np.float32) for name, shape in value_shapes(RESNET).items()}
    shapes = kernel_shapes(graph(RESNET), RESNET.inputs)
    layers = {name: Layer(np.zeros(shape, np.int8), 1.0) for name, shape in shapes.items()}
    values["batch_stats/BatchNorm_0/var"] = values["batch_stats/BatchNorm_0/var"] - np.float32(1e-6)
    with pytest.raises(UserError, match="variances below 0"):
        load_bytes(to_bytes(Artifact(layers=layers, values=values, architecture=RESNET)))


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"class_names": ("one",)}, "1 class names for 2 classes"),
        ({"class_names": ("\ud800", "b")}, "cannot be printed"),
        ({"layers": {"Dense_0": TINY_LAYERS["Dense_0"]}}, "do not match its architecture"),
        ({"layers": {**TINY_LAYERS, "Dense_0": Layer(TINY_LAYERS["Dense_0"].ternary, 0.1)}}, "must be a float32"),
        ({"layers": {**TINY_LAYERS, "Dense_0": Layer(np.full((4, 3), 2, np.int8), 0.5)}}, "other than -1, 0 and 1"),
        ({"layers": {**TINY_LAYERS, "Dense_0": Layer(TINY_LAYERS["Dense_0"].ternary, None)}}, "a recipe"),
        *(
            ({"layers": {**TINY_LAYERS, "Dense_2": Layer(np.asarray([[1, 1]], np.int8), constant, own)}}, why)
            for constant, own, why in (
                (None, np.float32([1]), "the 2 values of Dense_2 must be float32"),
                (None, np.float32([1, 0]), "none of them 0"),
                (None, np.float32([[1, 2]]), "the 2 values"),
                (None, np.asarray([1.0, 2]), "must be float32"),
                (0.5, np.float32([1, 2]), "and without a constant"),
                (None, np.float32([1, np.inf]), "not finite"),
                ((0.5, 0.1), None, "must be a float32"),
                ((0.5, 0.5, 0.5), None, "or its two"),
            )
        ),
        (
            {"layers": {**TINY_LAYERS, "Dense_2": Layer(np.asarray([[1, -1]], np.int8), None, np.float32([1, 2]))}},
            "elements of -1",
        ),
        ({"architecture": None, "values": {"params/A/b": np.asarray([np.nan], np.float32)}}, "not finite"),
        ({"architecture": None, "values": {"params/A/b": np.asarray([1.0])}}, "float32"),
        ({"about": {"test_accuracy": "high"}}, "test_accuracy"),
        ({"about": {"x": object()}}, "no JSON form"),
        ({"precision": "float16"}, "precision"),
        ({"about": {"long": "x" * MOST_HEADER}}, "the header has"),
    ],
)
def test_what_could_not_be_read_is_not_saved(other, message, tmp_path):
    with pytest.raises(UserError, match=f"^this net cannot be saved: .*{message}"):
        tiny(**other).save(tmp_path / "net.ssm")
    assert not list(tmp_path.iterdir())


def hollow(*shapes: list[int], words=()) -> bytes:
    """Return a file of layers of zeros, of any size."""
    header = unpack(to_bytes(tiny())).header
    layers = [[f"L{number}", shape, 0, 0, 1.0] for number, shape in enumerate(shapes)]
    header |= {"architecture": None, "class_names": [], "layers": layers}
    return pack(Parts(header, np.zeros(0, np.float32), np.asarray(words, np.uint32)))


def test_too_large_a_net_is_refused_before_its_memory_is_taken(tmp_path):
    for shapes, weights in (([[2**20, 2**20]], 2**40), ([[2**28, 1], [1]], 2**28 + 1)):
        with pytest.raises(UserError, match=f"it has {weights:,} weights; at most {2**28:,} are read"):
            load_bytes(hollow(*shapes))
    path = tmp_path / "net.ssm"
    path.write_bytes(to_bytes(tiny()))
    assert load(path, most_weights=17).weights == 17
    with pytest.raises(UserError, match=r"net\.ssm: it has 17 weights; at most 16 are read"):
        load(path, most_weights=16)


def test_memory_is_a_byte_a_weight_and_little_else():
    size = 12 << 20
    data = hollow([1 << 10, size >> 10], words=encode([np.zeros(size, np.int8)]))
    assert len(data) < 500
    long = pack_text(b'{"a":[' + b"[]," * (MOST_HEADER >> 4) + b"[]]}", b"", b"")
    tracemalloc.start()
    try:
        assert load_bytes(data).weights == size
        assert tracemalloc.get_traced_memory()[1] < size + (8 << 20)
        tracemalloc.reset_peak()
        with pytest.raises(UserError, match="a field is missing"):
            load_bytes(long)
        assert tracemalloc.get_traced_memory()[1] < 8 << 20  # of a quarter of the longest header
    finally:
        tracemalloc.stop()


def test_an_oversized_or_endless_file_is_not_read(tmp_path):
    path = tmp_path / "net.ssm"
    path.write_bytes(b"x" * 100)
    os.truncate(path, 1 << 40)  # no room is taken on the disk
    with pytest.raises(UserError, match=r"net\.ssm: not an artefact"):
        load(path)
    path.write_bytes(to_bytes(tiny()))
    os.truncate(path, 1 << 40)
    with pytest.raises(UserError, match=r"net\.ssm: damaged: 1,099,511,627,776 bytes, and its head says otherwise"):
        load(path)
    os.mkfifo(tmp_path / "pipe")
    for other in (tmp_path / "pipe", tmp_path, "/dev/zero"):
        with pytest.raises(UserError, match=r"cannot be read: it is no file$"):
            load(other)
    with pytest.raises(UserError, match=r"no\.ssm does not exist"):
        load(tmp_path / "no.ssm")


def test_parts_of_two_files_do_not_make_one():
    one, other = unpack(to_bytes(tiny())), unpack(to_bytes(tiny(layers=OTHER_LAYERS)))
    with pytest.raises(UserError, match="part 0 of its stream has other elements"):
        load_bytes(pack(one._replace(words=other.words)))
    with pytest.raises(UserError, match="it holds 1 values, and its header names 0"):
        load_bytes(pack(one._replace(values=np.ones(1, np.float32))))
