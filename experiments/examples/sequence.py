"""One's own data: a GRU that recalls the first symbol of a sequence, on arrays of whole numbers.

python experiments/examples/sequence.py --seeds=2
"""

from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
import optax
from flax import linen as nn

import ssm
from ssm.initializers import he, signed_constant
from ssm.runs.program import run_program

SYMBOLS, LENGTH = 4, 8


class Recall(nn.Module):
    """An embedding, a GRU over the sequence, and a dense layer on its last state."""

    width: int = 32

    @nn.compact
    def __call__(self, symbols):
        x = nn.Embed(SYMBOLS, self.width)(symbols)
        x = nn.RNN(nn.GRUCell(self.width))(x)
        return nn.Dense(SYMBOLS)(jnp.asarray(x)[:, -1])


def sequences(rng: np.random.Generator, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return random sequences [count, LENGTH] and the first symbol of each [count], int32."""
    symbols = rng.integers(0, SYMBOLS, (count, LENGTH), np.int32)
    return symbols, symbols[:, 0]


@dataclass(frozen=True, kw_only=True)
class Options:
    """Train signed Supermasks of a GRU."""

    seeds: int = 2
    epochs: int = 30


def main(options: Options) -> None:
    ssm.use_host_devices()
    rng = np.random.default_rng(0)
    net = ssm.Supermask(Recall(), kernel_init=signed_constant(he()), others="trained")
    result = ssm.train(
        net,
        data=sequences(rng, 4096),
        test=sequences(rng, 512),
        seeds=options.seeds,
        epochs=options.epochs,
        optimizer=optax.adam,
        learning_rate=3e-3,
        schedule=lambda step: np.ones_like(step, np.float32),
    )
    accuracy, density = result.final("test_accuracy").mean(), result.final("remaining_weights").mean()
    print(f"{len(result.seeds)} seeds, {options.epochs} epochs: recalls {accuracy:.2%} of the first symbols,")
    print(f"remaining weights {density:.2%}")


if __name__ == "__main__":
    run_program(main, Options, description=__doc__, trains=True)
