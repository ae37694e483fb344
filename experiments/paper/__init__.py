"""All that is specific to the paper: its printed numbers, tables and figures, and the choice of runs for them."""
