"""Runs and sweeps: folders, checkpoints, journals, locks, signals, and what a finished run says."""

from ssm.lazy import attributes

__getattr__ = attributes(__name__)
