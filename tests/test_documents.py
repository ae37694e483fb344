"""Documents are true: tables are those of experiments/results, snippets run, what is named exists."""

import ast
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import ssm
from ssm import data
from tests.support.quick import quick

ROOT = Path(__file__).resolve().parents[1]
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "experiments" / "results" / "README.md"]
DOCUMENTS += sorted((ROOT / "docs").glob("**/README.md")) + sorted((ROOT / "docs").glob("*.md"))
NAME = re.compile(r"(?<![\w./-])ssm(?:\.[A-Za-z_]\w*)+")
FENCE = re.compile(r"^ *```(\w*)\n(.*?)^ *```$", re.DOTALL | re.MULTILINE)

# What a document's snippets speak of and do not make themselves.  net.ssm, the FCN in experiments/results/nets, and
# experiments/ lie in the folder where they run.
IMAGES = "import ssm; digits = ssm.data.load('mnist5k'); images = digits.test_images[:3]\n"
OWN_MODEL = """
import jax, jax.numpy as jnp, ssm
from flax import linen as nn
from ssm.initializers import he, signed_constant
class MyModule(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.Dense(2)(x)
model = ssm.Supermask(MyModule(), kernel_init=signed_constant(he()))
variables = model.init(jax.random.key(0), jnp.ones((1, 3)))
"""
PREPARED = {"docs/artefacts.md": IMAGES + OWN_MODEL}  # images, model, variables, MyModule

# What must hold after the snippets, where they say what comes out.
CHECKS = {
    "README.md": """
assert result.masks["Dense_0"].shape == (3, 784, 300) and set(np.unique(result.masks["Dense_0"])) <= {-1, 0, 1}
assert (result.final("test_accuracy") > 0.85).all() and (result.final("remaining_weights") < 0.05).all()
assert abs(hits.mean() - 0.99) < 0.003
""",
    "docs/artefacts.md": """
hits = net.module.apply(net.variables, net.standardize(digits.test_images)).argmax(1) == digits.test_labels
assert abs(hits.mean() - 0.99) < 0.003
raw = net.module.apply(net.variables, digits.test_images.astype("float32")).argmax(1) == digits.test_labels
assert abs(raw.mean() - 0.70) < 0.01
np.testing.assert_allclose(net.runtime().logits(images), net.logits(images), rtol=1e-4, atol=1e-4)
""",
    "docs/flax.md": """
import jax, jax.numpy as jnp
variables = ssm.Supermask(net, learner=last_is_dense).init(jax.random.key(0), jnp.ones((1, 8)))
assert set(ssm.Supermask(net, learner=last_is_dense).masks(variables)) == {"layers_0/kernel", "layers_2/kernel"}
""",
    "docs/format.md": """
header, values, layers = read(open("tiny.ssm", "rb").read())
assert values == (1.0, -2.0) and list(layers) == ["First", "Last"]
""",
    "docs/masks.md": 'assert hidden_inputs(masks["Dense_0"]) == 280',
    "docs/own-learner.md": """
assert result.masks["layers_1"].shape == (2, 784, 32)
assert abs((result.masks["layers_1"] == 1).mean() - 0.2) < 0.001
""",
    "docs/own-net.md": "assert loaded.logits(test[0][:5]).shape == (5, 10)",
}
RUNNER = """
import re, sys
from pathlib import Path
import numpy
path, prepared, checks, fence = sys.argv[1:]
names = {"__name__": "document"}
exec(prepared, names)
text = Path(path).read_text(encoding="utf-8")
for found in re.finditer(fence, text, re.DOTALL | re.MULTILINE):
    if found[1] == "python":
        exec(compile("\\n" * text.count("\\n", 0, found.start(2)) + found[2], path, "exec"), names)
exec(checks, names | {"np": numpy})
"""


def run(*arguments, cwd=ROOT, **environment):
    own = os.environ | {"PYTHONPATH": str(ROOT)} | environment
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, cwd=cwd, env=own)


def name_of(path):
    return path.relative_to(ROOT).as_posix()


def languages(path):
    return [found[1] for found in FENCE.finditer(path.read_text(encoding="utf-8"))]


def strings(path):
    """Return a Python file's string literals: docstrings, messages and the constant parts of f-strings."""
    nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    return [node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]


def test_embedded_tables_are_up_to_date():
    cogged = [str(path) for path in DOCUMENTS if "[[[cog" in path.read_text(encoding="utf-8")]
    assert len(cogged) == 11
    done = run("-m", "cogapp", "--check", "-P", "-I", "experiments", *cogged)
    assert done.returncode == 0, f"make results brings them up to date\n{done.stdout}{done.stderr}"


@pytest.mark.parametrize(("form", "suffix"), quick([("markdown", "md"), ("latex", "tex"), ("csv", "csv")]))
def test_the_tables_are_those_of_the_committed_runs(form, suffix):
    done = run("experiments/table.py", "experiments/results", f"--format={form}")
    committed = (ROOT / "docs" / "results" / f"tables.{suffix}").read_text(encoding="utf-8")
    assert done.stdout == committed, f"make results\n{done.stderr}"


