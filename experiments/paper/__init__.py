"""All that knows the paper: its printed numbers, tables and figures, and which runs they are about."""
