"""Writes a trained net as a small file: `python experiments/export.py RUN --seed 3 --out net.ssm`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from paper.tables import aligned
from ssm.errors import UserError
from ssm.export import Artifact
from ssm.files import save
from ssm.runs.program import run_program
from ssm.runs.reader import read_finished

SUFFIXES = (".ssm", ".safetensors", ".onnx", ".c")


@dataclass(frozen=True, kw_only=True)
class Options:
    """Write one seed of a finished run as a file that holds all that inference needs, and print its size.

    The suffix of --out chooses the form: .ssm (ternary and entropy-coded; `ssm.load`, experiments/predict.py),
    .safetensors and .onnx (dense, for other programs), or .c (one C99 file that adds and subtracts)."""

    run: tyro.conf.Positional[Path]
    """The run's folder, or an artefact (.ssm) to turn into another form."""
    seed: int | None = None
    """Which of the run's seeds (default: the one with the best test accuracy)."""
    out: Annotated[Path, tyro.conf.arg(metavar="FILE")] = Path("net.ssm")
    """The file to write; its folder is created if necessary."""
    compact: bool = False
    """For .onnx: leave out inputs, units and channels that cannot influence the output."""


def main(options: Options) -> None:
    """Export the net and print the table of sizes.

    Raises:
        UserError: for a run or seed that does not exist, or a file that cannot be written.
    """
    suffix = options.out.suffix
    if suffix not in SUFFIXES:
        raise UserError(f"--out={options.out} must end in {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}")
    if options.compact and suffix != ".onnx":
        raise UserError(f"--compact has no effect on {suffix}; leave it out, or write a .onnx file")
    artifact = _artifact(options)
    if suffix == ".ssm":
        size = artifact.save(options.out)
    else:
        data = _converted(artifact, options)
        save(options.out, data)
        size = len(data)
    print("\n".join(_summary(artifact, options.out, size)))
    if options.compact:
        print("\n".join(_removed(artifact)))


def _converted(artifact: Artifact, options: Options) -> bytes:
    from ssm.export.c_source import to_c
    from ssm.export.interop import to_onnx, to_safetensors

    match options.out.suffix:
        case ".c":
            return to_c(artifact, name=options.out.stem).encode("ascii")
        case ".onnx":
            return to_onnx(artifact, compacted=options.compact)
        case _:
            return to_safetensors(artifact)


def _artifact(options: Options) -> Artifact:
    if options.run.suffix == ".ssm" and not options.run.is_dir():
        from ssm.export import load

        if options.seed is not None:
            raise UserError("--seed has no effect on an artefact, which holds one seed; leave it out")
        return load(options.run)
    run = read_finished(options.run)
    seed = options.seed
    if seed is None:
        accuracies = {seed: run.summary["test_accuracy"]["values"][str(seed)] for seed in run.mask_seeds or run.seeds}
        if not accuracies:
            raise UserError(f"{options.run} has no finished seed")
        seed = max(accuracies, key=lambda each: accuracies[each])
    from ssm.export.conversion import from_run  # imports JAX for a second, after the checks that need none

    return from_run(run, seed)


def _removed(artifact: Artifact) -> list[str]:
    """Return lines on what compacting removed, layer by layer."""
    small = artifact.compact()
    cells = [["layer", "kernel", "compacted"]]
    for name, before, after in small.report():
        cells.append([name, *(" x ".join(map(str, shape)) for shape in (before, after))])
    lines = [f"Removed: what cannot influence the output; {small.size:,} of {artifact.weights:,} dense weights remain"]
    if small.features:
        lines.append(f"{small.features[0]:,} of {small.features[1]:,} inputs of the first dense layer are used")
    return lines + aligned(cells)


def _summary(artifact: Artifact, path: Path, size: int) -> list[str]:
    from ssm.analysis import sizes, total

    about = artifact.about
    where = f"seed {about.get('seed')} of {about['run']}: " if "run" in about else ""
    whole = total(map(sizes, artifact.to_numpy().values()))
    rest = sum(4 * value.size for value in artifact.values.values())
    lines = [
        f"{path}: {where}test accuracy {100 * about['test_accuracy']:.2f} %" if "test_accuracy" in about else f"{path}"
    ]
    lines.append(
        f"{artifact.remaining:,} of {artifact.weights:,} weights remain ({artifact.remaining / artifact.weights:.2%})"
    )
    if samples := about.get("checked_samples"):
        lines.append(f"Checked: frozen weights, and the outputs of {samples} test samples, are those that the run kept")
    if "test_accuracy_of_draws" in about:
        accuracy = 100 * about["test_accuracy_of_draws"]
        one = "one fixed draw" if about.get("method") == "zhou" else "the likeliest ones"
        lines.append(f"The run tested draws of the weights ({accuracy:.2f} %); the file holds {one}")
    if artifact.own_values:
        lines.append(f"{artifact.own_values:,} weights have values of their own, 4 bytes each: no small file")
    cells = [["form", "bytes", "dense / form"]]
    for name, count in (
        ("dense float32", whole.dense),
        ("csr (the paper's metric)", whole.csr),
        ("two bits per weight", whole.two_bit + 4 * artifact.own_values),
        ("order-0 entropy", whole.entropy + 4 * artifact.own_values),
        (f"this file ({path.suffix})", size),
    ):
        cells.append([name, f"{count:,.0f}", f"{whole.dense / max(count, 1):.1f}"])
    lines += aligned(cells)
    if rest:
        lines.append(f"The file also holds {rest:,} bytes of batch normalisation, which the other forms do not count.")
    return lines


if __name__ == "__main__":
    run_program(main, Options)
