"""Convolutions, products, pools: operations behind Flax's own hooks; nothing here knows a model."""
