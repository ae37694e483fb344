import jax
import pytest


@pytest.fixture(scope="module")
def compiled_quickly():
    """Half the time to compile, which is nearly all that these tests do."""
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", False)
