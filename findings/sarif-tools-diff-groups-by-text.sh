#!/usr/bin/env bash
# sarif-tools: `sarif diff` reports an unchanged result as new when its neighbour of the same rule is mended.
#
# A good guess: `sarif diff` compares results, by `partialFingerprints` if a file has them. Seen with sarif-tools 3.0.5:
# it compares counts of groups, and a group is named after the text that all its results begin with. When one of two
# results of a rule is gone, the group of the other one is named after its whole text, so one "new issue" and one
# "eliminated issue" are printed, and `--check note` fails. Fingerprints are not looked at.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip install -q sarif-tools==3.0.5

cat >write.py <<'PYTHON'
import json, sys


def result(name, line):
    place = {"artifactLocation": {"uri": "main.cfg"}, "region": {"startLine": line}}
    return {
        "ruleId": "X1", "level": "note", "message": {"text": f"{name} is unknown"},
        "locations": [{"physicalLocation": place}], "partialFingerprints": {"primaryLocationLineHash": name},
    }  # fmt: skip


results = [result(name, line) for line, name in enumerate(sys.argv[2:], 1)]
driver = {"name": "checker", "rules": [{"id": "X1"}]}
json.dump({"version": "2.1.0", "runs": [{"tool": {"driver": driver}, "results": results}]}, open(sys.argv[1], "w"))
PYTHON
python3 write.py old.sarif alpha beta
python3 write.py new.sarif alpha
said=$(venv/bin/sarif diff old.sarif new.sarif)
printf 'sarif-tools %s, two results, then the first of them alone:\n%s\n' \
  "$(venv/bin/pip show sarif-tools | sed -n 's/^Version: //p')" "$said"
grep -q 'New issue "X1 alpha is unknown"' <<<"$said" || { echo "the behaviour has changed"; exit 1; }
