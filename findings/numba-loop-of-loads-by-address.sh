#!/usr/bin/env bash
# A kernel that compares the bytes at two addresses, eight at a time, says that eight equal bytes differ; nine are equal.
# NUMBA_OPT=2 and NUMBA_OPT=1 give the right answer, and so does 0.61.2. The intrinsic is the one of Numba's documentation
# of `intrinsic`: a load from a pointer, aligned to 1. All bytes that are looked at are there. Written as a `for` loop
# over range(0, length - 8, 8) with a return in it, the comparison is right at every level.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv v
v/bin/pip install -q --disable-pip-version-check numba==0.68.1 llvmlite==0.50.0
cat > try.py <<'PY'
import sys

import llvmlite
import numba
import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic


@intrinsic
def word_at(typing, address):
    def generate(context, builder, signature, arguments):
        word = builder.load(builder.inttoptr(arguments[0], ir.IntType(64).as_pointer()))
        word.align = 1
        return word

    return types.uint64(types.intp), generate


@njit
def find(begin, length, names, entries):
    """The first entry if text[:length] and names[:length] are equal, for length >= 8; else -1."""
    place = np.int64(0)
    short = np.int64(length < 8)
    while True:
        entry = entries[place]
        if entry < 0:
            return np.int64(-1)
        if entry & 1 == short:
            number = entry >> 1
            if short:
                return number
            name, i = names.ctypes.data, 0
            while i < length - 8 and word_at(begin + i) == word_at(name + i):
                i += 8
            if i >= length - 8 and word_at(begin + length - 8) == word_at(name + length - 8):
                return number
        place += 1


@njit
def found(text, length, names, entries):
    return find(text.ctypes.data, length, names, entries)


text, entries = np.arange(64, dtype=np.uint8), np.array([0, -1])
result = [int(found(text, length, text.copy(), entries)) for length in (8, 9, 16, 17)]
print(f"numba {numba.__version__}, llvmlite {llvmlite.__version__}: {result}")
sys.exit(result != ([0, 0, 0, 0] if sys.argv[1:] else [-1, 0, 0, 0]))
PY
echo "lengths 8, 9, 16, 17; 0: found, -1: not found"
v/bin/python try.py
NUMBA_OPT=2 v/bin/python try.py right
