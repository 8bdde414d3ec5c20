#!/usr/bin/env bash
# `import numba` that Ctrl-C ends in its middle cannot be repeated in the process: Python removes the package, but not
# its submodules that are complete, and every later import fails with an AttributeError. Without these
# submodules in sys.modules it works.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv v
v/bin/pip install -q --disable-pip-version-check numba==0.68.1
cat > try.py <<'PY'
import sys
from importlib.metadata import version

import numpy  # noqa: F401  it is there already, as in most programs


class CtrlC:
    """Interrupts the import of a module, once."""

    done = False

    def find_spec(self, name, path=None, target=None):
        if name == "numba.core.typing.templates" and not self.done:
            self.done = True
            raise KeyboardInterrupt


sys.meta_path.insert(0, CtrlC())
print("numba", version("numba"))
try:
    import numba
except KeyboardInterrupt:
    print("first import: KeyboardInterrupt")
errors = []
for _ in range(2):
    try:
        import numba
    except (AttributeError, ImportError) as error:
        errors.append(f"{type(error).__name__}: {error}")
        print("next import:", errors[-1])
for name in [name for name in sys.modules if name.partition(".")[0] == "numba"]:
    del sys.modules[name]
import numba

print("without its modules in sys.modules:", numba.njit(lambda x: x + 1)(1))
sys.exit(len(errors) != 2)
PY
v/bin/python try.py
