#!/usr/bin/env python3
"""A rank of tools/nccl_gpu.sh: all-reduces of growing size over NCCL, each checked, with NCCL's bus bandwidth. Needs PyTorch."""
import os
import time

import torch
import torch.distributed as dist

rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]) % torch.cuda.device_count())
dist.init_process_group("nccl")
for power in range(3, 29, 3):
    data = torch.empty((1 << power) // 4, dtype=torch.float32, device="cuda")
    times = []
    for _ in range(8):
        data.fill_(rank + 1)
        torch.cuda.synchronize()
        dist.barrier()
        began = time.perf_counter()
        dist.all_reduce(data)
        torch.cuda.synchronize()
        times.append(time.perf_counter() - began)
    wanted = world * (world + 1) / 2
    wrong = int((data != wanted).sum())
    median = sorted(times[2:])[3]
    bus = 2 * (world - 1) / world * (1 << power) * 8 / median / 1e9
    if rank == 0:
        print(f"bytes {1 << power:>10}  median {median * 1e6:>10.1f} us  bus {bus:>8.2f} Gbit/s  wrong {wrong}", flush=True)
    assert wrong == 0
dist.destroy_process_group()
