"""JAX's settings that change numbers, held at one value each while anything that decides a result is traced or run."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

from jax._src.config import config_states  # some of these have no public context manager

from ssm.ops.matmul import PRECISION

PINNED: Mapping[str, Any] = {
    # The width of numbers, and what comes of two dtypes or ranks.
    "jax_enable_x64": False,
    "jax_explicit_x64_dtypes": "warn",
    "jax_numpy_dtype_promotion": "standard",
    "jax_numpy_rank_promotion": "allow",
    # Random numbers.
    "jax_threefry_partitionable": True,
    "jax_default_prng_impl": "threefry2x32",
    "jax_enable_custom_prng": False,
    "jax_legacy_prng_key": "allow",
    "jax_random_seed_offset": 0,
    "jax_high_dynamic_range_gumbel": False,
    "jax_accurate_erf_inv": False,
    # Which operations a function becomes, and how they are rounded.
    "jax_default_matmul_precision": PRECISION,
    "jax_softmax_custom_jvp": False,
    "jax_use_hlo_logistic_lowering": None,
    "jax_use_direct_linearize": True,
    "jax_custom_jvp3": False,
    "jax_custom_vjp3": False,
    "jax_scan3": False,
    "jax_remat3": False,
    "jax_disable_jit": False,
    "jax_optimization_level": "UNKNOWN",
    "jax_exec_time_optimization_effort": 0.0,
    # Checks that a user wants of other code, and would end this.
    "jax_transfer_guard_host_to_device": "allow",
    "jax_transfer_guard_device_to_device": "allow",
    "jax_transfer_guard_device_to_host": "allow",
}
"""JAX's defaults, but for the precision of float32 products; a version of JAX may lack some of them.

Of all that `jax.config` has in JAX 0.10 and 0.12, the rest says where, how fast and with which checks and messages
programs run.  What XLA reads of the environment is recorded (`ssm.training.devices.environment`).
"""


@contextmanager
def pinned() -> Iterator[None]:
    """Hold JAX's settings as in `PINNED`, in this thread, as a context or as a decorator of a function."""
    with ExitStack() as stack:
        for name, value in PINNED.items():
            if name in config_states:
                stack.enter_context(config_states[name](value))
        yield
