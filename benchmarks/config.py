"""Parsing and resolving a generated configuration, and `check` of one with many unknown names (rows of startup.py)."""

import gc
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from cntkpy.cntk_config import parse
from cntkpy.cntk_config.export import Export


def generate(assignments: int) -> str:
    """A configuration with this many assignments, nested three levels deep, every fourth with a variable."""
    lines = ["# A generated configuration. Comments, blank lines and indentation make up about half of it."]
    lines += ["dataDir=/data/speech", "modelDir=$dataDir$/models", "command=train0:train1"]
    count, block = 3, 0
    while count < assignments:
        lines += ["", "#" * 78, f"# The training of network number {block}, with a schedule of its own", "#" * 78, ""]
        lines += [
            f"train{block} = [  # opened on the line of its name; closed below",
            '  action = "train"',
            f"  modelPath = $modelDir$/net{block}.model",
        ]
        lines += [
            "  SGD = [",
            f"    epochSize = {block}",
            "    learningRatesPerMB = 0.8:0.4*10:0.08   # the last one repeats",
        ]
        lines += [f"    minibatchSize = {block + 1}:256*3", "    schedule = [", '      kind = "exponential"']
        lines += ["      rate = 0.98 ; steps = (1:2:3)", "    ]", "  ]", "  reader = {"]
        lines += [f'    file = "$dataDir$/part{block}.ctf"', "    randomize = true ; keep = $modelDir$", "  }", "]"]
        count, block = count + 13, block + 1
    return "\n".join(lines) + "\n"


def resolve(text: str) -> int:
    """Parse the text, and read every value of it."""
    return len(Export(parse(text)).json())


def unknown_names(count: int) -> str:
    """A training with this many names in one section that nothing reads."""
    names = "\n".join(f"unknownName{number}={number}" for number in range(count))
    return f"command=train\ntrain=[action=train;modelPath=m;SGD=[maxEpochs=1\n{names}\n]]\n"


def check_time(count: int) -> float:
    """Seconds of processor time that `cntkpy check` takes with so many names, the whole process."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "names.cntk"
        path.write_text(unknown_names(count))
        before = os.times().children_user
        subprocess.run([sys.executable, "-P", "-m", "cntkpy", "check", path], check=False, stdout=subprocess.DEVNULL)
        return os.times().children_user - before


def processor_time(text: str) -> float:
    """Seconds of processor time, the median: other work on the machine counts little."""
    times = []
    for _ in range(5):
        gc.collect()
        start = time.process_time()
        resolve(text)
        times.append(time.process_time() - start)
    return statistics.median(times)


def rows() -> list[tuple[str, float]]:
    """What is measured, and its seconds of processor time."""
    large = generate(20_000)
    resolve(generate(2_000))
    return [
        (f"parse and resolve {len(large) / 1e6:.0f} MB, 20,000 assignments", processor_time(large)),
        ("`cntkpy check`, 20,000 unknown names in one section", check_time(20_000)),
    ]
