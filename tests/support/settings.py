"""JAX's settings as a user may have them for other work."""

from contextlib import ExitStack, contextmanager

from ssm.training.settings import config_states

OTHER = {
    "jax_enable_x64": True,
    "jax_explicit_x64_dtypes": "error",
    "jax_numpy_dtype_promotion": "strict",
    "jax_numpy_rank_promotion": "raise",
    "jax_threefry_partitionable": False,
    "jax_default_prng_impl": "rbg",
    "jax_enable_custom_prng": True,
    "jax_legacy_prng_key": "error",
    "jax_random_seed_offset": 7,
    "jax_high_dynamic_range_gumbel": True,
    "jax_accurate_erf_inv": True,
    "jax_default_matmul_precision": "bfloat16",
    "jax_softmax_custom_jvp": True,
    "jax_use_direct_linearize": False,
    "jax_disable_jit": True,
    "jax_transfer_guard_host_to_device": "disallow",
}


@contextmanager
def under(settings):
    with ExitStack() as stack:
        for name, value in settings.items():
            if name in config_states:
                stack.enter_context(config_states[name](value))
        yield
