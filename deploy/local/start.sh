#!/bin/sh
# Three members on this machine, without containers, until Ctrl-C:
#
#   go build -o bin/ ./cmd/bmqnode
#   PATH=$PWD/bin:$PATH deploy/local/start.sh
#
# Each has a file beside this one, and its state and its log in ./data, which the
# next start finds again. In another terminal:
#
#   bmqnode status
#   bmqnode transfer
#   kill -9 $(cat data/a.pid)                    # a crash ...
#   bmqnode run --config deploy/local/a.yaml     # ... and the return
#
# Where the machines are three, change the addresses, add tls-dir (bmqnode certs), and
# start one file on each.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
command -v bmqnode >/dev/null || { echo "start.sh: no bmqnode in PATH; see the head of this file" >&2; exit 1; }
mkdir -p data
# What could not start is named before anything is: a taken port, with the option that sets it.
for node in a b c; do
	said=$(bmqnode run --check --config "$here/$node.yaml" "$@" 2>&1) || {
		echo "$said" >&2
		echo "start.sh: nothing is started; change $here/$node.yaml, and join in all three" >&2
		exit 1
	}
	case $said in *" runs now: "*) echo "start.sh: $said" >&2; exit 1 ;; esac
done
pids=
# One signal lets each hand over and say goodbye; a second one ends it at once, so
# what Ctrl-C has sent to all of this terminal's processes must not be followed by
# another. One that has only just begun to start may miss it: then again.
end() { wait; rm -f data/*.pid; exit 0; }
trap end INT
trap 'kill $pids 2>/dev/null || true; end' TERM
for node in a b c; do
	bmqnode run --config "$here/$node.yaml" "$@" 2>>"data/$node.log" &
	echo $! >"data/$node.pid"
	pids="$pids $!"
	echo "$node: process $!, log in data/$node.log"
done
echo "A leader is due within 8 s: bmqnode status. Ctrl-C stops all."
wait
