import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from paper.result import result_table
from paper.tables import read_paper, with_config
from ssm.recipes.literature import LITERATURE
from ssm.runs.reader import read_finished, spans
from ssm.viz import labels, render, sections
from tests.support.made_runs import LAYERS, make_run

ROOT = Path(__file__).resolve().parents[2]
CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run")
FLAGS += ("--disable-background-networking", "--disable-component-update", "--disable-sync")


@pytest.fixture(scope="module")
def paper():
    return read_paper(ROOT / "experiments" / "paper" / "paper.json")


def page_of(run, paper):
    return render(run, result=result_table(with_config(run.summary, run.config), paper))


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """The page that the program makes of a run, as a file."""
    root = tmp_path_factory.mktemp("report")
    folder = make_run(root / "runs", seeds=3)
    command = [sys.executable, str(ROOT / "experiments" / "report.py"), str(folder), "--out", "page.html"]
    own = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, capture_output=True, text=True, cwd=root, env=own, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "without the size of an exported file" in done.stderr  # its layers are made up
    assert re.fullmatch(rf"page\.html: [\d,]+ bytes, of {folder.name}\n", done.stdout)
    return root / "page.html"


def check_alone(text):
    """Check that a page asks for nothing that isn't in it."""
    shown = re.sub(r"data:image/[a-z+]+;base64,[A-Za-z0-9+/=]+", "data:", text)
    assert not re.search(r"https?:|//[a-z]|<script|@import|url\(", shown, re.IGNORECASE)
    assert all(source == "data:" for source in re.findall(r'\bsrc="([^"]*)"', shown))
    assert all(target.startswith(("#", "data:")) for target in re.findall(r'\bhref="([^"]*)"', shown))


def test_the_page_is_complete_in_itself(page):
    text = page.read_text(encoding="utf-8")
    check_alone(text)
    assert len(text) < 3_000_000
    assert len(re.findall(r"<img ", text)) == len(re.findall(r'<img src="[^"]+" alt="[^"]+', text)) == 5
    for heading in ("Result beside the paper's", "Masks", "Layers", "Sizes", "Configuration", "Environment"):
        assert heading in text.replace("&#39;", "'")
    assert "97.48 [97.3, 97.7]" in text  # the paper's row
    assert "784 × 12" in text  # noqa: RUF001


