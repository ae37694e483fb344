"""From names to objects: configurations, presets, and the nets and learners that they mean."""