@pytest.mark.parametrize(
    ("net", "run", "size"), [("fcn", "fcn-signed-elus-f7f77f1afe", 5935), ("conv2", "conv2-signed", 19938)]
)
def test_committed_nets_are_read_and_classify(net, run, size):
    path = ROOT / "experiments" / "results" / "nets" / f"{net}.ssm"
    loaded = ssm.load(path)
    assert loaded.about["run"].startswith(run) and path.stat().st_size == size
    if net == "fcn":
        digits = data.load("mnist5k")
        hits = loaded.runtime().logits(digits.test_images).argmax(1) == digits.test_labels
        assert hits.mean() > 0.95  # of the full set's training, in which these digits are


@pytest.mark.parametrize("path", DOCUMENTS, ids=name_of)
def test_links_lead_somewhere(path):
    text = path.read_text(encoding="utf-8")
    targets = [target for target in re.findall(r"\]\(([^)#]+)", text) if "://" not in target]
    assert not [target for target in targets if not (path.parent / target).exists()]


@pytest.mark.parametrize("path", DOCUMENTS, ids=name_of)
def test_fences_say_their_language(path):
    assert not set(languages(path)) - {"python", "sh", "json", "text", ""}  # python: it is run, below


SLOW = ("README.md", "own-net.md", "own-learner.md")
"""Documents whose snippets train nets at full size, or several; the test suite has shorter tests of what they show."""


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, marks=[pytest.mark.slow] if path.name in SLOW else [], id=name_of(path))
        for path in DOCUMENTS
        if "python" in languages(path)
    ],
)
def test_snippets_run(path, tmp_path):
    name = name_of(path)
    shutil.copy(ROOT / "experiments" / "results" / "nets" / "fcn.ssm", tmp_path / "net.ssm")
    (tmp_path / "experiments").symlink_to(ROOT / "experiments")
    texts = [str(path), PREPARED.get(name, ""), CHECKS[name], FENCE.pattern]
    # That they run is what is tested: what XLA would gain in speed takes longer than it saves.
    done = run("-c", RUNNER, *texts, cwd=tmp_path, JAX_DISABLE_MOST_OPTIMIZATIONS="1")
    assert done.returncode == 0, done.stderr


def test_every_name_is_there_after_import_ssm_alone():
    texts = {name_of(path): [path.read_text(encoding="utf-8")] for path in DOCUMENTS}
    for folder in ("ssm", "experiments"):
        texts |= {name_of(path): strings(path) for path in sorted((ROOT / folder).rglob("*.py"))}
    named = {(name, where) for where, lines in texts.items() for line in lines for name in NAME.findall(line)}
    files = {path.name for path in (ROOT / "ssm").rglob("*")}  # ssm.mplstyle is one
    named = sorted((name, where) for name, where in named if name not in files)
    assert len(named) > 50
    modules = [path.relative_to(ROOT).with_suffix("").parts for path in (ROOT / "ssm").rglob("*.py")]
    named += [(".".join(parts).removesuffix(".__init__"), "the modules themselves") for parts in modules]
    program = f"""
import functools, ssm
for name, where in {named!r}:
    try:
        functools.reduce(getattr, name.split(".")[1:], ssm)
    except AttributeError as error:
        print(f"{{where}}: {{name}}: {{error}}")
"""
    done = run("-c", program)
    assert (done.returncode, done.stdout) == (0, ""), done.stdout + done.stderr


def test_import_ssm_alone_does_not_import_jax():
    assert run("-c", "import ssm, sys; assert 'jax' not in sys.modules; assert len(dir(ssm)) > 20").returncode == 0


@pytest.mark.parametrize(
    ("program", "options", "said"),
    [
        pytest.param(
            "edge_popup",
            ["--epochs=1", "--seeds=1"],
            r"edge-popup, 1 seeds, 1 epochs: \d\d\.\d\d% at density 10.00%",
            marks=pytest.mark.slow,
        ),
        pytest.param("sequence", ["--epochs=1"], r"remaining weights \d\d\.\d\d%", marks=pytest.mark.slow),
        pytest.param("vision_transformer", ["--epochs=1"], r"14 masked layers, 2 seeds", marks=pytest.mark.slow),
    ],
    ids=["edge_popup", "sequence", "vision_transformer"],
)
def test_examples_run(program, options, said):
    done = run(f"experiments/examples/{program}.py", *options)
    assert done.returncode == 0, done.stderr
    assert re.search(said, done.stdout), done.stdout


def test_what_the_examples_printed_is_of_these_programs():
    text = (ROOT / "experiments" / "results" / "examples-cpu.txt").read_text(encoding="utf-8")
    programs = re.findall(r"^\$ python (\S+)$", text, re.MULTILINE)
    assert programs == [name_of(path) for path in sorted((ROOT / "experiments" / "examples").glob("*.py"))]


def test_the_index_has_every_page():
    index = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    pages = {path.name for path in (ROOT / "docs").glob("*.md")} - {"README.md"}
    assert pages == set(re.findall(r"\]\(([\w-]+\.md)\)", index))


def test_the_readme_is_short():
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 125 and max(len(line) for line in lines if not line.startswith("|")) <= 130
