"""One run as a self-contained HTML page (no network, no script, no other file), and drawings of masks and curves."""

from ssm.lazy import attributes
from ssm.viz.page import render

__all__ = ["render"]

__getattr__ = attributes(__name__)
