import pytest

from paper.tables.nets import architectures, hidden_at_first, layer_shapes


def test_the_layers_of_a_net():
    assert layer_shapes("fcn") == {"Dense_0": (784, 300), "Dense_1": (300, 100), "Dense_2": (100, 10)}
    conv2 = layer_shapes("conv2")
    assert conv2["Conv_1"] == (3, 3, 64, 64)
    assert conv2["Dense_0"] == (16 * 16 * 64, 256)
    assert len(layer_shapes("resnet20")) == 23
    assert len(layer_shapes("resnet110")) == 116
    assert layer_shapes("resnet20", width=2.0)["Conv_0"] == (3, 3, 3, 32)


def test_architectures_are_the_papers(paper):
    table = architectures(paper)
    assert [record["model"] for record in table.records] == [*paper["weights"], "resnet110, dense"]
    for record in table.records[:-1]:
        assert record["difference"] == 0
    for record in table.records[:5]:
        assert (record["conv"], record["dense"]) == (record["paper_conv"], record["paper_dense"])
    assert table.records[2]["conv"] == "64, 64, pool; 128, 128, pool"
    # docs/ledger.md, row 16: the paper prints the masked net's count for both.
    assert table.cells()[-1][-3:] == ["1,705,904", "1,668,272", "+37,632"]


def test_what_is_hidden_before_training():
    # tau / b by layer, b = sqrt(6 / (in + out)): 0.01 / 0.0744, / 0.1225, / 0.2335.
    expected = (
        235200 * 0.01 / (6 / 1084) ** 0.5 + 30000 * 0.01 / (6 / 400) ** 0.5 + 1000 * 0.01 / (6 / 110) ** 0.5
    ) / 266200
    assert hidden_at_first("fcn") == pytest.approx(expected)
    assert hidden_at_first("resnet56") == pytest.approx(0.85)
