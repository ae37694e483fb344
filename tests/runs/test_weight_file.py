from types import SimpleNamespace

import numpy as np
import pytest

from ssm.errors import UserError
from ssm.runs.folder import mask_path
from ssm.runs.frozen import check_frozen
from ssm.runs.magnitudes import Parts, put_together, taken_apart
from ssm.runs.mask_file import load_masks
from ssm.runs.reader import read_finished
from ssm.runs.value_file import write_arrays
from ssm.runs.weight_file import load_weights, save_weights, weight_path
from tests.support.runs import Crash, crashing, literature, run_config, short


def weights(*values):
    return np.array(values, np.float32)


KINDS = {
    "one": (weights(0.3, 0, -0.3, 0.3), [0.3]),
    "one weight": (weights(0, -0.7), [0.7]),
    "two": (weights(0.2, -0.1, 0, 0.2), [0.1, 0.2]),
    "two weights": (weights(0.2, -0.1), [0.1, 0.2]),
    "two of one sign": (weights(0.2, 0, 0.1), [0.2, 0.1]),
    "their own": (weights(0.2, -0.1, 0.3, 0), [0.2, 0.1, 0.3]),
    "none": (weights(0, 0), []),
    "empty": (np.zeros((0, 3), np.float32), []),
}


def same_bits(one, other):
    return one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()


@pytest.mark.parametrize("kind", KINDS)
def test_weights_are_signs_and_as_few_magnitudes_as_they_have(kind, tmp_path):
    values, magnitudes = KINDS[kind]
    np.testing.assert_array_equal(taken_apart(values).magnitudes, np.float32(magnitudes))
    save_weights(tmp_path / "w.npz", {"Dense_0": values, "Block_00/Conv_1": values.reshape(1, 1, *values.shape)})
    found = load_weights(tmp_path / "w.npz")
    assert same_bits(found["Dense_0"], values)
    assert same_bits(found["Block_00/Conv_1"], values.reshape(1, 1, *values.shape))


def test_weights_come_back_bit_for_bit_and_minus_0_as_0(tmp_path):
    rng = np.random.default_rng(0)
    values = rng.normal(size=(7, 5)).astype(np.float32) * (rng.random((7, 5)) < 0.5)
    values[0, 0] = np.float32(1e-44)  # a denormal number
    save_weights(tmp_path / "w.npz", {"Dense_0": values})
    assert same_bits(load_weights(tmp_path / "w.npz")["Dense_0"], values + np.float32(0))


@pytest.mark.parametrize("wrong", [np.zeros(2), weights(np.nan, 1), weights(np.inf)])
def test_other_weights_are_not_saved(wrong, tmp_path):
    with pytest.raises(ValueError, match="float32 and finite"):
        save_weights(tmp_path / "w.npz", {"Dense_0": wrong})
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("magnitudes", [[], [0.1, 0.2], [0.1] * 4, [0.0], [-1.0], [np.inf], [np.nan]])
def test_parts_must_fit(magnitudes):
    with pytest.raises(ValueError, match="magnitudes"):
        put_together(Parts(np.array([1, 1, 1, 0], np.int8), np.float32(magnitudes)))


@pytest.mark.parametrize(
    "change",
    [
        {"Dense_0:magnitudes": np.array([0.1])},
        {"Dense_0:magnitudes": np.float32([[0.1]])},
        {"Dense_0:magnitudes": np.float32([0.1, 0.2])},
        {"Dense_0:codes": np.array([255], np.uint8)},
        {"Dense_0:codes": np.array([1, 2], np.uint8)},
        {"Dense_0:shape": np.array([-4])},
        {"Dense_0:shape": np.array([2**62, 2**62])},
        {"Dense_0:shape": np.array([4.0])},
        {"Dense_0:more": np.array([1])},
        {"Dense_1:shape": np.array([4])},
    ],
)
def test_a_damaged_file_is_refused(change, tmp_path):
    arrays = {"Dense_0:codes": np.array([0b10_01_10_10], np.uint8), "Dense_0:magnitudes": np.float32([0.1])}
    arrays |= {"Dense_0:shape": np.array([4])}
    write_arrays(tmp_path / "w.npz", arrays)
    assert load_weights(tmp_path / "w.npz")["Dense_0"].tolist() == np.float32([0.1, 0.1, 0, 0.1]).tolist()
    write_arrays(tmp_path / "w.npz", arrays | change)
    with pytest.raises(UserError, match=r"w\.npz is damaged"):
        load_weights(tmp_path / "w.npz")


def test_a_missing_or_cut_file_is_named(tmp_path):
    with pytest.raises(UserError, match="does not exist: copy it, too"):
        load_weights(tmp_path / "w.npz")
    save_weights(tmp_path / "w.npz", {"Dense_0": weights(1, 2)})
    (tmp_path / "w.npz").write_bytes((tmp_path / "w.npz").read_bytes()[:-9])
    with pytest.raises(UserError, match="damaged"):
        load_weights(tmp_path / "w.npz")


SLOW = pytest.mark.slow
MAGNITUDES = {"edge_popup": 1, "mpt": 1, "ttq": 2, "rigl": 9}
"""Of a layer, at most; 9 for those that are each a weight's own."""


@pytest.mark.slow
@pytest.mark.parametrize("method", [pytest.param(name, marks=SLOW if name in ("mpt", "ttq") else []) for name in MAGNITUDES])
def test_a_run_keeps_the_weights_that_it_evaluates(method, digits, tmp_path):
    run = run_config(literature(digits, method), digits, [0], out=tmp_path)
    kept, masks = read_finished(run.folder).weights(0), load_masks(mask_path(run.folder, 0))
    assert {layer: values.shape for layer, values in kept.items()} == {layer: m.shape for layer, m in masks.items()}
    for layer, values in kept.items():
        assert not values[masks[layer] == 0].any() and values.any()
        number = taken_apart(values).magnitudes.size
        assert number > 2 if MAGNITUDES[method] == 9 else number <= MAGNITUDES[method]


@SLOW
def test_a_resumed_run_keeps_the_same_weights(digits, tmp_path):
    config = literature(digits, "rigl")
    whole = run_config(config, digits, [0], out=tmp_path / "whole")
    with pytest.raises(Crash):
        run_config(config, digits, [0], out=tmp_path / "resumed", **crashing(1))
    assert not (tmp_path / "resumed" / whole.folder.name / "weights").exists()
    resumed = run_config(config, digits, [0], out=tmp_path / "resumed")
    one, other = (read_finished(run.folder).weights(0) for run in (whole, resumed))
    assert one.keys() == other.keys() and all(same_bits(one[layer], other[layer]) for layer in one)


def test_a_run_with_nothing_frozen_is_not_called_old(recwarn):
    run = SimpleNamespace(folder="here", frozen_hash=lambda seed: None)
    assert check_frozen(run, 0, {"Dense_0": ()}) and not recwarn.list
    with pytest.warns(UserWarning, match="older version"):
        check_frozen(run, 0, {"Dense_0": np.zeros(2)})


@pytest.mark.slow
def test_the_papers_methods_keep_none(digits, tmp_path):
    run = run_config(short(digits, epochs=1, width=0.05), digits, [0], out=tmp_path)
    assert not weight_path(run.folder, 0).parent.exists()
    with pytest.raises(UserError, match="keeps no weights of seed 0"):
        read_finished(run.folder).weights(0)
