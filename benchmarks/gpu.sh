#!/usr/bin/env bash
# Everything that only a GPU shows, in one call: bash benchmarks/gpu.sh OUTPUT_FOLDER
# STEPS chooses among tables, parity, audit, calibrate, quick and observe. The tables that matter are printed last; each
# step is bounded, and one that fails does not stop the others.
set -u
out=${1:?usage: gpu.sh OUTPUT_FOLDER}
steps=" ${STEPS:-parity audit calibrate} "
cd "$(dirname "$0")/.." || exit 1
export PYTHONPATH=$PWD PYTHONUNBUFFERED=1
export TRITON_CACHE_AUTOTUNING=1 # each worker would tune every shape again
unset TRITON_INTERPRET
step() { # seconds, name, command...
    local limit=$1 name=$2 start=$SECONDS
    shift 2
    case $steps in *" ${name%%[0-9]*} "*) ;; *) return ;; esac
    timeout -s INT -k 20 "$limit" "$@" >"$out/$name.txt" 2>&1
    echo "$name: status $? after $((SECONDS - start)) s"
}
audit() { python3 -m opcheck audit --all --backend cuda -n 14 --timeout 120 "$@"; }
export -f audit
step 90 tables python3 benchmarks/interpreter_tables.py --out "$out"
step 120 parity python3 benchmarks/parity.py dump "$out/answers.npz" --level quick
step 460 audit bash -c 'audit "$@"' - --level "${LEVEL:-standard}" --durations 10 --format table \
    --format "json=$out/audit.json"
step "${CALIBRATE:-150}" calibrate python3 benchmarks/calibrate.py --device cuda --seeds "${SEEDS:-40}" \
    --json "$out/calibrate.json"
step 140 observe python3 benchmarks/observe_cuda.py --out "$out/observe"
for seed in 1 2; do step 60 "quick$seed" bash -c 'audit "$@"' - --level quick --seed "$seed" -q; done
[ -f "$out/audit.json" ] && gzip -f "$out/audit.json"
for name in tables parity quick1 quick2 calibrate audit observe; do
    [ -f "$out/$name.txt" ] && echo "== $name" && tail -n 40 "$out/$name.txt" | cut -c1-300
done
