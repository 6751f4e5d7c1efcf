#!/usr/bin/env bash
# Everything that only a GPU shows, in one call: bash benchmarks/gpu.sh OUTPUT_FOLDER
# The tables that matter are printed last; each step is bounded, and one that fails does not stop the others.
set -u
out=${1:?usage: gpu.sh OUTPUT_FOLDER}
cd "$(dirname "$0")/.." || exit 1
export PYTHONPATH=$PWD PYTHONUNBUFFERED=1
export TRITON_CACHE_AUTOTUNING=1 # each worker would tune every shape again
unset TRITON_INTERPRET
step() { # seconds, name, command...
    local limit=$1 name=$2 start=$SECONDS
    shift 2
    timeout -s INT -k 20 "$limit" "$@" >"$out/$name.txt" 2>&1
    echo "$name: status $? after $((SECONDS - start)) s"
}
if [ "${TABLES:-0}" = 1 ]; then step 90 tables python3 benchmarks/interpreter_tables.py --out "$out"; fi
step 120 parity python3 benchmarks/parity.py dump "$out/answers.npz" --level quick
step 240 audit python3 -m opcheck audit --all --backend cuda --level "${LEVEL:-full}" -n 14 --timeout 120 --durations 10 \
    --format table --format "json=$out/audit.json"
gzip -f "$out/audit.json"
step "${CALIBRATE:-150}" calibrate python3 benchmarks/calibrate.py --device cuda --seeds "${SEEDS:-60}" \
    --json "$out/calibrate.json"
for seed in ${QUICK_SEEDS:-}; do
    step 40 "quick$seed" python3 -m opcheck audit --all --backend cuda --level quick --seed "$seed" -n 14 -q
done
[ -f "$out/tables.txt" ] && tail -n 15 "$out/tables.txt"
echo "== parity"; tail -n 3 "$out/parity.txt"
for seed in ${QUICK_SEEDS:-}; do echo "== quick $seed"; tail -n 12 "$out/quick$seed.txt"; done
echo "== calibrate"; tail -n 60 "$out/calibrate.txt"
echo "== audit"; tail -n 60 "$out/audit.txt" | cut -c1-400
