#!/usr/bin/env bash
# Inside of a function that Numba compiles, `mean`, `sum` and `var` of float32 arrays add one element after the other in
# float32; NumPy adds in pairs. From 2^24 elements on the difference is no rounding any more: the mean of numbers between
# 10 and 11 is 11.14, the variance of ones is not 0, and a sum of ones stays at 16777216. `nanmean` of the same array is
# right, because Numba adds it in float64, and `nansum` is not.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet numba==0.68.1 numpy==2.4.6
cat > "$folder/try.py" <<'PY'
import sys

import numba
import numpy as np

numbers = np.random.default_rng(0).random(20_000_000, dtype=np.float32) + np.float32(10)
ones = np.ones(20_000_000, np.float32)


@numba.njit
def compiled(array):
    return np.mean(array), np.nanmean(array), np.var(array), np.sum(array), np.nansum(array)


print("numba", numba.__version__, "numpy", np.__version__)
print(f"numbers from {numbers.min():.3f} to {numbers.max():.3f}")
for name, array in (("numbers", numbers), ("ones", ones)):
    in_numpy = np.mean(array), np.nanmean(array), np.var(array), np.sum(array), np.nansum(array)
    print(f"{name}, mean, nanmean, var, sum, nansum by NumPy:", *(f"{value:.6g}" for value in in_numpy))
    print(f"{name}, the same compiled by Numba:           ", *(f"{value:.6g}" for value in compiled(array)))

mean, nanmean, _, _, _ = compiled(numbers)
_, _, variance, total, nantotal = compiled(ones)
as_known = mean > numbers.max() and abs(nanmean - 10.5) < 0.001 and variance > 0.01 and total == nantotal == 2**24
as_known = as_known and abs(numbers.mean() - 10.5) < 0.001 and ones.var() == 0 and ones.sum() == ones.size
sys.exit(0 if as_known else "this has changed: see the comment at the top")
PY
"$folder/venv/bin/python" "$folder/try.py"
