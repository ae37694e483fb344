"""What XLA's GPU compiler makes of the training programs, without a GPU, and how its text is counted."""

import json
import os
import subprocess
import sys
from importlib.util import find_spec

import pytest

from benchmarks import hlo
from tests.support.programs import ROOT

PROGRAM = ROOT / "experiments" / "benchmarks" / "gpu_compile.py"
PACKAGES = os.environ.get("SSM_TEST_CUDA", "")  # a folder of them, as .ci/run makes it
WAYS = {"fcn float32": 0.5e9, "conv4 float32": 1.8e9, "conv4 float32 vmap": 9e9}
"""Ways, and bytes of arguments and temporaries that 50 seeds must stay below: some 15 % more than they took."""


def run(*arguments):
    path = os.pathsep.join(filter(None, (str(ROOT), PACKAGES)))
    return subprocess.run(
        [sys.executable, PROGRAM, *arguments], capture_output=True, text=True, env=os.environ | {"PYTHONPATH": path}
    )


@pytest.mark.slow
@pytest.mark.skipif(
    not PACKAGES and find_spec("jax_plugins") is None,
    reason="JAX's CUDA plugin is not installed; see docs/gpu.md, and SSM_TEST_CUDA for a folder that has it",
)
def test_what_the_training_programs_are_on_a_gpu():
    done = run("--json", f"--ways={','.join(WAYS)}")
    assert done.returncode == 0, done.stderr
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert [one["way"] for one in found] == list(WAYS)
    assert [one["loop"] for one in found] == ["vmap", "map", "vmap"]
    for one in found:
        assert one["windows"] == 0, "a forward convolution has a window above 3 x 3"
        assert one["donated"] >= one["state"] > 1e8
        assert one["arguments"] + one["temporary"] < WAYS[one["way"]]
        assert 20 < one["kernels"] < 80 and one["step_bytes"] > 1e8


def test_a_way_that_there_is_not_is_one_message_as_is_a_missing_plugin():
    done = run("--ways=fcn float33")
    assert done.returncode == 2
    assert "is not NET PRECISION [LOOP [FORM]]" in done.stderr or "pip install jax-cuda12-plugin==" in done.stderr


TEXT = """HloModule jit_device_epoch, is_scheduled=true

%fused (param_0: f32[469,128], param_1: s32[], param_2: f32[128,10]) -> f32[128,10] {
  %param_0 = f32[469,128]{1,0} parameter(0)
  %param_1 = s32[] parameter(1)
  %zero = s32[] constant(0)
  %slice = f32[1,128]{1,0} dynamic-slice(%param_0, %param_1, %zero), dynamic_slice_sizes={1,128}
  %param_2 = f32[128,10]{1,0} parameter(2)
  ROOT %add = f32[128,10]{1,0} add(%param_2, %slice)
}

%update (param_0: f32[50,7], param_1: f32[1,7], param_2: s32[]) -> f32[50,7] {
  %param_0 = f32[50,7]{1,0} parameter(0)
  %param_1 = f32[1,7]{1,0} parameter(1)
  %param_2 = s32[] parameter(2)
  ROOT %put = f32[50,7]{1,0} dynamic-update-slice(%param_0, %param_1, %param_2, %param_2)
}

%body (arg: (s32[], f32[469,128], /*index=2*/f32[128,10], f32[50,7], f32[1,7])) -> (s32[], f32[128,10]) {
  %arg = (s32[], f32[469,128], /*index=2*/f32[128,10]) parameter(0)
  %i = s32[] get-tuple-element(%arg), index=0
  %rates = f32[469,128]{1,0} get-tuple-element(%arg), index=1
  %x = f32[128,10]{1,0} get-tuple-element(%arg), index=2
  %all = f32[50,7]{1,0} get-tuple-element(%arg), index=3
  %one = f32[1,7]{1,0} get-tuple-element(%arg), index=4
  %sum = f32[128,10]{1,0} fusion(%rates, %i, %x), kind=kLoop, calls=%fused
  %put.1 = f32[50,7]{1,0} fusion(%all, %one, %i), kind=kLoop, calls=%update
  %conv = (bf16[2,8,8,4]{3,2,1,0}, u8[9]{0}) custom-call(%x), window={size=32x3}, target="__cudnn$convForward"
  ROOT %tuple = (s32[], f32[128,10]{1,0}) tuple(%i, %sum)
}

ENTRY %main (p: f32[2]) -> f32[2] {
  %p = f32[2]{0} parameter(0)
  %loop = (s32[], f32[128,10]{1,0}) while(%p), body=%body, backend_config={"known_trip_count":{"n":"469"}}
  ROOT %q = f32[2]{0} copy(%p)
}
"""


def test_kernels_and_their_bytes_are_counted_in_each_turn():
    (turn,) = hlo.turns(hlo.computations(TEXT))
    assert turn.trips == 469 and [kernel.name for kernel in turn.kernels] == ["sum", "put.1", "conv"]
    rates_sliced, batch = 4 * 128, 4 * 128 * 10
    added = rates_sliced + 4 + batch + batch
    put = 4 * 7 + 4 + 4 * 7  # in place: the rest of the fifty stays where it is
    convolved = batch + 2 * 2 * 8 * 8 * 4  # its scratch space is nobody's
    assert turn.bytes == added + put + convolved
    assert turn.kernels[-1].named(r"window=\{size=([\dx]+)") == "32x3"
