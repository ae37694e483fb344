from paper.tables import final_table
from tests.support.summaries import summary


def test_final_table(rows):
    assert final_table(summary(), rows) == (
        "fcn signed elus, preset default, mnist, 266,200 weights: 50 seeds, 100 epochs\n"
        "                     mean [5 %, 95 %]      paper (50 runs, mnist)  difference  p\n"
        "test accuracy %      97.58 [97.40, 97.75]  97.48 [97.3, 97.7]      +0.10       <0.001\n"
        "remaining weights %  3.56 [3.50, 3.63]     3.77 [3.7, 3.8]         -0.21       <0.001\n"
        "s / epoch / seed     0.41                  1.27\n"
        "p: Welch's t-test; the paper's spread is an estimate from its printed, rounded quantiles.\n"
    )


def test_final_table_says_what_is_not_comparable(rows):
    text = final_table(summary(dataset="mnist5k", failed=[{"seed": 3, "epoch": 7}]), rows)
    assert "The paper's row is about mnist: its figures are not comparable to these." in text
    assert "Seed 3 was excluded in epoch 7: it turned non-finite." in text
    assert "Welch" not in text
    other = final_table(summary(changed=["epochs", "loss"]), rows)
    assert "No p: the run differs from the recipe in epochs, loss." in other and "<0.001" not in other
    assert "No p: the run differs from the recipe in epochs." in final_table(summary(epochs=4), rows)
    assert "no row for this configuration" in final_table(summary(init="formula"), rows)
    nothing = {"mean": None, "q05": None, "q95": None, "std": None, "values": {}}
    empty = summary(runs=0, test_accuracy=nothing, remaining_weights=nothing)
    assert ": 0 seeds" in final_table(empty, rows)
