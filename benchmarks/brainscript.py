"""BrainScript: speed of the language, and the time until ResNet-110 is ready to train (rows of startup.py).

Each measurement runs in a process of its own, twice. The second run counts: it finds warm caches.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
STEPS = 100_000
PROGRAM = """
sums[i:0..COUNT] = if i == 0 then 0 else sums[i-1] + Weight (i, scale=0.5)
Weight (n, scale=1) = { twice = n * 2 ; value = if twice > 3 then twice * scale else twice - scale }.value
z = sums[COUNT]
"""

JAX = """
import time
start = time.process_time()
import jax
jax.numpy.zeros(1)
print(time.process_time() - start)
"""

LANGUAGE = """
import json, time
from cntkpy.networks.builders.brainscript.language import expressions
from cntkpy.networks.builders.brainscript.language.parse import parse_members
from cntkpy.networks.builders.brainscript.language.source import text_of_string
from cntkpy.networks.builders.brainscript.language.standard import CLASSES
from cntkpy.networks.builders.brainscript.language.values import Scope

def run(count, meaning):
    evaluator = expressions.Evaluator(meaning, CLASSES)
    members = parse_members(text_of_string(PROGRAM.replace("COUNT", str(count)), "b.bs"))
    record = evaluator.evaluate(members, Scope({}, None))
    start = time.process_time()
    for index in range(count + 1):
        evaluator.value(evaluator.value(record.names["sums"], record.place).items[index], record.place)
    return time.process_time() - start

seen = 0
def counting(step):
    def counted(*arguments):
        global seen
        seen += 1
        return step(*arguments)
    return counted

run(1000, {kind: counting(step) for kind, step in expressions.MEANING.items()})
per_element = seen / 1000
count = round(STEPS / per_element)
print(json.dumps([min(run(count, expressions.MEANING) for _ in range(3)), count * per_element]))
"""

NETWORK = """
import json, time
start = time.process_time()
from cntkpy.cntk_config import load
from cntkpy.networks.builders.build import build_network
from cntkpy.networks.graph.initialize import SeedCounter
from cntkpy.trainers.step.step import CompiledStep
from cntkpy.trainers.rules.rules import update_rule
from cntkpy.trainers.parameters.sgd import SGDParameters
imported = time.process_time()
root = load(["configFile=sample_configs/brainscript_resnet.cntk"])
network = build_network(root.section("cifar"), "float", SeedCounter())
built = time.process_time()
nodes = [*network.groups["criterion"], *network.groups["evaluation"]]
CompiledStep(network, nodes, update_rule(SGDParameters(root.section("cifar").section("SGD"))))
print(json.dumps([time.process_time() - start, imported - start, built - imported, len(network.nodes)]))
"""


def second(code: str) -> list[float]:
    """What the second of two processes prints."""
    for _ in range(2):
        done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    return found if isinstance(found, list) else [found]


def import_of_jax() -> float:
    """Seconds of processor time."""
    return second(JAX)[0]


def rows() -> list[tuple[str, float]]:
    """What is measured, and its seconds of processor time."""
    seconds, steps = second(f"PROGRAM = {PROGRAM!r}\nSTEPS = {STEPS}\n{LANGUAGE}")
    total, _imports, _built, nodes = second(NETWORK)
    return [
        (f"{steps:,.0f} expression steps of BrainScript", seconds),
        (f"ResNet-110 in BrainScript, {nodes} nodes, ready to train", total),
    ]
