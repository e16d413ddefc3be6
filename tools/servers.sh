#!/usr/bin/env bash
# Sees to it that the real programs which the tests start themselves are installed: Redis 7 and Prometheus (NATS comes
# as a Go module), Chromium with Node.js and the library that drives it, and tmux.
# As root on Debian it installs what is missing; otherwise it ends with the list.
set -euo pipefail
cd "$(dirname "$0")/.."

# The browser's library is fetched once; its version and checksum are in package-lock.json.
library() {
  local folder=e2e/browser
  [ -d "$folder/node_modules" ] && [ "$folder/node_modules" -nt "$folder/package-lock.json" ] && return
  echo "servers: fetching playwright-core"
  npm ci --prefix "$folder" --ignore-scripts --no-audit --no-fund --loglevel error >/dev/null
  touch "$folder/node_modules"
}

missing=()
command -v redis-server >/dev/null || missing+=(redis-server)
{ command -v prometheus && command -v promtool; } >/dev/null || missing+=(prometheus)
command -v chromium >/dev/null || missing+=(chromium)
command -v tmux >/dev/null || missing+=(tmux)
command -v node >/dev/null || missing+=(nodejs)
command -v npm >/dev/null || missing+=(npm)
if [ ${#missing[@]} -eq 0 ]; then
  library
  exit 0
fi

if [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null; then
  echo "servers: installing ${missing[*]}"
  # The tests start servers of their own: the packages' services must stay off.
  policy=/usr/sbin/policy-rc.d
  if [ ! -e "$policy" ]; then
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod +x "$policy"
    trap 'rm -f "$policy"' EXIT
  fi
  apt-get update -q >/dev/null
  DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends "${missing[@]}" >/dev/null
  library
  exit 0
fi
echo "servers: the tests need these programs, which are not installed: ${missing[*]}" >&2
echo "servers: on Debian: apt-get install ${missing[*]}" >&2
exit 1
