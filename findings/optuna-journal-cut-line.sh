#!/usr/bin/env bash
# Optuna's journal in a file: a last line that was cut (a full disk, a machine that stopped) is passed over on reading,
# but the next write is appended to what is left of it. From then on nobody can open the study.
# Exit status: 0 while that is so, 1 where it has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q "optuna==4.6.0" >/dev/null
cd "$folder"
cat >try.py <<'END'
import json
import os
import sys

import optuna
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend

optuna.logging.set_verbosity(optuna.logging.ERROR)
print("optuna", optuna.__version__)


def study():
    return optuna.create_study(storage=JournalStorage(JournalFileBackend("j")), study_name="s", load_if_exists=True)


made = study()
made.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=3)
os.truncate("j", os.path.getsize("j") - 20)
reopened = study()
print("opened after the cut: %d trials" % len(reopened.trials))
try:
    reopened.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=1)
    print("one more trial in the same process: done")
except Exception as error:
    print("one more trial in the same process: %s: %s" % (type(error).__name__, error))
try:
    print("opened again: %d trials" % len(study().trials))
    sys.exit(1)
except json.JSONDecodeError as error:
    print("opened again: JSONDecodeError: %s" % error)
END
"$folder/venv/bin/python" try.py
