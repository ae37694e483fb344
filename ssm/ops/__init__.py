"""Convolutions, matrix products, activations and pools, for Flax's own hooks; nothing here depends on a model."""
