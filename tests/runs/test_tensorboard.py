import struct

import pytest

from ssm.runs.tensorboard import board
from ssm.training.loop import Progress

event_pb2 = pytest.importorskip("tensorboardX.proto.event_pb2")


def scalars(folder):
    """Return (tag, epoch, value) of a folder's event files: records of length, its checksum, the event, a checksum."""
    found = []
    for path in sorted(folder.iterdir()):
        data, place = path.read_bytes(), 0
        while place < len(data):
            (length,) = struct.unpack_from("<Q", data, place)
            event = event_pb2.Event.FromString(data[place + 12 : place + 12 + length])
            found += [(value.tag, event.step, value.simple_value) for value in event.summary.value]
            place += 12 + length + 4
    return found


def test_each_seed_has_its_curve(tmp_path):
    rows = [
        {"seed": seed, "epoch": epoch, "test_accuracy": 0.5 + seed / 8, "Dense_0:remaining": 0.25}
        for epoch in (4, 5)
        for seed in (0, 2)
    ]
    runs = [tmp_path.name, "another"]
    with board(tmp_path) as report:
        report(Progress([0, 2], 4, rows[:2], 1.0, {}, [0, 1], runs))
        report(Progress([0, 2], 5, rows[2:], 1.0, {}, [0, 1], runs))
    assert scalars(tmp_path / "tensorboard" / "another" / "seed-0002") == [
        ("test_accuracy", 4, 0.75),
        ("Dense_0/remaining", 4, 0.25),
        ("test_accuracy", 5, 0.75),
        ("Dense_0/remaining", 5, 0.25),
    ]
    assert len(scalars(tmp_path / "tensorboard" / "seed-0000")) == 4
