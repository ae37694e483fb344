"""The one exception that a user is meant to see."""


class UserError(Exception):
    """Says what was wrong with the input and what to do; the programs print it and exit with status 2."""
