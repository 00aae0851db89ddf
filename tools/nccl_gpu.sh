#!/bin/sh
# Checks the NCCL plugin on this machine and leaves one file to send back: its choices, the suite, a PyTorch job on CPUs, and
# jobs under NCCL over several schemes and over NCCL's own sockets. What cannot run is "not measured" with the reason in
# summary.txt. docs/how-to/nccl.md lists requirements and explains the output. Not yet run with a GPU.
#
#   tools/nccl_gpu.sh PLUGIN_FOLDER [RANKS]                      one machine: ranks share its GPUs, or its only one
#   JOB_TIMEOUT=60 tools/nccl_gpu.sh ...                         ends a part that hangs after 60 s (600)
#   MASTER_ADDR=10.0.0.1 NODE=0 NODES=2 tools/nccl_gpu.sh ...    the same on each of two machines, RANKS on each
#
# Exit codes: 0 all parts passed, 1 one failed, 2 wrong arguments, 3 none failed and some are not measured.
set -u
usage() { echo "nccl_gpu.sh: $1" >&2; exit 2; }
[ $# -ge 1 ] || usage "expected the folder of libnccl-net-anabranch.so: anabranch nccl install FOLDER"
folder=$(cd "$1" 2>/dev/null && pwd) || usage "$1: no such folder"
plugin=$folder/libnccl-net-anabranch.so
[ -f "$plugin" ] || usage "$plugin: no such file: anabranch nccl install $1"
ranks=${2:-2} node=${NODE:-0} nodes=${NODES:-1} limit=${JOB_TIMEOUT:-600}
for number in "$ranks" "$node" "$nodes" "$limit"; do
  case $number in '' | *[!0-9]*) usage "$number: expected a number" ;; esac
done
here=$(cd "$(dirname "$0")" && pwd)
out=$(mktemp -d) || exit 1
trap 'rm -rf "$out"' EXIT
export MASTER_ADDR="${MASTER_ADDR:-127.0.0.1}" MASTER_PORT="${MASTER_PORT:-29411}" WORLD_SIZE=$((ranks * nodes))
export LD_LIBRARY_PATH="$folder${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
[ "$nodes" = 1 ] && export ANABRANCH_IFNAME="${ANABRANCH_IFNAME:-=lo}" NCCL_SOCKET_IFNAME="${NCCL_SOCKET_IFNAME:-=lo}"
failed=0 missing=0

verdict() { # part, verdict
  case $2 in
    passed*) ;;
    "not measured"*) missing=$((missing + 1)) ;;
    *) failed=$((failed + 1)) ;;
  esac
  echo "$1: $2" | tee -a "$out/summary.txt"
}

part() { # name, what it lacks or nothing, then a command
  name=$1 lacks=$2; shift 2
  if [ -n "$lacks" ]; then verdict "$name" "not measured: $lacks"; return; fi
  timeout "$limit" "$@" >"$out/$name.$node.txt" 2>&1
  code=$?
  if [ "$code" = 0 ]; then verdict "$name" passed; else verdict "$name" "failed with exit code $code, see $name.$node.txt"; fi
}

job() { # name, network, what it lacks or nothing, then variables
  name=$1 network=$2 lacks=$3; shift 3
  if [ -n "$lacks" ]; then verdict "nccl-$name" "not measured: $lacks"; return; fi
  pids="" code=0
  for rank in $(seq 0 $((ranks - 1))); do
    # One host per rank: NCCL uses the network between ranks of one machine, even on one GPU.
    env "$@" NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,NET,ENV,GRAPH NCCL_HOSTID="host-$node-$rank" NCCL_P2P_DISABLE=1 \
      NCCL_SHM_DISABLE=1 RANK=$((node * ranks + rank)) LOCAL_RANK="$rank" \
      timeout "$limit" python3 "$here/nccl_gpu.py" >"$out/nccl-$name.$node.$rank.txt" 2>&1 &
    pids="$pids $!"
  done
  sleep 15
  [ -n "$no_command" ] || anabranch stats --format json >"$out/nccl-$name.$node.paths.json" 2>&1
  for pid in $pids; do wait "$pid" || code=$?; done
  log=$out/nccl-$name.$node.0.txt
  grep -h '^bytes' "$log" | tail -3
  if [ "$code" != 0 ]; then
    verdict "nccl-$name" "failed with exit code $code, see nccl-$name.$node.*.txt"
  elif ! grep -q "Using network $network" "$log"; then
    verdict "nccl-$name" "failed: NCCL used another network than $network"
  else
    verdict "nccl-$name" passed
  fi
}

# What the parts lack; empty: nothing.
no_command="" no_torch="" no_backend="" no_gpu=""
command -v anabranch >/dev/null || no_command="no anabranch in PATH"
python3 -c 'import torch' 2>/dev/null || no_torch="no PyTorch"
no_backend=${no_torch:-$no_command}
[ -n "$no_backend" ] || python3 -c 'import anabranch.torch' 2>/dev/null || no_backend="no Python package anabranch"
nvidia-smi -L 2>/dev/null | grep -q '^GPU' || no_gpu="no GPU"
no_gpu=${no_gpu:-$no_torch}
[ -n "$no_gpu" ] || python3 -c 'import torch; assert torch.cuda.is_available()' 2>/dev/null || no_gpu="PyTorch has no CUDA"

{
  uname -a
  nvidia-smi
  python3 -c 'import torch; print(torch.__version__, torch.cuda.nccl.version() if torch.cuda.is_available() else "no CUDA")'
  ip -br addr
  env | grep -E '^(ANABRANCH|NCCL)_'
} >"$out/machine.$node.txt" 2>&1
part check "$no_command" anabranch nccl check
part suite "$no_command" anabranch collective --suite --plugin "$plugin"
part collective "$no_command" anabranch collective ring --plugin "$plugin" --ranks 4 --bytes 4MiB
part torch-cpu "$no_backend" python3 "$here/torch_job.py" --local --rounds 2 --steps 4 --schemes gloo,ecmp,reps,hopper
job sockets Socket "$no_gpu" NCCL_NET_PLUGIN=none NCCL_NET=Socket
for scheme in ecmp reps hopper; do
  job "$scheme" Anabranch "$no_gpu" NCCL_NET_PLUGIN=anabranch ANABRANCH_SCHEME="$scheme"
done

file=nccl-gpu-$node.tar.gz
tar -czf "$file" -C "$out" . || exit 1
echo "$failed parts failed, $missing are not measured; send back: $file"
[ "$failed" = 0 ] || exit 1
[ "$missing" = 0 ] || exit 3
