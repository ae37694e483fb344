"""docs/format.md: its example is what the writer writes, and its reader reads what the writer wrote."""

import json
import re

import numpy as np

from ssm.export.serialization import to_bytes
from tests.support.artifacts import DOCUMENT, second_reader, tiny

TEXT = DOCUMENT.read_text("utf-8")


def test_the_example_is_what_is_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exec(re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)[0], {})
    data = (tmp_path / "tiny.ssm").read_bytes()
    shown = "".join(re.findall(r"^[0-9a-f]{8}: ([0-9a-f ]{39})  ", TEXT, re.MULTILINE))
    shown = bytes.fromhex(shown)
    header, values, layers = second_reader().read(shown)
    assert second_reader().read(data) == (header, values, layers)
    assert header == json.loads(re.findall(r"```json\n(.*?)```", TEXT, re.DOTALL)[0])
    assert values == (1.0, -2.0)
    assert layers == {"First": [1, 0, -1, 0, 0, 0, 0, 1, 0, 0, 0, 1], "Last": [1, 0, -1, 0, 0, 1]}
    assert data[:12] == shown[:12] and data[-16:] == shown[-16:]  # the header between is zlib's
    assert "`zlib.decompress(data[60:236])`, 234 bytes" in TEXT and len(shown) == 252


def test_its_reader_reads_a_net():
    header, values, layers = second_reader().read(to_bytes(tiny()))
    assert header["about"] == {"seed": 7} and values == ()
    assert layers == {name: array.reshape(-1).tolist() for name, array in tiny().to_numpy().items()}
    assert all(np.prod(shape) == len(layers[name]) for name, shape, *_ in header["layers"])
