import jax
import pytest


@pytest.fixture(scope="module", autouse=True)
def _compiled_quickly(request):
    """Nearly all that these tests do is to compile, but for those of a module that says it is `OPTIMISED`."""
    if getattr(request.module, "OPTIMISED", False):
        yield
        return
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", False)
