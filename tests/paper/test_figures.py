import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from matplotlib import rcParams
from matplotlib.colors import to_rgb
from PIL import Image

from paper.figures.gallery import FIGURES, draw_all
from paper.figures.selection import Missing, Shelf
from ssm.errors import LeftOut, UserError
from ssm.runs.folder import open_run
from ssm.runs.reader import find_finished, read_finished
from ssm.viz import labels, style
from ssm.viz.bars import Distribution, draw_distributions, names
from ssm.viz.maps import sample_signs
from ssm.viz.style import LOOKS, MINUS, PLUS, ZERO, to_png, to_svg
from ssm.viz.tiles import GAP, kernel_maps, mask_png, unit_maps
from tests.support.made_runs import LAYERS, make_run
from tests.support.programs import ROOT, without_settings

# The labels of the paper's figures, in its order.
PAPER = [
    "fcn_mask_l0",
    "conv_mask_dist",
    "conv_mask_eq",
    "bin_mask_comparison",
    "all_acc",
    "fcn_sisu_one_ratio",
    "all_one_ratio",
    "all_mask_dist",
    "all_mask_eq",
    "conv_mask_comparison",
    "rn_acc_oratio",
    "rn_mask_dist",
    "fcn_acc_compare_wdist",
    "cnn_acc_compare_wdist",
    "cnn_oratio_compare_wdist",
    "fcn_acc_compare_minit",
    "cnn_acc_compare_minit",
    "cnn_oratio_compare_minit",
    "cnn_sci_all_metrics",
    "all_schizo12_acc",
    "fcn_schizo_oneratio",
    "all_schizo_mask_dist",
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Runs that hold something for every figure."""
    root = tmp_path_factory.mktemp("runs")
    for model in ("fcn", "conv2"):
        for init in ("elus", "he"):
            make_run(root, model=model, init=init)
        make_run(root, model=model, method="baseline", init="elu")
        make_run(root, model=model, init="he", weight_distribution="uniform")
        make_run(root, model=model, score_scale="elus")
        make_run(root, model=model, preset="sinn1")
        make_run(root, model=model, preset="sinn2")
    make_run(root, method="binary", seeds=3)
    make_run(root, model="resnet20", layers=LAYERS["resnet20"])
    make_run(root, model="resnet20", layers=LAYERS["resnet20"], width=2.0)
    return root


@pytest.fixture(scope="module")
def shelf(folder):
    return Shelf(find_finished([folder]))


@pytest.fixture(autouse=True)
def no_download(monkeypatch):
    monkeypatch.setenv("SSM_OFFLINE", "1")
    for name in ("SSM_DATA_DIR", "TFDS_DATA_DIR"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize("name", FIGURES)
def test_every_figure_is_drawn_and_its_title_says_what_it_is_from(shelf, name):
    drawn = FIGURES[name](shelf)
    title = drawn.figure.get_suptitle()
    # resnet20's and the convolutional nets' own data set, and the FCN's.
    assert ("CIFAR-10" in title) == any(run.setting("dataset") == "cifar10" for run in drawn.runs)
    assert ("MNIST" in title) == any(run.setting("dataset") == "mnist" for run in drawn.runs)
    assert re.search(r"\b\d+( to \d+)? seeds?, 3 epochs", title)
    assert drawn.runs


def test_the_figures_are_the_papers():
    ours = "fcn_mask_comparison"  # shows for the FCN what another does for CNNs
    assert [name for name in FIGURES if name != ours] == PAPER


@pytest.mark.parametrize("name", ["fcn_acc_compare_minit", "rn_mask_dist", "bin_mask_comparison", "fcn_mask_l0"])
def test_nothing_covers_the_title_or_leaves_the_page(shelf, name):
    figure = FIGURES[name](shelf).figure
    figure.draw_without_rendering()
    title = next(text for text in figure.texts if text.get_text() == figure.get_suptitle()).get_window_extent()
    boxes = [box for axes in figure.axes if (box := axes.get_tightbbox())]
    assert all(box.y1 <= title.y0 for box in boxes)
    assert all(box.x0 >= 0 and box.x1 <= 1000 and box.y0 >= 0 for box in boxes)
    assert title.x1 <= 1000


@pytest.mark.parametrize(
    ("file", "name"), [("history.csv", "fcn_sisu_one_ratio"), ("masks/seed-0000.npz", "all_mask_dist")]
)
def test_a_damaged_run_is_left_out_of_a_figure_and_named(tmp_path, file, name):
    good, half = (make_run(tmp_path / "runs", init=init) for init in ("elus", "he"))
    (half / file).write_bytes((half / file).read_bytes()[:200])
    shelf = Shelf(find_finished([tmp_path / "runs"]))
    with pytest.warns(LeftOut, match=f"{half.name} is left out: .*{Path(file).name}"):
        told = list(draw_all(shelf, tmp_path / "figures", names=[name]))
    assert len(told) == 2 and all(good.name in one.text and half.name not in one.text for one in told)


def test_files_are_written_and_are_the_same_each_time(shelf, tmp_path, monkeypatch):
    told = list(draw_all(shelf, tmp_path, names=["rn_mask_dist"]))
    assert [one.path for one in told] == [tmp_path / "rn_mask_dist.png", tmp_path / "rn_mask_dist.svg"]
    assert all(str(one.path) in one.text and "resnet20-signed-elus-" in one.text for one in told)
    assert "without x1.5, x2.5, x3" in told[0].text
    with Image.open(tmp_path / "rn_mask_dist.png") as image:
        assert image.width == 1000
        assert "resnet20-signed-elus-" in image.info["Description"]
    first = [one.path.read_bytes() for one in told if one.path]
    assert b"<dc:date>" not in first[1]
    monkeypatch.setitem(rcParams, "font.size", 30)  # the user's own settings
    again = [one.path.read_bytes() for one in draw_all(shelf, tmp_path, names=["rn_mask_dist"]) if one.path]
    assert again == first
    assert rcParams["font.size"] == 30


def test_the_program_draws_what_it_can_and_says_what_is_missing(tmp_path):
    make_run(tmp_path / "runs", seeds=1)
    command = [sys.executable, str(ROOT / "experiments" / "figures.py"), "runs", "--out=figs"]
    command += ["--only", "fcn_mask_l0", "conv_mask_eq", "bin_mask_comparison", "fcn_schizo_oneratio"]
    outside = {
        "SSM_OFFLINE": "1",
        "SSM_CACHE_DIR": str(tmp_path),
        "HOME": str(tmp_path),
        "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'experiments'}",
    }
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=tmp_path, env=without_settings() | outside, timeout=120
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].startswith("figs/fcn_mask_l0.png: from fcn-signed-elus-")
    assert "without the run's own images" in lines[0] and "5,000 real MNIST digits" in lines[0]
    assert lines[2:] == [
        "conv_mask_eq: not drawn: needs a signed Supermask run of Conv2, Conv4, Conv6 or Conv8, elus, with masks of at "
        "least 2 seeds",
        "bin_mask_comparison: not drawn: needs two FCN runs, elus, with masks, that differ in nothing but "
        "--method=binary and --method=signed",
        "fcn_schizo_oneratio: not drawn: needs a run of FCN with --preset=sinn1 or --preset=sinn2",
    ]
    assert sorted(path.name for path in (tmp_path / "figs").iterdir()) == ["fcn_mask_l0.png", "fcn_mask_l0.svg"]


def test_what_draws_needs_no_jax_and_leaves_pyplot_alone():
    code = "import paper.figures.gallery, ssm.viz.page, sys; print({'jax', 'matplotlib.pyplot'} & set(sys.modules))"
    own = os.environ | {"PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'experiments'}"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=own, timeout=120)
    assert done.stdout == "set()\n", done.stderr


def test_the_best_run_of_a_kind_is_chosen(tmp_path):
    make_run(tmp_path, seeds=3, dataset="mnist5k")
    make_run(tmp_path, seeds=2, epochs=2)
    many = make_run(tmp_path, seeds=3, epochs=2, preset="default")
    make_run(tmp_path, seeds=5, width=2.0)
    make_run(tmp_path, seeds=5, preset="sinn1")
    shelf = Shelf(find_finished([tmp_path]))
    best = shelf.best(model="fcn")
    assert best is not None
    assert best.folder == many  # the model's own data set first, then the most seeds
    assert shelf.best(model="fcn", masks=4) is None
    assert shelf.best(model="fcn", init="he") is None
    with pytest.raises(Missing, match="differ in nothing but"):
        FIGURES["fcn_acc_compare_minit"](shelf)


def test_a_run_of_ssm_train_has_no_settings_of_a_preset_and_is_passed_over(tmp_path):
    config = {name: "own" for name in ("method", "init", "preset")} | {"model": "Net", "dataset": "arrays", "epochs": 1}
    own = open_run(tmp_path / "mine", config=config, environment={}, folder=tmp_path / "mine")
    final = {"seed": 0, "test_accuracy": 0.5, "remaining_weights": 0.5}
    own.add_seeds(
        history_rows=[{**final, "epoch": 1, "train_loss": 1.0, "test_loss": 1.0, "flips": 0.0}], finals=[final]
    )
    fcn = make_run(tmp_path)
    shelf = Shelf(find_finished([tmp_path]))
    best = shelf.best(model="fcn")
    assert len(shelf.runs) == 2 and best is not None and best.folder == fcn
    with pytest.raises(UserError, match="there is no preset 'own'"):
        read_finished(own.folder).setting("score_scale")


def test_runs_are_a_pair_only_if_nothing_else_differs(tmp_path):
    make_run(tmp_path, init="he", epochs=3, seeds=4)
    make_run(tmp_path, init="he", epochs=2, seeds=3, weight_distribution="uniform")
    values = ("signed_constant", "uniform")
    fixed = {"model": "fcn", "method": "signed", "init": "he"}
    assert Shelf(find_finished([tmp_path])).pair("weight_distribution", values, **fixed) is None
    make_run(tmp_path, init="he", epochs=2, seeds=1)
    found = Shelf(find_finished([tmp_path])).pair("weight_distribution", values, **fixed)
    assert found is not None
    assert [(run.setting("epochs"), len(run.seeds)) for run in found] == [(2, 1), (2, 3)]


def test_a_published_run_without_masks_has_curves_only(tmp_path):
    folder = make_run(tmp_path)
    for path in (folder / "masks").iterdir():
        path.unlink()
    shelf = Shelf(find_finished([tmp_path]))
    assert FIGURES["fcn_sisu_one_ratio"](shelf).runs
    with pytest.raises(Missing, match="with masks of at least 1 seed"):
        FIGURES["all_mask_dist"](shelf)


def test_bars_have_the_shares(shelf):
    values = {"minus": np.array([10.0]), "zero": np.array([70.0]), "plus": np.array([20.0])}
    figure = draw_distributions([[Distribution(title="x", layers=["Dense_0"], **values)]], title="t")
    axes = figure.axes[0]
    assert [(bar.get_y(), bar.get_height()) for bar in axes.patches] == [(0, 10), (10, 70), (80, 20)]
    assert [text.get_text() for text in axes.texts] == ["30.0"]


def test_dots_stand_for_the_weights_under_them():
    mask = np.zeros((4, 4), np.int8)  # [inputs, units]
    mask[0, 0] = 1  # the only one under the first dot
    mask[2, 0], mask[3, 0], mask[3, 1] = -1, -1, 1  # more -1 than 1 under the dot of inputs 2 and 3, units 0 and 1
    assert sample_signs(mask, width=2, height=2).tolist() == [[1, -1], [0, 0]]
    assert sample_signs(mask, width=9, height=9).tolist() == mask.T.tolist()
    mask[2:, 2:] = [[1, -1], [0, 0]]
    assert abs(sample_signs(mask, width=2, height=2)[1, 1]) == 1  # of as many of both, one of them


def test_tiles_have_a_line_around_each():
    mask = np.array([[1, -1, 0], [0, 1, 0]], np.int8)  # two inputs, three units
    G = GAP
    assert unit_maps(mask, (1, 2), columns=2).tolist() == [
        [G, G, G, G, G, G, G],
        [G, 1, 0, G, -1, 1, G],
        [G, G, G, G, G, G, G],
        [G, 0, 0, G, G, G, G],
        [G, G, G, G, G, G, G],
    ]
    kernel = np.array([1, -1, 0, 1], np.int8).reshape(1, 1, 2, 2)
    assert kernel_maps(kernel)[1::2, 1::2].tolist() == [[1, -1], [0, 1]]  # channels down, outputs across


def test_a_map_keeps_each_weights_own_colour(tmp_path):
    (tmp_path / "map.png").write_bytes(mask_png(np.array([[-1, 0, 1, GAP]], np.int8), scale=2))
    with Image.open(tmp_path / "map.png") as image:
        pixels = np.asarray(image.convert("RGB"))
    assert pixels.shape == (2, 8, 3)
    assert np.allclose(pixels[1, [0, 2, 4]] / 255, [to_rgb(MINUS), (1, 1, 1), to_rgb(PLUS)], atol=0.003)


def _grey(colour):
    return float(np.dot(to_rgb(colour), (0.299, 0.587, 0.114)))


def test_signs_stay_apart_in_grey_and_lines_in_more_than_colour():
    greys = sorted(map(_grey, (MINUS, ZERO, PLUS)))
    assert np.diff(greys).min() > 0.2
    assert len({str(look.line) for look in LOOKS}) == len({look.marker for look in LOOKS}) == len(LOOKS)


def test_layers_come_in_the_order_of_the_net_and_residual_ones_by_number():
    layers = ["Block_00/Conv_0", "Block_00/Conv_2", "Block_10/Conv_0", "Block_02/Conv_0", "Conv_0", "Dense_0"]
    ordered = labels.ordered(layers)
    assert ordered == ["Conv_0", *layers[:2], "Block_02/Conv_0", "Block_10/Conv_0", "Dense_0"]
    assert names(ordered) == ["0", "1 p", "2 s", "3", "4", "5"]
    assert names(["Dense_0", "Dense_1"]) == ["Dense_0", "Dense_1"]


def test_numbers_in_words():
    assert labels.number([1], "seed") == "1 seed"
    assert labels.number([50, 10, 50], "seed") == "10 to 50 seeds"
    assert labels.percent(0.02612) == "2.61 %"


def test_a_figure_has_no_date_and_the_styles_width():
    figure = style.new_figure(2, title="t")
    svg, png = to_svg(figure), to_png(figure)
    assert not re.search(rb"<dc:date>|20\d\d-\d\d-\d\d", svg)
    assert b"tIME" not in png and b"Creation Time" not in png
    assert int.from_bytes(png[16:20], "big") == 1000
    assert (to_svg(figure), to_png(figure)) == (svg, png)