@pytest.mark.skipif(not (CHROMIUM and DRIVER), reason="needs chromium and chromedriver on the PATH")
def test_a_browser_shows_every_image_and_follows_every_link(page, tmp_path):
    from selenium import webdriver
    from selenium.webdriver.common.by import By

    options = webdriver.ChromeOptions()
    options.binary_location = str(CHROMIUM)
    for flag in (*FLAGS, f"--user-data-dir={tmp_path / 'profile'}", "--window-size=1100,900"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    browser = webdriver.Chrome(options=options, service=webdriver.ChromeService(str(DRIVER)))
    try:
        browser.get(page.as_uri())
        images = browser.find_elements(By.TAG_NAME, "img")
        assert len(images) == 5
        sizes = [browser.execute_script("return [arguments[0].complete, arguments[0].naturalWidth]", i) for i in images]
        assert all(complete and width > 100 for complete, width in sizes)
        links = [link.get_dom_attribute("href") for link in browser.find_elements(By.CSS_SELECTOR, "nav a")]
        assert len(links) == 8
        assert all(len(browser.find_elements(By.CSS_SELECTOR, str(link))) == 1 for link in links)
        wide = "return document.documentElement.scrollWidth <= window.innerWidth"
        assert browser.execute_script(wide)
        browser.set_window_size(420, 900)  # a telephone: tables scroll by themselves, the page doesn't
        assert browser.execute_script(wide)
        asked = "return performance.getEntriesByType('resource').map(entry => entry.name)"
        assert all(name.startswith("data:") for name in browser.execute_script(asked))
        assert browser.get_log("browser") == []
    finally:
        browser.quit()


def test_the_same_run_gives_the_same_page(page, paper):
    folder = next((page.parent / "runs").iterdir())
    assert page_of(read_finished(folder), paper) == page.read_text(encoding="utf-8")


def test_what_a_run_says_is_text_never_markup(tmp_path, paper):
    folder = make_run(tmp_path, method="baseline", seeds=1)
    summary = json.loads((folder / "summary.json").read_text())
    summary["source"] = "<script>alert(1)</script>"
    summary["failed"] = [{"seed": 7, "epoch": 2, "reason": '"><img src=x onerror=alert(1)>'}]
    (folder / "summary.json").write_text(json.dumps(summary))
    text = page_of(read_finished(folder), paper)
    check_alone(text)
    assert "&lt;script&gt;alert(1)" in text and "&lt;img src=x" in text
    assert "A baseline has no masks" in text and 'id="sizes"' not in text


def test_a_run_without_masks_or_environment_has_a_page_too(tmp_path, paper):
    folder = make_run(tmp_path, seeds=2)
    shutil.rmtree(folder / "masks")
    (folder / "environment.json").unlink()
    text = page_of(read_finished(folder), paper)
    assert "keeps no masks" in text and "folder does not record it" in text


@pytest.mark.parametrize("model", ["conv2", "resnet20"])
def test_nets_that_convolve_have_maps_of_kernels_and_of_the_first_dense_layer(tmp_path, paper, model):
    folder = make_run(tmp_path, model=model, layers=LAYERS[model], seeds=1)
    text = page_of(read_finished(folder), paper)
    check_alone(text)
    assert "Conv_0, seed 0: the mask of each 3 × 3 kernel" in text  # noqa: RUF001
    assert "Dense_0, seed 0:" in text
    assert "one mask only" in text


def test_layers_and_their_agreement_by_hand():
    masks = {"Dense_0": np.array([[[1, 0], [0, 0]], [[1, 0], [0, -1]]], np.int8)}  # two seeds of two by two
    looked = sections.look(masks)
    shares = sections.shares_table(masks, looked)
    # Shares of -1: 0 and 1/4; of 0: 3/4 and 1/2; of 1: 1/4 and 1/4.
    assert shares.rows[0][:6] == ["Dense_0", "2 × 2", "4", "12.50", "62.50", "25.00"]  # noqa: RUF001
    assert shares.rows[0][6] == "37.50 [26.25, 48.75]"
    agreement = sections.agreement_table(masks, looked)
    # Three of four are equal; by chance 3/4 * 1/2 + 1/4 * 1/4 = 7/16, absolute 3/8 + 1/8.
    assert agreement.rows[0][1:3] == ["75.00 (43.75)", "75.00 (50.00)"]
    assert agreement.rows[0][5:] == ["50.00", "0 of 2"]
    sizes = sections.size_table(masks, artifact=3)
    # csr: 8 bytes for each of 1 and 2 weights, and 4 for each of 3 row pointers.
    assert sizes.rows[0][:4] == ["Dense_0", "16", "24", "1"]
    assert ["exported file, one seed", "3", "18.75 %", "", ""] in sizes.rows


def test_masks_are_called_what_they_are(tmp_path):
    masks = {"Dense_0": np.array([[[1, 0], [0, 1]]], np.int8)}
    table = sections.shares_table(masks, sections.look(masks), labels.signs("rigl"))
    assert table.head[3:] == ["hidden, 0 (%)", "kept, +1 (%)", "remaining (%)"] and len(table.rows[0]) == len(
        table.head
    )
    table = sections.shares_table(masks, sections.look(masks), labels.signs("ttq"))
    assert table.head[3] == "negative, −1 (%)"  # noqa: RUF001
    for method, inverts in (("signed", True), ("binary", False)):
        text = render(read_finished(make_run(tmp_path, method=method)))
        assert ("inverted" in text) == inverts and "Weights that are not 0: frozen random weights." in text


def test_every_method_has_a_name_and_others_keep_theirs():
    for names in (labels.METHODS, labels.WEIGHTS):
        assert set(LITERATURE) | {"signed", "binary", "baseline"} <= set(names)
    assert labels.method("rigl") == "RigL" and labels.method("mine") == "mine"
    assert labels.signs("mine") == labels.signs("signed") == labels.INVERTING


def test_what_is_dead_by_hand(tmp_path):
    run = read_finished(make_run(tmp_path))
    one = {
        "Dense_0": np.zeros((784, 3), np.int8),
        "Dense_1": np.array([[1, 0], [0, 1], [0, 0]], np.int8),
        "Dense_2": np.array([[1] * 10, [0] * 10], np.int8),
    }
    one["Dense_0"][5, :2] = 1
    two = one | {"Dense_1": np.zeros((3, 2), np.int8)}
    table = sections.dead_table(run, {layer: np.stack([one[layer], two[layer]]) for layer in one})
    assert table.rows == [
        ["inputs", "783.5", "784", ""],
        ["Dense_0", "2.5", "3", "1 of 2"],  # only the first unit of the first net leads on
        ["Dense_1", "1.5", "2", "1 of 2"],
        ["Dense_2", "5.0", "10", "1 of 2"],
    ]
    assert sections.dead_table(run, {"Dense_0": np.ones((1, 784, 10), np.int8)}) is None


@pytest.mark.parametrize(
    ("method", "over"),
    [
        ("bnn", {}),
        ("edge_popup", {"batch_norm": "statistics", "activation": "relu"}),
        ("signed", {"activation": "sign"}),
    ],
)
def test_a_net_that_has_no_graph_has_a_page_without_what_is_dead(tmp_path, paper, method, over):
    folder = make_run(tmp_path, method=method, preset="protocol", seeds=2, **over)
    text = page_of(read_finished(folder), paper)
    assert "cannot influence the output" not in text
    usual = page_of(read_finished(make_run(tmp_path, method="signed", preset="protocol", seeds=2)), paper)
    assert "cannot influence the output" in usual


def test_the_result_stands_beside_the_papers_row(tmp_path, paper):
    run = read_finished(make_run(tmp_path, seeds=2))
    table = result_table(with_config(run.summary, run.config), paper)
    assert table.head[2] == "paper (50 runs, mnist)"
    assert table.rows[0][2] == "97.48 [97.3, 97.7]"
    assert table.rows[0][3].startswith("−")  # noqa: RUF001
    run = read_finished(make_run(tmp_path, dataset="mnist5k"))
    table = result_table(with_config(run.summary, run.config), paper)
    assert any("not comparable" in note for note in table.notes)
    assert table.rows[0][3] == ""
    run = read_finished(make_run(tmp_path, preset="sinn1"))
    table = result_table(with_config(run.summary, run.config), paper)
    assert any("no row" in note for note in table.notes)


def test_seeds_in_short_and_in_columns():
    assert spans([0, 1, 2, 60, 4]) == "0 to 2, 4, 60"
    values = {str(seed): 0.5 for seed in range(14)}
    table = sections.seeds_table({"test_accuracy": {"values": values}, "remaining_weights": {"values": values}})
    assert len(table.head) == 9
    assert [row[0] for row in table.rows] == ["0", "1", "2", "3", "4"]
    assert table.rows[4] == ["4", "50.00", "50.000", "9", "50.00", "50.000", "", "", ""]
