"""Memory stays flat however large the file is; a saved position costs one chunk, not the file."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from cntkpy.cntk_config.base.systems import memory
from cntkpy.readers import create_reader
from cntkpy.readers.errors import DataError
from cntkpy.readers.pipeline.pack import _fitting
from cntkpy.readers.streams import StreamInformation

SCRIPT = """
import sys
from pathlib import Path
from cntkpy.readers import create_reader

def peak():  # of this process alone; getrusage would begin with the peak of the process that started it
    return int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]) // 1024

reader = create_reader(f'file="{sys.argv[1]}";input=[x=[dim=100;format=dense]];traceLevel=0;{sys.argv[2]}')
reader.start_minibatch_loop(256, 0)
count = 0
while (m := reader.get_minibatch()) is not None:
    count += m.num_samples
    if count == 256 * 40:
        early = peak()
print(count, early, peak())
"""


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """160 MB of text, which would be 320 MB of numbers: more than is kept (256 MB)."""
    path = tmp_path_factory.mktemp("large") / "data.ctf"
    rng = np.random.default_rng(1)
    lines = "".join(f"|x {' '.join(map(str, row))}\n" for row in rng.integers(0, 10, (2000, 100)).tolist())
    with path.open("w") as file:
        for _ in range(400):
            file.write(lines)
    return path


@pytest.mark.thorough
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc")
@pytest.mark.parametrize(
    "options", ["randomize=false", "randomize=true", "randomizationWindow=100000;chunkSizeInBytes=8388608"]
)
def test_memory_is_flat(large, options):
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(large), options], capture_output=True, text=True, check=True
    )
    count, early, late = map(int, done.stdout.split())
    assert count == 800_000
    assert late < 600
    assert late - early < 150, "memory grows with what was read"


@pytest.mark.parametrize(
    ("options", "most"),
    [
        ("randomize=false", 4 << 20),
        ("randomizationWindow=1;chunkSizeInBytes=2097152", 2 << 20),
        # The window is the whole file and larger than memory: what three minibatches need, from all over the file.
        ("randomize=true", 3 * 256 * 2 * 300),
    ],
)
def test_a_saved_position_costs_one_chunk(large, options, most):
    section = f'file="{large}";input=[x=[dim=100;format=dense]];prefetch=false;traceLevel=0;{options}'
    reader = create_reader(section)
    reader.start_minibatch_loop(256, 0)
    state = reader.get_state() | {"minibatchSourcePosition": 500_000}
    sizes, data = [], reader.source.deserializer
    load = data._load
    data._load = lambda runs, *rest: sizes.extend((runs[1] - runs[0]).tolist()) or load(runs, *rest)
    reader.set_state(state)
    minibatch = reader.get_minibatch()
    assert minibatch.num_samples == 256
    assert 0 < sum(sizes) <= most, "bytes of the file that were read"
    if "false" in options:
        assert minibatch.keys[0] == 500_000


@pytest.mark.skipif(memory.of_machine() is None, reason="the system does not say how much memory there is")
def test_a_minibatch_that_cannot_fit_is_refused_with_its_size() -> None:
    stream = StreamInformation("x", (1_000_000_000,))
    with pytest.raises(DataError, match=r"a minibatch of 1000 samples of the dense stream 'x'.* takes 4000.0 GB"):
        _fitting(1000, stream)
    assert _fitting(2, StreamInformation("x", (3,))) == (2, 3)
