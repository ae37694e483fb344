"""One run as one HTML page that needs nothing else: no network, no script, no other file."""

from ssm.lazy import attributes
from ssm.viz.page import render

__all__ = ["render"]

__getattr__ = attributes(__name__)
