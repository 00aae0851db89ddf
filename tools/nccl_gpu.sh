#!/bin/sh
# Runs a job under NCCL over our plugin, with several schemes, and over NCCL's own sockets; leaves one file to send back.
# docs/how-to/nccl.md lists requirements and explains the output. Not yet run with a GPU.
#
#   tools/nccl_gpu.sh PLUGIN_FOLDER [RANKS]                      one machine: ranks share its GPUs, or its only one
#   JOB_TIMEOUT=60 tools/nccl_gpu.sh ...                         ends a job that hangs after 60 s (600)
#   MASTER_ADDR=10.0.0.1 NODE=0 NODES=2 tools/nccl_gpu.sh ...    the same on each of two machines, RANKS on each
set -u
folder=${1:?where libnccl-net-anabranch.so is: anabranch nccl install FOLDER}
ranks=${2:-2}
node=${NODE:-0} nodes=${NODES:-1}
here=$(cd "$(dirname "$0")" && pwd)
out=$(mktemp -d)
export MASTER_ADDR=${MASTER_ADDR:-127.0.0.1} MASTER_PORT=${MASTER_PORT:-29411} NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,NET
export LD_LIBRARY_PATH="$folder${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" WORLD_SIZE=$((ranks * nodes))
[ "$nodes" = 1 ] && export ANABRANCH_IFNAME="${ANABRANCH_IFNAME:-=lo}" NCCL_SOCKET_IFNAME="${NCCL_SOCKET_IFNAME:-=lo}"

job() { # name, then variables
  name=$1; shift
  echo "$name: $*"
  for rank in $(seq 0 $((ranks - 1))); do
    # One host per rank: NCCL uses the network between ranks of one machine, even on one GPU.
    env "$@" NCCL_HOSTID="host-$node-$rank" NCCL_P2P_DISABLE=1 NCCL_SHM_DISABLE=1 RANK=$((node * ranks + rank)) LOCAL_RANK="$rank" \
      timeout "${JOB_TIMEOUT:-600}" python3 "$here/nccl_gpu.py" >"$out/$name.$node.$rank.txt" 2>&1 &
  done
  sleep 15
  command -v anabranch >/dev/null && anabranch stats --format json >"$out/$name.$node.paths.json" 2>&1
  wait
  grep -h '^bytes' "$out/$name.$node.0.txt" | tail -3
}

{ uname -a; nvidia-smi; python3 -c 'import torch; print(torch.__version__, torch.cuda.nccl.version())'; ip -br addr; } >"$out/machine.$node.txt" 2>&1
job sockets NCCL_NET_PLUGIN=none NCCL_NET=Socket
for scheme in ecmp reps hopper; do job "$scheme" NCCL_NET_PLUGIN=anabranch ANABRANCH_SCHEME="$scheme"; done
tar -czf "nccl-gpu-$node.tar.gz" -C "$out" . && rm -r "$out" && echo "send back: nccl-gpu-$node.tar.gz"
