#!/usr/bin/env bash
# Starts a whole rack in one process, has it prove a small sector, and says what it does. Usage: demo.sh PROOFRACK FOLDER
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
  "$proofrack" "$@" 2>&1 | sed 's/^/  /'
  printf '  (%d s)\n' "$((SECONDS - start))"
}

rack=
stop() {
  [ -z "$rack" ] || { kill -INT "$rack" && wait "$rack" || true; } 2>/dev/null
}
trap stop EXIT

echo "proofrack demo: from nothing to a verified Filecoin proof, in $PWD"
step "1. Seal a 2 KiB sector of pseudo-random data and do its first commit phase." \
  sector seal --sector 2KiB --miner 1000 --sector-number 4243 --out sector
step "2. Make parameters for the 2 KiB circuit from a seed. They are for development: no chain accepts their proofs." \
  params generate --sector 2KiB --seed demo --out params

printf '\n3. Start a rack: NATS server, ledger store, coordinator, synthesis and proving worker in one process.\n'
printf '  $ proofrack up --data rack --params params --listen 127.0.0.1:0 &      (its log: %s/rack.log)\n' "$PWD"
"$proofrack" up --data rack --params params --listen 127.0.0.1:0 2>rack.log &
rack=$!
for _ in $(seq 300); do
  [ -s rack/server.url ] && break
  kill -0 "$rack" 2>/dev/null || { cat rack.log >&2; exit 1; }
  sleep 0.1
done
PROOFRACK_SERVER=$(cat rack/server.url)
export PROOFRACK_SERVER
printf '  clients connect to %s\n' "$PROOFRACK_SERVER"

step "4. Submit over NATS and wait: the coordinator checks the whole C1 output, the workers synthesize 2.7 million constraints, prove them and verify the proof." \
  submit sector/c1.json --miner 1000 --sector-number 4243 --key demo --out proof.bin
step "5. Submit it again under the same key: the rack knows it." \
  submit sector/c1.json --miner 1000 --sector-number 4243 --key demo --detach
step "6. See where the bytes went: what the node holds after the job." nodes
step "7. Verify as a stranger, who has the sector's public description and the verifying key only." \
  verify proof.bin --sector-info sector/sector.json --params params

printf '\nThe proof, %d bytes:\n' "$(stat -c %s proof.bin)"
od -An -tx1 -v proof.bin | tr -d ' \n' | fold -w 96 | sed 's/^/  /'
stop
rack=
printf '\n\nDone in %d s; the rack has ended.\n' "$((SECONDS - started))"
