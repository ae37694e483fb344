"""Runs and sweeps: folders, checkpoints, journals, locks, signals, and what a finished run says."""
