#!/bin/sh
# What `make demo` shows: an unmodified program on the simulated device, seen by the shim.
# Usage: demo.sh TARGET-FOLDER
set -eu
built=$(cd "$1" && pwd)
out=$built/demo
aclshim=$built/release/aclshim
program=$built/c-examples/kv_offload
rm -rf "$out" && mkdir -p "$out"

echo "== c-examples/kv_offload.c, an unmodified program, on the simulated device (Ascend910B1):"
echo
LD_LIBRARY_PATH=$built/sim${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} "$program" >"$out/without.txt"
"$aclshim" run --sim --require-calls --out "$out/seen" -- "$program" >"$out/with.txt" 2>"$out/summary.txt" ||
    { cat "$out/summary.txt" >&2; exit 1; }
sed 's/^/   /' "$out/with.txt"
cmp -s "$out/without.txt" "$out/with.txt" || { echo "its output differs from a run without the shim: $out" >&2; exit 1; }

echo
echo "== The same output as without the shim. What aclshim run says of it:"
echo
fold -s -w 110 "$out/summary.txt" | sed 's/^/   /'
echo
echo "== The calls (aclshim stat):"
echo
"$aclshim" stat "$out/seen" | sed 's/^/   /'
echo
echo "== Which of them break a rule of the vendor's, the last two and how many in all (aclshim findings):"
echo
"$aclshim" findings "$out/seen" | tail -n 12 | fold -s -w 110 | sed 's/^/   /'
echo
"$aclshim" report "$out/seen" -o "$out/report.html" 2>"$out/report.txt" || { cat "$out/report.txt" >&2; exit 1; }
echo "== Now your own program (leave --sim out where there is an NPU):"
echo
echo "   $aclshim run --sim -- ./program"
echo
echo "== All that was seen of this one, as one page for the browser:"
echo
echo "   $out/report.html"
