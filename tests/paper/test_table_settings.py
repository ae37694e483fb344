from paper.tables.settings import NAMES, settings, sinn


def columns(table, setting):
    (record,) = (record for record in table.records if record["setting"] == setting)
    return record


def test_the_presets_of_the_paper_have_its_printed_hyperparameters(paper):
    """All, but for what the ledger explains: the optimizer, initial pruning rates, and the dense FCN's decay."""
    for name in NAMES:
        for record in settings(name, paper).records:
            if record["setting"] not in ("optimizer", "initial pruning rate %"):
                explained = (name, record["setting"]) == ("settings-baseline", "weight decay")
                assert record["differs"] == ("fcn" if explained else "no"), (name, record)


def test_printed_settings(paper):
    """Typed from the paper's source."""
    dense = settings("settings-baseline", paper)
    rates = columns(dense, "learning rate")
    models = ("fcn", "conv2", "conv4", "conv6", "conv8")
    assert [rates[f"paper_{model}"] for model in models] == [0.008, 0.008, 0.008, 0.01, 0.002]
    decays = columns(dense, "decay rate / step")
    assert [decays[f"paper_{model}"] for model in models[:3]] == [
        "0.96 / 10 epochs",
        "0.96 / 5 epochs",
        "0.96 / 10 epochs",
    ]
    resnets = settings("settings-signed-resnet", paper)
    models = ("resnet20", "resnet56", "resnet110")
    assert [columns(resnets, "weight decay")[f"paper_{model}"] for model in models] == [1e-4, 1e-4, 1e-5]
    assert [columns(resnets, "epochs")[f"paper_{model}"] for model in models] == [110, 120, 120]
    assert columns(resnets, "reduced on a plateau (patience)")["paper_resnet56"] == "0.2 (15)"


def test_where_ours_differ_that_is_said(paper):
    table = settings("settings-signed", paper)
    pruning = columns(table, "initial pruning rate %")
    assert pruning["differs"] == "fcn, conv2, conv4, conv6, conv8"
    # docs/ledger.md, row 5.
    models = ("fcn", "conv2", "conv4", "conv6", "conv8", "resnet20")
    assert [round(pruning[model], 1) for model in models] == [12.8, 51.6, 34.6, 25.2, 32.5, 75.0]
    assert [pruning[f"paper_{model}"] for model in models] == [6.3, 29.5, 19.3, 11.9, 12.9, 75.0]
    optimizer = columns(table, "optimizer")
    assert (optimizer["fcn"], optimizer["paper_fcn"]) == ("SGD, Nesterov, decoupled decay", "SGD")
    titles = [column.title for column in table.columns]
    assert titles == ["setting", *(title for model in models for title in (model, "paper")), "differs"]


def test_that_two_captions_are_swapped_is_said(paper):
    for name in NAMES:
        said = any("swapped in the paper's source" in note for note in settings(name, paper).notes)
        assert said == name.startswith("settings-signed")
    assert "ResNets" in settings("settings-signed-resnet", paper).title
    assert "tab:learning_param_sisu)" in settings("settings-signed-resnet", paper).title


def test_simple_minded_nets(paper):
    table = sinn(paper)
    assert table.cells() == [
        ["learning rate", "0.01", "0.01", "0.008", "0.008", "no"],
        ["weight decay", "0.0005", "0.0005", "0.0003", "0.0003", "no"],
    ]
    other = sinn(paper | {"sinn": {"1": {"learning_rate": 0.02, "weight_decay": 5e-4}}})
    assert other.cells()[0] == ["learning rate", "0.01", "0.02", "sinn1"]
