#!/usr/bin/env bash
# The same function takes 3 to 4 times as long inside of `lax.scan` as outside on XLA's CPU backend: a sum of 36 weighted
# slices of padded images, the body of a grouped convolution. An `optimization_barrier` on the padded images gives the
# time of the function alone; with --xla_cpu_use_fusion_emitters=false all three take the same time.
# Training loops written with `scan` hit it; a benchmark of the single function does not show it.
# All runs on one processor: the clock of a process lacks what threads on other processors have just done.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q jax==0.10.2 jaxlib==0.10.2
cd "$folder"
cat >time_it.py <<'PYTHON'
import os
import time

os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})

import jax
import jax.numpy as jnp

STEPS, GROUPS = 4, 32


def convolve(x, kernel, between=lambda array: array):
    """Convolve x (N, 28, 28, 128), 4 channels a group, with kernel (3, 3, 4, 128)."""
    padded = between(jnp.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0))))
    total = 0
    for row in range(3):
        for column in range(3):
            seen = padded[:, row : row + 28, column : column + 28].reshape(*x.shape[:3], GROUPS, 4)
            for channel in range(4):
                total += jnp.repeat(seen[..., channel], 4, axis=-1) * kernel[row, column, channel]
    return total


def scan(images, kernel):
    """Convolve each of the stacked images."""
    return jax.lax.scan(lambda carry, x: (carry, convolve(x, kernel)), 0, images)[1]


def scan_with_barrier(images, kernel):
    """Convolve each of the stacked images, padded first."""
    step = lambda carry, x: (carry, convolve(x, kernel, jax.lax.optimization_barrier))
    return jax.lax.scan(step, 0, images)[1]


def milliseconds(function, *arguments):
    function = jax.jit(function)
    jax.block_until_ready(function(*arguments))
    times = []
    for _ in range(15):
        begin = time.process_time()
        jax.block_until_ready(function(*arguments))
        times.append(time.process_time() - begin)
    return min(times) * 1000


keys = jax.random.split(jax.random.key(0), 2)
images, kernel = jax.random.normal(keys[0], (STEPS, 8, 28, 28, 128)), jax.random.normal(keys[1], (3, 3, 4, 128))
alone = milliseconds(convolve, images[0], kernel)
loop = milliseconds(scan, images, kernel) / STEPS
barrier = milliseconds(scan_with_barrier, images, kernel) / STEPS
print(f"alone {alone:.1f} ms, in a scan {loop:.1f} ms a step, with a barrier {barrier:.1f} ms")
print(f"ratio {loop / alone:.1f}, to the loop with a barrier {loop / barrier:.1f}")
PYTHON
"$folder/venv/bin/python" -c 'import jax; print("jax", jax.__version__)'
"$folder/venv/bin/python" time_it.py | tee usual
echo "with --xla_cpu_use_fusion_emitters=false:"
XLA_FLAGS=--xla_cpu_use_fusion_emitters=false "$folder/venv/bin/python" time_it.py
ratios() { sed -n 's/^ratio \([0-9.]*\), .*barrier \([0-9.]*\)$/\1 \2/p' "$1"; }
ratios usual | awk '{ exit !($1 > 2 && $2 > 2) }'
