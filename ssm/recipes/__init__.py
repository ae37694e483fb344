"""From names to objects: configurations, presets, and the nets and learners that they mean."""

from ssm.lazy import attributes

__getattr__ = attributes(__name__)
