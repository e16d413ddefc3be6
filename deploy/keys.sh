#!/usr/bin/env bash
# Makes a rack's keys, certificates and permissions, and adds or takes back single ones. "keys.sh" alone says how.
# It runs the program rackkeys beside it or on the path; without one, Go builds it from the source.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
umask 077
if [ -x "$here/rackkeys/rackkeys" ]; then
  exec "$here/rackkeys/rackkeys" "$@"
elif command -v rackkeys >/dev/null; then
  exec rackkeys "$@"
elif command -v go >/dev/null; then
  program=$(mktemp -d)
  trap 'rm -rf "$program"' EXIT
  go -C "$here" build -o "$program/rackkeys" ./rackkeys
  "$program/rackkeys" "$@"
else
  echo "keys: neither the program rackkeys nor Go is here" >&2
  exit 1
fi
