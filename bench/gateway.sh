#!/usr/bin/env bash
# What the gateway costs, in one run beside what stands for the floor (a plain
# relay in Go, nginx) and one other gateway, all of them by turns. It prints tables in
# Markdown; docs/benchmarks.md says how to read them. Linux alone: processor time
# and memory are read from /proc.
#
#   bench/gateway.sh                   about three minutes
#   bench/gateway.sh -rounds 2 -slice 300ms -singles 100    a quick look
#
# nginx (Debian: apt-get install nginx-light) and the peer (needs Node.js and
# npm) are left out with a word where they are missing. PEER=0 leaves the peer out.
set -euo pipefail
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

go build -trimpath -ldflags='-s -w' -o "$work/ninelives" ./cmd/ninelives
go build -o "$work/bench" ./bench/gateway

nginx=$(PATH=$PATH:/usr/sbin:/usr/local/sbin command -v nginx || true)
[ -n "$nginx" ] || echo "nginx is left out: it is not installed" >&2

peer=
if [ "${PEER:-1}" = 0 ]; then
  echo "the peer is left out: PEER=0" >&2
elif ! command -v npm >/dev/null || ! command -v node >/dev/null; then
  echo "the peer is left out: Node.js and npm are not installed" >&2
else
  cp bench/peer/package.json bench/peer/package-lock.json "$work"
  if (cd "$work" && npm ci --ignore-scripts --no-audit --no-fund --silent >&2); then
    peer=$work
  else
    echo "the peer is left out: npm cannot install it" >&2
  fi
fi

"$work/bench" -ninelives "$work/ninelives" -nginx "$nginx" -peer "$peer" "$@"
