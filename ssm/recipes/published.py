"""Each method's recipe as it was published, on the net that the paper's literature table pairs it with.

Source: the methods' own programs.  Images are standardised one by one here, by channel in most of theirs; where a
program reports the best epoch of a test set, the last one counts here.  A value in brackets in a comment was not found
in a source that could be read, and is the protocol's or a neighbour's.
"""

from typing import Any

from ssm.recipes.change import CONV_NETS, Change, change

TABLE_NETS = ("vgg_small", "vgg_small_1024", "vgg_small_1024x2", "vgg19", "resnet18", "wrn22_2")
"""Nets of the literature table beside the paper's own (`ssm.models.LITERATURE`)."""

_CIFAR: dict[str, Any] = {"augment": "crop_flip", "activation": "relu", "decay": "coupled", "nesterov": False}
_COSINE: dict[str, Any] = {"schedule": "cosine", "epochs": 100, "learning_rate": 0.1, "weight_decay": 1e-4}
_CONSTANT: dict[str, Any] = {"init": "he", "weight_distribution": "signed_constant"}
_NORMAL: dict[str, Any] = {"init": "he", "weight_distribution": "normal"}
_EXPONENTIAL: dict[str, Any] = {"schedule": "exponential", "staircase": False, "weight_decay": 0.0}

