"""Mask learners: the protocol, and a factory for each method, one file a method."""

from ssm.learners.base import Layers, Learner, Step, layerwise
from ssm.learners.bbg import bbg
from ssm.learners.binary import binary
from ssm.learners.binary_connect import binary_connect, bnn
from ssm.learners.by_layer import by_layer
from ssm.learners.dense import dense
from ssm.learners.edge_popup import edge_popup
from ssm.learners.force import force
from ssm.learners.gem_miner import gem_miner
from ssm.learners.granet import granet
from ssm.learners.iterand import iterand
from ssm.learners.lr_net import lr_net
from ssm.learners.mpt import mpt
from ssm.learners.mpt_global import mpt_global
from ssm.learners.pretrained import pretrained
from ssm.learners.rigl import rigl
from ssm.learners.sca import sca
from ssm.learners.signed import signed
from ssm.learners.signed_top_k import signed_top_k
from ssm.learners.sparse_evolutionary import sparse_evolutionary
from ssm.learners.steered import steered
from ssm.learners.ttq import ttq
from ssm.learners.twn import twn
from ssm.learners.variable_threshold import variable_threshold
from ssm.learners.zhou import zhou

__all__ = [
    "Layers",
    "Learner",
    "Step",
    "bbg",
    "binary",
    "binary_connect",
    "bnn",
    "by_layer",
    "dense",
    "edge_popup",
    "force",
    "gem_miner",
    "granet",
    "iterand",
    "layerwise",
    "lr_net",
    "mpt",
    "mpt_global",
    "pretrained",
    "rigl",
    "sca",
    "signed",
    "signed_top_k",
    "sparse_evolutionary",
    "steered",
    "ttq",
    "twn",
    "variable_threshold",
    "zhou",
]
