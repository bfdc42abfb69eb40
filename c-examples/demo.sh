#!/bin/sh
# What `make demo` shows: an unmodified program on the simulated device, seen by the shim.
# Usage: demo.sh TARGET-FOLDER
set -eu
built=$(cd "$1" && pwd)
out=$built/demo
rm -rf "$out" && mkdir -p "$out/ring"

run() {
    LD_LIBRARY_PATH=$built/sim${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} "$@"
}

echo "== c-examples/kv_offload.c, an unmodified program, on the simulated device (Ascend910B1):"
echo
run "$built/c-examples/kv_offload" >"$out/without.txt"

export ACLSHIM_DIR="$out/seen" ACLSHIM_RING_DIR="$out/ring"
run env LD_PRELOAD="$built/release/libaclshim.so" "$built/c-examples/kv_offload" | tee "$out/with.txt" | sed 's/^/   /'
cmp -s "$out/without.txt" "$out/with.txt" || { echo "its output differs from a run without the shim: $out" >&2; exit 1; }

echo
echo "== The same output as without the shim. What the shim saw (aclshim stat):"
echo
"$built/release/aclshim" stat "$out/seen" | sed 's/^/   /'
echo
echo "== And which calls break a rule of the vendor's, the last two and how many in all (aclshim findings):"
echo
"$built/release/aclshim" findings "$out/seen" | tail -n 12 | fold -s -w 110 | sed 's/^/   /'
echo
echo "Now your own program:"
echo "   LD_PRELOAD=$built/release/libaclshim.so ACLSHIM_DIR=seen ./program && $built/release/aclshim findings seen"
