"""A minibatch source written in Python feeds train, test and write; its position is in the checkpoints."""

from __future__ import annotations

import json
import re
from pathlib import Path

MODULE = '''
import numpy as np
from cntkpy.readers import MinibatchData, StreamInformation, UserMinibatchSource, Value


class Points(UserMinibatchSource):
    """Points of two classes; the log says where each request began."""

    def __init__(self, count: int):
        self.x = StreamInformation("features", 0, "dense", np.float32, (2,))
        self.y = StreamInformation("labels", 1, "sparse", np.float32, (2,))
        rng = np.random.default_rng(1)
        self.labels = rng.integers(0, 2, count)
        self.points = (rng.normal(size=(count, 2)) * 0.3 + self.labels[:, None] * [2, -2]).astype(np.float32)
        self.at = 0
        super().__init__()

    def stream_infos(self):
        return [self.x, self.y]

    def next_minibatch(self, num_samples, number_of_workers=1, worker_rank=0, device=None):
        with open("requests", "a") as file:
            file.write(f"{self.at} {num_samples} {number_of_workers} {worker_rank}\\n")
        end = min(len(self.points), self.at + num_samples)
        part = slice(self.at, end)
        self.at = end % len(self.points)
        n, over = end - part.start, self.at == 0
        return {
            self.x: MinibatchData(Value(self.points[part]), n, n, over),
            self.y: MinibatchData(Value.one_hot(self.labels[part].tolist(), 2), n, n, over),
        }

    def get_checkpoint_state(self):
        return {"at": self.at}

    def restore_from_checkpoint(self, state):
        self.at = state["at"]
'''
CONFIG = """\
command = train:test:write
modelPath = run/m
traceLevel = 1
reader = [ readerType = UserMinibatchSource ; module = points ; class = Points ; count = 50 ]
train = [ action = train
    SimpleNetworkBuilder = [ layerSizes = 2:2
        trainingCriterion = CrossEntropyWithSoftmax ; evalCriterion = ErrorPrediction ]
    SGD = [ epochSize = 30 ; maxEpochs = 4 ; minibatchSize = 8
        learningRatesPerSample = 0.1 ; keepCheckPointFiles = true ]
    cvReader = [ readerType = UserMinibatchSource ; module = points ; class = Points ; count = 20 ] ]
test = [ action = test ; minibatchSize = 16 ]
write = [ action = write ; outputPath = run/out ; outputNodeNames = HLast ; minibatchSize = 16 ]
"""


def test_train_test_and_write(tmp_path: Path, cntkpy) -> None:
    (tmp_path / "points.py").write_text(MODULE)
    (tmp_path / "main.cntk").write_text(CONFIG)
    got = cntkpy("configFile=main.cntk", cwd=tmp_path)
    assert got.code == 0, got.err
    errors = re.findall(r"Final Results: .*?= ([0-9.]+) \* (\d+)", got.err)
    assert errors
    assert errors[-1][1] == "50"
    outputs = next(p for p in (tmp_path / "run").iterdir() if p.name.startswith("out"))
    assert len(outputs.read_text().splitlines()) == 50
    requests = [tuple(map(int, line.split())) for line in (tmp_path / "requests").read_text().splitlines()]
    assert {r[2:] for r in requests} == {(1, 0)}
    training = [r[:2] for r in requests]
    for epoch, begin in enumerate((0, 30, 10, 40)):  # epochs of 30 of 50 samples follow one another
        assert (begin, 8) in training, epoch
    content = (tmp_path / "run/m.1.ckp").read_bytes()
    header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    assert json.loads(header["__metadata__"]["cntkpy"])["reader"]["source"] == {"at": 30}

    # as if killed in the second epoch: it continues where that epoch began, and ends with the same parameters
    final = (tmp_path / "run/m").read_bytes()
    for name in ("m", "m.2", "m.2.ckp", "m.3", "m.3.ckp", "m.4.ckp"):
        (tmp_path / "run" / name).unlink(missing_ok=True)
    (tmp_path / "requests").unlink()
    got = cntkpy("configFile=main.cntk", "command=train", cwd=tmp_path)
    assert got.code == 0, got.err
    assert (tmp_path / "requests").read_text().startswith("30 8 ")
    assert (tmp_path / "run/m").read_bytes() == final
