#!/usr/bin/env bash
# Sees to it that the real servers which the tests start themselves are installed: Redis 7 and Prometheus (NATS comes as
# a Go module).
# As root on Debian it installs what is missing; otherwise it ends with the list.
set -euo pipefail

missing=()
command -v redis-server >/dev/null || missing+=(redis-server)
{ command -v prometheus && command -v promtool; } >/dev/null || missing+=(prometheus)
[ ${#missing[@]} -eq 0 ] && exit 0

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
  exit 0
fi
echo "servers: the tests need these programs, which are not installed: ${missing[*]}" >&2
echo "servers: on Debian: apt-get install ${missing[*]}" >&2
exit 1
