#!/usr/bin/env bash
# Runs `cntkpy check`: annotations on standard output, a SARIF file in RUNNER_TEMP, a line in the summary of the job.
# Reads INPUT_CONFIGS (one word per line), INPUT_STRICT, INPUT_IGNORE, and what the runner sets: RUNNER_TEMP,
# GITHUB_OUTPUT, GITHUB_STEP_SUMMARY. Fails if there are errors; with INPUT_STRICT=true, if there are findings.
set -euo pipefail

words=()
while IFS= read -r word || [ -n "$word" ]; do
    word=${word%$'\r'}
    word=${word#"${word%%[![:space:]]*}"}
    word=${word%"${word##*[![:space:]]}"}
    case $word in
        "") ;;
        -*)
            echo "::error::configs: '$word' is an option; write configurations, folders and NAME=VALUE, one per line"
            exit 2
            ;;
        *) words+=("$word") ;;
    esac
done <<<"${INPUT_CONFIGS:-.}"
if [ ${#words[@]} -eq 0 ]; then
    words=(.)
fi

case ${INPUT_STRICT:-false} in
    true) words+=(--strict) ;;
    false) ;;
    *)
        echo "::error::strict: '$INPUT_STRICT' is neither true nor false"
        exit 2
        ;;
esac
if [ -n "${INPUT_IGNORE:-}" ]; then
    words+=(--ignore "$INPUT_IGNORE")
fi

status=0
annotations=$(cntkpy check --format github "${words[@]}") || status=$?
printf '%s\n' "$annotations"
echo "status=$status" >>"$GITHUB_OUTPUT"

sarif=$RUNNER_TEMP/cntkpy.sarif
cntkpy check --format sarif --quiet "${words[@]}" >"$sarif" || true
if [ -s "$sarif" ]; then # A wrong command line writes none.
    echo "sarif=$sarif" >>"$GITHUB_OUTPUT"
    echo "**cntkpy check**: ${annotations##*$'\n'}" >>"$GITHUB_STEP_SUMMARY"
fi

# 1: warnings, which are shown and fail nothing.
if [ "$status" -eq 1 ] && [ -s "$sarif" ]; then
    status=0
fi
exit "$status"
