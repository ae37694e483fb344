"""The comparison of all methods on one protocol: what is run, and what is said of it."""
