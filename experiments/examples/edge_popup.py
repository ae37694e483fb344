"""A learner of one's own: edge-popup, which keeps the largest scores of each layer; on 5,000 digits.

python experiments/examples/edge_popup.py --density=0.1 --seeds=2
"""

from dataclasses import dataclass

import jax
import jax.numpy as jnp

import ssm
from ssm.initializers import he, signed_constant
from ssm.runs.program import run_program


@jax.custom_vjp
def straight_through(hard, soft):
    return hard


straight_through.defvjp(lambda hard, soft: (hard, None), lambda _, gradient: (None, gradient))


def edge_popup(density: float = 0.1) -> ssm.Learner:
    """Keep the share `density` of each layer with the largest |score|; gradients go straight through to |score|."""

    def init(key, kernel):
        return jax.random.uniform(key, kernel.shape, kernel.dtype, -1, 1) / kernel.shape[-2] ** 0.5, kernel

    def mask(scores, kernel):
        size = jnp.abs(scores)
        kept = max(1, scores.size - int((1 - density) * scores.size))
        return (size >= jnp.sort(size, axis=None)[-kept]).astype(scores.dtype)

    def weight(scores, kernel, key):
        return kernel * straight_through(mask(scores, kernel), jnp.abs(scores))

    return ssm.layerwise(init, weight, mask)


@dataclass(frozen=True, kw_only=True)
class Options:
    """Train a net of three dense layers by edge-popup."""

    density: float = 0.1
    """Share of the weights that is kept in each layer."""
    seeds: int = 2
    epochs: int = 3


def main(options: Options) -> None:
    ssm.use_host_devices()
    digits = ssm.data.load("mnist5k")
    net = ssm.Supermask(ssm.models.FCN(kernel_init=signed_constant(he())), learner=edge_popup(options.density))
    result = ssm.train(
        net,
        data=(digits.train_images, digits.train_labels),
        test=(digits.test_images, digits.test_labels),
        seeds=options.seeds,
        epochs=options.epochs,
        batch_size=64,
        learning_rate=0.1,
        weight_decay=1e-4,
        optimizer=sgd,
    )
    accuracy, density = result.final("test_accuracy").mean(), result.final("remaining_weights").mean()
    print(f"edge-popup, {len(result.seeds)} seeds, {options.epochs} epochs: {accuracy:.2%} at density {density:.2%}")


def sgd(learning_rate, weight_decay):
    return ssm.sgdw(learning_rate, weight_decay, decay="coupled")


if __name__ == "__main__":
    run_program(main, Options, description=__doc__, trains=True)
