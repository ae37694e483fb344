"""An H100 that isn't there: XLA's own description of the device, to compile for it on a machine without a GPU."""

import os
from contextlib import contextmanager
from unittest import mock

from ssm.errors import UserError

PEAK = {"float32": 67e12, "tf32x3": 495e12 / 3, "tf32": 495e12, "bfloat16": 989e12}
"""Operations per second of products in each precision, dense, as NVIDIA's data sheet has them; X3 makes three."""
BANDWIDTH = 3.0e12
"""Bytes per second that passes over memory reach, of the 3.35e12 of the data sheet."""
LAUNCH = 2e-6
"""Seconds that a kernel takes at least: an assumption."""
COMPILER = "'nvidia-cuda-nvcc-cu12==12.9.*'"

H100 = """
gpu_device_info {
  threads_per_block_limit: 1024
  threads_per_warp: 32
  shared_memory_per_block: 49152
  shared_memory_per_core: 233472
  threads_per_core_limit: 2048
  core_count: 132
  fpus_per_core: 128
  block_dim_limit_x: 2147483647
  block_dim_limit_y: 65535
  block_dim_limit_z: 65535
  memory_bandwidth: 3352320000000
  l2_cache_size: 52428800
  clock_rate_ghz: 1.98
  device_memory_size: 84929347584
  shared_memory_per_block_optin: 232448
  cuda_compute_capability {
    major: 9
  }
  registers_per_core_limit: 65536
  registers_per_block_limit: 65536
}
platform_name: "CUDA"
dnn_version_info {
  major: 9
  minor: 10
}
runtime_version {
  major: 12
  minor: 9
  patch: 0
}
device_description_str: "NVIDIA H100 80GB HBM3"
"""


@contextmanager
def described_gpu():
    """Give the described device, which the code takes for its backend meanwhile; call it before JAX is imported."""
    os.environ["JAX_SKIP_CUDA_CONSTRAINTS_CHECK"] = "1"  # the plugin otherwise looks for CUDA's libraries
    os.environ["JAX_PLATFORMS"] = ""
    import jax
    from jax.experimental import topologies

    try:
        device = topologies.get_topology_desc(platform="cuda", target_config=H100, topology="1x1x1").devices[0]
    except NotImplementedError as error:
        packages = f"jax-cuda12-plugin=={jax.__version__} jax-cuda12-pjrt=={jax.__version__} {COMPILER}"
        raise UserError(f"JAX's CUDA plugin is not installed; install it: pip install {packages}") from error
    jax.local_devices()  # the CPU's, which the patch must not be asked for
    with mock.patch.object(jax, "default_backend", lambda: "gpu"):
        yield device
