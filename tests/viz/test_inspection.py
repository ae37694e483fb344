import numpy as np

from ssm.analysis import Moves
from ssm.viz.inspection import (
    Image,
    Stage,
    draw_images,
    draw_moves,
    draw_path,
    draw_scores,
    draw_signs,
    draw_states,
)
from ssm.viz.style import to_png

MASK = np.array([[[1, 0], [-1, -1]], [[0, 0], [1, -1]]], np.int8)
FROZEN = np.array([[[-1, 1], [-1, 1]], [[1, 1], [-1, 1]]], np.int8)


def shown(axes):
    return np.ma.getdata(axes.images[0].get_array())


def test_effective_signs_are_those_of_the_product():
    figure = draw_signs(MASK, FROZEN, names=["unit 3", "unit 7"], title="two units")
    rows = [[axes for axes in figure.axes[row * 6 : row * 6 + 6] if axes.images] for row in range(3)]
    assert [len(row) for row in rows] == [2, 2, 2]
    assert [axes.get_title("left") for axes in rows[0]] == ["unit 3", "unit 7"]
    np.testing.assert_array_equal(shown(rows[0][1]), MASK[1])
    np.testing.assert_array_equal(shown(rows[2][0]), [[-1, 0], [1, -1]])
    assert to_png(figure)


def test_signed_images_have_white_at_nothing_and_what_is_true_has_no_bar():
    images = [
        Image(title="balance", values=np.array([[-1.0, 0.0], [0.0, 4.0]]), signed=True),
        Image(title="none", values=np.zeros((2, 2))),
        Image(title="true", values=np.array([[True, False]])),
    ]
    figure = draw_images(images, title="three")
    balance, none, true = figure.axes[:3]
    assert (balance.images[0].norm(0), balance.images[0].norm(4), none.images[0].norm(0)) == (0.5, 1, 0)
    assert min(balance.images[0].cmap(0.5)) > 0.99
    np.testing.assert_array_equal(shown(true), [[1, 0]])
    assert len(figure.axes) == 5 and to_png(figure)


def test_bars_of_moves_are_means_over_seeds_and_sum_to_all():
    moves = Moves(*(np.array(values) for values in ((0.2, 0.4), (0.5, 0.1), (0.1, 0.1), (0.0, 0.2), (0.2, 0.2))))
    figure = draw_moves({"Dense_0": moves}, title="moves")
    widths = [bars[0].get_width() for bars in figure.axes[0].containers]
    np.testing.assert_allclose(widths, [30, 10, 30, 10, 20])  # kept, inverted, hidden, revived, left hidden
    assert to_png(figure)


def test_a_path_shows_the_strongest_units_first():
    stage = Stage(name="Dense_0", values=np.array([0.5, -1.0, 0.0]), contributions=np.array([1.0, -3.0, 0.0]))
    logits = np.array([0.2, 1.5])
    figure = draw_path(
        np.eye(2), -np.eye(2), [stage], logits, class_names=["cat", "dog"], strongest=2, title="one image"
    )
    bars = next(axes for axes in figure.axes if axes.get_title("left").startswith("strongest"))
    assert [label.get_text() for label in bars.get_xticklabels()] == ["1", "0"]
    assert [bar.get_height() for bar in bars.patches] == [-3, 1]
    assert to_png(figure)


def test_scores_are_dots_about_their_mean():
    figure = draw_scores(
        {"Dense_0": np.array([0.2, 0.4]), "all": np.array([0.1])}, whole=0.9, guess=0.1, title="scores"
    )
    dots = figure.axes[0].collections[0].get_offsets()
    np.testing.assert_allclose(np.asarray(dots)[:, 0], [20, 40])
    np.testing.assert_allclose([line.get_xdata()[0] for line in figure.axes[0].lines[:4]], [30, 10, 90, 10])
    assert to_png(figure)


def test_states_have_a_colour_each():
    figure = draw_states(np.array([[0, 1], [2, 2]]), np.ones((2, 2)), title="pixels")
    codes = figure.axes[0].images[0]
    assert len({tuple(codes.cmap(codes.norm(state))) for state in (0, 1, 2)}) == 3
    assert to_png(figure)
