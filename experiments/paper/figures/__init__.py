"""The paper's figures from our own runs: `selection` chooses runs, `gallery` names the figures, the rest draw them.

The modules that draw take arrays and return a `matplotlib.figure.Figure`; none touches pyplot or a global setting.
"""
