#!/usr/bin/env bash
# Measures the figures of the rack with real NATS, real Redis and the programs as processes, and prints them as a table.
# Run as root on a quiet machine: it makes network namespaces and mounts tmpfs. About eight minutes, 9 GiB of memory.
# Usage: rack.sh FOLDER [PATTERN]      results and logs go into FOLDER; PATTERN chooses among the end-to-end tests
# PARAMS_2KIB=DIR takes parameters of the 2 KiB circuit from there; otherwise they are generated first.
set -uo pipefail
cd "$(dirname "$0")/../.."
mkdir -p "$1"
folder=$(realpath "$1")
pattern=${2:-TestFigure|TestLongBudget|TestLongScaling}
export FIGURES_FILE=$folder/figures.tsv
: >"$FIGURES_FILE"
short=0

build() { go test -c "${@:3}" -o "$folder/$1" "./$2" || exit 1; }
build ledger.test shared/ledger/redisledger
build scheduler.test coordinator/internal/scheduler
build telemetry.test shared/telemetry
build e2e.test e2e -tags 'long bench'

note() { # name, value, unit, what is asked for, awk condition on v
  local verdict
  verdict=$(awk -v v="$2" "BEGIN { print ($5) ? \"ok\" : \"SHORT\" }")
  [ "$verdict" = ok ] || short=1
  printf '%s\t%s %s\t%s\t%s\n' "$1" "$2" "$3" "$4" "$verdict" >>"$FIGURES_FILE"
}

# median FILE UNIT gives the median of the values before a unit in the output of a benchmark.
median() { grep -oE "[0-9.e+]+ $2" "$1" | awk '{ print $1 }' | sort -g | awk '{ a[NR] = $1 } END { print a[int((NR + 1) / 2)] }'; }

echo "machine: $(nproc) cores, $(awk '/MemTotal/ { printf "%.0f GiB", $2 / 1048576 }' /proc/meminfo), $(uname -sr), load $(cut -d' ' -f1 /proc/loadavg)"
echo "commit:  $(git rev-parse --short HEAD)"

echo "== ledger"
for nodes in 1 8; do
  log=$folder/ledger-$nodes.log
  (cd shared/ledger/redisledger && "$folder/ledger.test" -test.run '^$' -test.bench "ReserveRelease/clients=8/nodes=$nodes\$" \
    -test.benchtime 2s -test.count 3) >"$log" 2>&1 || short=1
  note "ledger, reserve and release, 8 clients on $nodes nodes" "$(median "$log" pairs/s)" pairs/s '>= 8000' 'v >= 8000'
done

log=$folder/plain.log
(cd shared/ledger/redisledger && "$folder/ledger.test" -test.run '^$' -test.bench PlainPairs -test.benchtime 2s -test.count 3) >"$log" 2>&1 || short=1
note 'beside it: SET and DEL, 8 clients, the same Redis' "$(median "$log" pairs/s)" pairs/s 'what the machine leaves' 'v > 0'

echo "== scheduler"
log=$folder/scheduler.log
(cd coordinator/internal/scheduler && "$folder/scheduler.test" -test.run '^$' -test.bench 'BenchmarkDecision' -test.benchtime 1000x) \
  >"$log" 2>&1 || short=1
note 'decision, 100,000 waiting on 64 nodes, p99 (worst case)' \
  "$(grep -oE '[0-9.e+]+ p99-µs' "$log" | awk '{ print $1 }' | sort -g | tail -1)" µs '<= 1000 µs' 'v > 0 && v <= 1000'

echo "== traces"
# 508 spans are in the trace of 13 partitions with one lost attempt (make e2e-jaeger): 40 for each. A partition of 2 KiB, the
# least real one, takes 5.7 s of processor time.
log=$folder/traces.log
(cd shared/telemetry && "$folder/telemetry.test" -test.run '^$' -test.bench 'BenchmarkSpan/' -test.benchtime 100000x -test.count 3) \
  >"$log" 2>&1 || short=1
grep 'Span/on' "$log" >"$log.on"
grep 'Span/off' "$log" >"$log.off"
note "tracing, share of a 2 KiB partition's processor time" \
  "$(awk -v ns="$(median "$log.on" cpu-ns/span)" 'BEGIN { printf "%.4f", 40 * ns / 5.7e9 * 100 }')" % '<= 0.1 %' 'v > 0 && v <= 0.1'
note 'tracing without a collector, a stage' "$(median "$log.off" cpu-ns/span)" ns 'nothing measurable (<= 100 ns)' 'v <= 100'

echo "== rack"
(cd e2e && "$folder/e2e.test" -test.v -test.timeout 30m -test.run "$pattern") >"$folder/rack.log" 2>&1 || short=1
grep -E '^ *[a-z_]+_test\.go:[0-9]+: |^--- ' "$folder/rack.log" | grep -v 'log of' || true

echo
echo "load now $(cut -d' ' -f1 /proc/loadavg)"
awk -F '\t' '{ printf "%-86s %-16s %-38s %s\n", $1, $2, $3, $4 }' "$FIGURES_FILE"
exit $short