PUBLISHED: tuple[Change, ...] = (
    # Zhou et al.: no augmentation, 55,000 and 45,000 training images; the rates of the Conv nets [those of the FCN].
    change(("fcn", *CONV_NETS), "zhou", epochs=2000, batch_size=250, learning_rate=100.0, activation="relu"),
    change(("fcn", *CONV_NETS), "zhou", init="xavier", train_images=45_000),
    change("fcn", "zhou", train_images=55_000),
    # Ramanujan et al.
    change((*CONV_NETS, "resnet18"), "edge_popup", **_CIFAR, **_COSINE, **_CONSTANT, density=0.5),
    change("resnet18", "edge_popup", batch_size=256, weight_decay=5e-4, batch_norm="statistics"),
    # Chijiwa et al.: 45,000 training images, and a random resized crop, for which there is the plain one here.
    change(("conv6", "resnet18"), "iterand", **_CIFAR, **_COSINE, **_CONSTANT, density=0.5, train_images=45_000),
    change("conv6", "iterand", learning_rate=0.3, width=2.0),
    change("resnet18", "iterand", density=0.4, weight_decay=5e-4, batch_norm="statistics"),
    # Diffenderfer and Kailkhura; of VGG-Small, batch norm after every layer instead of every second.
    change((*CONV_NETS, "vgg_small", "resnet18"), "mpt", **_CIFAR, **_COSINE, **_NORMAL, density=0.1),
    change((*CONV_NETS, "vgg_small", "resnet18"), "mpt", method_options=""),  # its own divisor of alpha
    change("vgg_small", "mpt", density=0.05, optimizer="adam", batch_norm="statistics"),
    change("resnet18", "mpt", density=0.2, batch_norm="affine", batch_size=256, weight_decay=5e-4),
    # Sreenivasan et al., before the weights are fine-tuned.
    change("resnet20", "gem_miner", **_CIFAR, **{**_COSINE, "weight_decay": 0.0, "epochs": 150}, **_CONSTANT),
    change("resnet20", "gem_miner", density=0.05, batch_norm="statistics"),
    # de Jorge et al.
    change("vgg19", "force", **_CIFAR, **_NORMAL, density=0.005, schedule="steps", epochs=350, decay_rate=0.1),
    change("vgg19", ("force", "granet"), batch_norm="affine"),
    change("vgg19", "force", milestones="0.4286,0.7143", learning_rate=0.1, weight_decay=5e-4, train_images=45_000),
    # Mocanu et al.: the program has no convolutional net; [the recipe of its MLP].
    change("vgg_small_1024", "set", **_CIFAR, **_NORMAL, schedule="exponential", decay_rate=1.0, epochs=1000),
    change("vgg_small_1024", "set", batch_size=100, learning_rate=0.01, weight_decay=0.0, density=0.054),
    change("vgg_small_1024", "set", batch_norm="affine", method_options="dense_output=True"),
    # Evci et al.
    change("wrn22_2", "rigl", **{**_CIFAR, "nesterov": True}, **_NORMAL, density=0.5, schedule="steps", epochs=250),
    change("wrn22_2", "rigl", milestones="0.3072,0.6144,0.9216", decay_rate=0.2, learning_rate=0.1, dropout=0.3),
    change(
        "wrn22_2",
        "rigl",
        weight_decay=5e-4,
        batch_norm="affine",
        method_options="distribution=uniform,exempt=Conv_0,schedule=constant",
    ),
    # Liu et al.
    change("vgg19", "granet", **{**_CIFAR, "nesterov": True}, **_NORMAL, density=0.05, schedule="steps", epochs=160),
    change("vgg19", "granet", milestones="0.5,0.75", decay_rate=0.1, learning_rate=0.1, weight_decay=5e-4),
    change("vgg19", "granet", train_images=45_000, method_options="every=1000"),
    # Li, Zhang and Liu: the recipe of their MNIST net, [its steps as shares of 160 epochs].
    change("vgg_small_1024", "twn", **_CIFAR, **_NORMAL, schedule="steps", epochs=160, decay_rate=0.1, density=0.0),
    change("vgg_small_1024", "twn", milestones="0.5,0.8333", learning_rate=0.01, weight_decay=1e-4),
    # Zhu et al.: from a trained net, [trained here in the first 400 of 800 epochs].
    change("resnet20", "ttq", **_CIFAR, **_NORMAL, schedule="steps", epochs=800, decay_rate=0.1, density=0.0),
    change("resnet20", "ttq", milestones="0.6025,0.6538,0.6875", learning_rate=0.1, weight_decay=2e-4),
    change("resnet20", "ttq", batch_norm="affine", method_options="exempt=Conv_0,threshold=0.05"),
    # Deng and Zhang: [no recipe was found; that of the ternary nets beside it, and a start that is not all zeros].
    change("vgg_small_1024", "sca", **_CIFAR, **_COSINE, init="xavier", weight_distribution="uniform", density=0.0),
    change("vgg_small_1024", "sca", weight_decay=0.0, method_options="start=1.0"),
    # Shayer, Levi and Fetaya: from a trained net, [trained here in the first 290 of 580 epochs].
    change("vgg_small_1024", "lr_net", **_CIFAR, **_NORMAL, schedule="steps", epochs=580, decay_rate=0.1, density=0.0),
    change("vgg_small_1024", "lr_net", milestones="0.7931", learning_rate=0.01, weight_decay=0.0, optimizer="adam"),
    change("vgg_small_1024", ("twn", "sca", "lr_net"), batch_norm="affine"),
    change("vgg_small_1024", "lr_net", batch_size=256, method_options="exempt=Dense_1"),
    # Courbariaux et al.: no augmentation, ZCA-whitened images, which are standardised ones here.
    change("vgg_small_1024x2", ("binary_connect", "bnn"), **_EXPONENTIAL, epochs=500, decay_epochs=500, batch_size=50),
    change("vgg_small_1024x2", ("binary_connect", "bnn"), loss="squared_hinge", optimizer="adam", density=0.0),
    change(
        "vgg_small_1024x2", ("binary_connect", "bnn"), init="xavier", weight_distribution="uniform", decay="coupled"
    ),
    change("vgg_small_1024x2", ("binary_connect", "bnn"), batch_norm="affine", train_images=45_000),
    change("vgg_small_1024x2", "binary_connect", learning_rate=3e-3, decay_rate=2e-6 / 3e-3, activation="relu"),
    change("vgg_small_1024x2", "binary_connect", method_options="stochastic=True,test=real"),
    change("vgg_small_1024x2", "bnn", learning_rate=1e-3, decay_rate=3e-7 / 1e-3, activation="sign"),
)
