#!/usr/bin/env bash
# Runs the recipes of docs/bench/README.md and leaves their results, as text and JSON, in a folder.
# Usage: run.sh PROOFRACK FOLDER
set -euo pipefail
proofrack=$(realpath "$1")
folder=$2
mkdir -p "$folder"
cd "$folder"

measure() {
  local name=$1
  shift
  echo "== $name: proofrack $*"
  "$proofrack" "$@" --json >"$name.json"
  cat "$name.json"
}

measure synth-32GiB bench synth --sector 32GiB --runs 3
measure circuits bench circuits
if [ ! -d params ]; then
  "$proofrack" params generate --sector 8MiB --seed bench --out params
fi
measure prove-8MiB bench prove --sector 8MiB --params params
