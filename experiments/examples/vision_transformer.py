"""One's own net: a small vision transformer on 5,000 digits, its dense and attention kernels masked.

python experiments/examples/vision_transformer.py --seeds=2
"""

from dataclasses import dataclass

import jax.numpy as jnp
import optax
from flax import linen as nn

import ssm
from ssm.initializers import he, signed_constant
from ssm.runs.program import run_program


class Block(nn.Module):
    """Self-attention and two dense layers, each beside a shortcut."""

    heads: int = 4

    @nn.compact
    def __call__(self, x):
        width = x.shape[-1]
        x += nn.MultiHeadDotProductAttention(num_heads=self.heads)(nn.LayerNorm()(x))
        y = nn.gelu(nn.Dense(2 * width)(nn.LayerNorm()(x)))
        return x + nn.Dense(width)(y)


class VisionTransformer(nn.Module):
    """Patches of 7 x 7 pixels, a learned position each, `depth` blocks, the mean, a dense layer."""

    width: int = 64
    depth: int = 2
    classes: int = 10

    @nn.compact
    def __call__(self, x):
        x = nn.Conv(self.width, (7, 7), (7, 7), padding="VALID")(x)
        x = x.reshape(len(x), -1, self.width)
        x += self.param("position", nn.initializers.normal(0.02), x.shape[1:])
        for _ in range(self.depth):
            x = Block()(x)
        return nn.Dense(self.classes)(jnp.mean(nn.LayerNorm()(x), axis=1))


@dataclass(frozen=True, kw_only=True)
class Options:
    """Train signed Supermasks of a small vision transformer."""

    seeds: int = 2
    epochs: int = 10


def main(options: Options) -> None:
    ssm.use_host_devices()
    digits = ssm.data.load("mnist5k")
    # Scales, offsets and positions are trained; kernels are frozen, and masked.
    net = ssm.Supermask(VisionTransformer(), kernel_init=signed_constant(he()), others="trained")
    result = ssm.train(
        net,
        data=(digits.train_images, digits.train_labels),  # uint8 images are standardised one by one
        test=(digits.test_images, digits.test_labels),
        seeds=options.seeds,
        epochs=options.epochs,
        batch_size=64,
        optimizer=optax.adamw,
        learning_rate=1e-3,
        weight_decay=1e-4,
        schedule=optax.cosine_decay_schedule(1.0, options.epochs * 63),
    )
    accuracy, density = result.final("test_accuracy").mean(), result.final("remaining_weights").mean()
    print(f"{len(result.masks)} masked layers, {len(result.seeds)} seeds, {options.epochs} epochs")
    print(f"accuracy {accuracy:.2%}, remaining weights {density:.2%}")


if __name__ == "__main__":
    run_program(main, Options, description=__doc__, trains=True)
