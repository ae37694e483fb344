"""The paper's figures from one's own runs: `choose` picks runs, `paper_*` say what a figure needs, the rest draws.

The modules that draw take arrays and return a `matplotlib.figure.Figure`; none touches pyplot or a global setting.
"""
