"""Seconds per epoch and seed of every method on the FCN and full MNIST, by turns; run it on an idle machine.

python experiments/benchmarks/learners.py --data-dir DIR
python experiments/benchmarks/learners.py --selection        # of the largest of many scores, beside a sort
"""

from dataclasses import dataclass
from pathlib import Path

from turns import by_turns, epochs_of

from ssm.runs.program import run_program

FIRST = ("signed", "binary", "baseline")
KEPT = 0.1
REPEATED = 100


@dataclass(frozen=True, kw_only=True)
class Options:
    """Time the methods' epochs, evaluation included."""

    methods: str = ""
    """Names as --method has them, with commas between (default: all)."""
    data_dir: Path | None = None
    """Folder of the MNIST files (default: where train.py looks)."""
    rounds: int = 3
    """Timed epochs of each method."""
    seeds: int = 2
    """Seeds of each method."""
    selection: bool = False
    """Time instead the selection of a tenth of a layer's scores, on one device."""


def main(options: Options) -> None:
    from ssm.training.devices import use_host_devices

    use_host_devices()
    if options.selection:
        print("\n".join(selection(options.rounds)))
        return
    from ssm import data
    from ssm.recipes import build
    from ssm.recipes.config import resolve
    from ssm.recipes.literature import LITERATURE

    digits = data.load("mnist", data_dir=options.data_dir)
    names = options.methods.split(",") if options.methods else [*FIRST, *LITERATURE]
    ready = {}
    for name in names:
        given = {"model": "fcn", "method": name, "preset": "protocol", "dataset": "mnist"}
        config = resolve(**given, samples=len(digits.train_labels), overrides={})
        trainer = build.trainer(config, digits, live=False)
        ready[name] = (epochs_of(trainer, config, options.seeds), options.seeds)
    found = by_turns(ready, options.rounds)
    slowest = max(map(len, names))
    first = found[names[0]]["median"]
    for name, times in found.items():
        print(
            f"{name:{slowest}}  minimum {times['minimum']:.3f}  median {times['median']:.3f} s per epoch and seed"
            f"  {times['median'] / first:.2f} of {names[0]}"
        )


def selection(rounds: int) -> list[str]:
    """Return lines of milliseconds: the largest of the FCN's scores, layer by layer, by counting and by sorts.

    Inside one compiled loop, as in training, in which scores move a little from turn to turn.
    """
    import jax
    import jax.numpy as jnp

    from ssm.learners.selection import kept_of, largest_of_each

    shapes = {"a": (784, 300), "b": (300, 100), "c": (100, 10)}
    scores = {name: jax.random.normal(jax.random.key(ord(name)), shape) for name, shape in shapes.items()}
    kept = {name: kept_of(score.size, KEPT) for name, score in scores.items()}

    def by_sorts(magnitudes):
        least = {name: jnp.sort(one, axis=None)[-kept[name]] for name, one in magnitudes.items()}
        return {name: (one >= least[name]).astype(one.dtype) for name, one in magnitudes.items()}

    ways = {
        "by counting": lambda magnitudes: largest_of_each(magnitudes, kept),
        "by sorts": by_sorts,
    }

    def repeated(way):
        def turn(scores, _):
            masks = way({name: jnp.abs(score) for name, score in scores.items()})
            return {name: score * (1 + 1e-4 * masks[name]) for name, score in scores.items()}, None

        compiled = jax.jit(lambda scores: jax.lax.scan(turn, scores, length=REPEATED)[0])
        return lambda number: jax.block_until_ready(compiled(scores))

    times = by_turns({name: (repeated(way), REPEATED) for name, way in ways.items()}, rounds)
    total = sum(score.size for score in scores.values())
    return [f"{name}: minimum {1e3 * one['minimum']:.2f} ms of {total:,} scores" for name, one in times.items()]


if __name__ == "__main__":
    run_program(main, Options, description=__doc__)
