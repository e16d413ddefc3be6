#!/usr/bin/env bash
# Proves a small sector from beginning to end and says what it does. Usage: demo.sh PROOFRACK FOLDER
set -euo pipefail
proofrack=$(realpath "$1")
folder=$2
rm -rf "$folder"
mkdir -p "$folder"
cd "$folder"
export XDG_CACHE_HOME=$PWD/cache
started=$SECONDS

step() {
  local text=$1 start=$SECONDS
  shift
  printf '\n%s\n  $ proofrack %s\n' "$text" "$*"
  "$proofrack" "$@" | sed 's/^/  /'
  printf '  (%d s)\n' "$((SECONDS - start))"
}

echo "proofrack demo: from nothing to a verified Filecoin proof, in $PWD"
step "1. Seal a 2 KiB sector of pseudo-random data and do its first commit phase." \
  sector seal --sector 2KiB --miner 1000 --sector-number 4243 --out sector
step "2. Make parameters for the 2 KiB circuit from a seed. They are for development: no chain accepts their proofs." \
  params generate --sector 2KiB --seed demo --out params
step "3. Prove: check the whole C1 output, synthesize 2.7 million constraints, prove them, verify the proof." \
  prove sector/c1.json --miner 1000 --sector-number 4243 --params params --out proof.bin
step "4. Verify as a stranger, who has the sector's public description and the verifying key only." \
  verify proof.bin --sector-info sector/sector.json --params params

printf '\nThe proof, %d bytes:\n' "$(stat -c %s proof.bin)"
od -An -tx1 -v proof.bin | tr -d ' \n' | fold -w 96 | sed 's/^/  /'
printf '\n\nDone in %d s.\n' "$((SECONDS - started))"
