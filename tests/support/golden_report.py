"""The table of the golden cases of the related work's methods: python -m tests.support.golden_report

It runs the learners' tests, which write down how far they are from what the methods' own programs computed.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.support.literature import FOLDER, REPORT

METHODS = {
    "Zhou's Supermask": ("test_zhou", "zhou_supermask"),
    "edge-popup": ("test_edge_popup", "edge_popup"),
    "IteRand": ("test_iterand", "iterand"),
    "MPT-1/32, both forms": ("test_mpt", "mpt"),
    "signed top-k (SupSup)": ("test_signed_top_k", "supsup_signed_topk"),
    "Gem-Miner": ("test_gem_miner", "gem_miner"),
    "FORCE, iterative SNIP": ("test_force", "force"),
    "RigL, and SET in its program": ("test_rigl", "rigl_set"),
    "SET": ("test_sparse_evolutionary", "set_original"),
    "GraNet": ("test_granet", "granet"),
    "TWN": ("test_twn", "twn"),
    "TTQ": ("test_ttq", "ttq"),
    "SCA": ("test_sca", "sca"),
    "LR-Net": ("test_lr_net", "lr_net"),
    "BinaryConnect, BNN": ("test_binary_connect", "binaryconnect_bnn"),
}
"""Names, with the file of tests and that of golden values."""


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "comparisons"
        files = [f"tests/learners/{name}.py" for name, _ in METHODS.values()]
        environment = os.environ | {REPORT: str(report)}
        every = [sys.executable, "-m", "pytest", "-q", "-m", "not gpu", *files]  # the slow ones, too
        ran = subprocess.run(every, env=environment, check=False)
        lines = [line.split("\t") for line in report.read_text(encoding="utf-8").splitlines()]
    print("\n| method | cases | arrays of numbers | largest difference | masks, all equal |")
    print("| --- | --- | --- | --- | --- |")
    for name, (test, golden) in METHODS.items():
        cases = json.loads((FOLDER / f"{golden}.json").read_text(encoding="utf-8"))["cases"]
        numbers = [float(value) for file, kind, value in lines if (file, kind) == (test, "numbers")]
        masks = [file for file, kind, _ in lines if (file, kind) == (test, "masks")]
        largest = f"{max(numbers):.1e}" if numbers else ""
        print(f"| {name} | {len(cases)} | {len(numbers)} | {largest} | {len(masks)} |")
    sys.exit(ran.returncode)


if __name__ == "__main__":
    main()
