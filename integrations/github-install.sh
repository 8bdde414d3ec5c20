#!/usr/bin/env bash
# Installs cntkpy into an environment of its own, and puts its program on the PATH of the steps that follow.
# Reads INPUT_PYTHON (default python3) and INPUT_VERSION (default: the package beside this file), and what the runner
# sets: RUNNER_TEMP, GITHUB_PATH.
set -euo pipefail

package=$(cd "$(dirname "$0")/.." && pwd)
if [ -n "${INPUT_VERSION:-}" ]; then
    package="cntkpy==$INPUT_VERSION"
fi
environment=$RUNNER_TEMP/cntkpy
"${INPUT_PYTHON:-python3}" -m venv "$environment"
programs=$environment/bin
if [ -d "$environment/Scripts" ]; then # Windows
    programs=$environment/Scripts
fi
"$programs/python" -m pip install --quiet --disable-pip-version-check "$package"
echo "$programs" >>"$GITHUB_PATH"
