"""A rank of the tests of `anabranch.torch`: `torch_ranks.py CASE RANK SIZE STORE`, under a Python that has PyTorch."""

from __future__ import annotations

import copy
import os
import random
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import anabranch.torch

FLOATS = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
INTEGERS = [torch.uint8, torch.int8, torch.int32, torch.int64]
SUMS = {
    dist.ReduceOp.SUM: lambda a, b: a + b,
    dist.ReduceOp.PRODUCT: lambda a, b: a * b,
    dist.ReduceOp.MIN: torch.minimum,
    dist.ReduceOp.MAX: torch.maximum,
}
# Around the limits of short messages (32 KiB) and chunks (256 KiB), and of algorithms.
SIZES = [1, 7, 1000, 33_333, 300_001]
Tensor = Any


def made(dtype: torch.dtype, count: int, rank: int, seed: int) -> Tensor:
    """Returns the input of a rank, which all can make."""
    generator = torch.Generator().manual_seed(seed * 100 + rank)
    if dtype == torch.bool:
        return torch.randint(0, 2, (count,), generator=generator).bool()
    if dtype in INTEGERS:
        return torch.randint(0, 50, (count,), generator=generator).to(dtype)
    return (torch.rand(count, generator=generator) * 2 - 1).to(dtype)


def reduced(inputs: list[Tensor], op: Any) -> Tensor:
    if inputs[0].dtype == torch.bool:
        some = op in (dist.ReduceOp.SUM, dist.ReduceOp.MAX)
        return torch.stack(inputs).any(0) if some else torch.stack(inputs).all(0)
    total = inputs[0].clone()
    for one in inputs[1:]:
        # In the type itself: sums of 16 bits are rounded at each step.
        total = SUMS[op](total, one)
    return total


def same(found: Tensor, expected: Tensor, inputs: list[Tensor], what: str) -> None:
    """Compares bit for bit where the order of operands is the same, or does not matter; else within the type's bound."""
    if len(inputs) <= 2 or found.dtype not in FLOATS:
        assert torch.equal(found, expected), f"{what}: {found[:5]} {expected[:5]}"
        return
    # Each of n - 1 additions rounds by half an ulp of at most the sum of magnitudes.
    bound = len(inputs) * torch.finfo(found.dtype).eps * torch.stack(inputs).double().abs().sum(0)
    wrong = ((found.double() - expected.double()).abs() > bound).sum()
    assert wrong == 0, f"{what}: {wrong} of {found.numel()} elements"


def groups(size: int) -> Iterator[tuple[Any, Any, int]]:
    """Yields groups of two ranks and more that have this rank, over both backends."""
    for of in range(2, size + 1):
        both = [dist.new_group(list(range(of)), backend=name) for name in ("anabranch", "gloo")]
        if dist.get_rank() < of:
            yield both[0], both[1], of


def operations(rank: int, size: int) -> None:
    for ours, gloo, ranks in groups(size):
        seed = 0
        for dtype in [*FLOATS, *INTEGERS, torch.bool]:
            for count in random.Random(ranks).sample(SIZES, 2):
                seed += 1
                everything(ours, gloo, rank, ranks, dtype, count, seed)
        dist.barrier(ours)


def everything(ours: Any, gloo: Any, rank: int, ranks: int, dtype: torch.dtype, count: int, seed: int) -> None:
    inputs = [made(dtype, count, of, seed) for of in range(ranks)]
    mine, what, root = inputs[rank], f"{dtype} {count} of {ranks}", seed % ranks
    for op in SUMS:
        tensor = mine.clone()
        dist.all_reduce(tensor, op, ours)
        same(tensor, reduced(inputs, op), inputs, f"allreduce {op} {what}")
        if dtype not in (torch.bool, torch.bfloat16):
            theirs = mine.clone()
            dist.all_reduce(theirs, op, gloo)
            same(tensor, theirs, inputs, f"allreduce {op} {what} and gloo")
        tensor = mine.clone()
        dist.reduce(tensor, root, op, ours)
        same(tensor, reduced(inputs, op) if rank == root else mine, inputs, f"reduce {op} {what}")
        parts = [made(dtype, count * ranks, of, seed + 1).split(count) for of in range(ranks)]
        output = torch.empty_like(mine)
        dist.reduce_scatter(output, list(parts[rank]), op, ours)
        column = [of[rank] for of in parts]
        same(output, reduced(column, op), column, f"reduce_scatter {op} {what}")
    if dtype != torch.bool:
        tensor = mine.clone()
        dist.all_reduce(tensor, dist.ReduceOp.AVG, ours)
        total = mine.clone()
        dist.all_reduce(total, dist.ReduceOp.SUM, ours)
        expected = total / ranks if dtype in FLOATS else torch.div(total, ranks, rounding_mode="trunc")
        assert torch.equal(tensor, expected.to(dtype)), f"average {what}"
    tensor = mine.clone()
    dist.broadcast(tensor, root, ours)
    assert torch.equal(tensor, inputs[root]), f"broadcast {what}"
    outputs = [torch.empty_like(mine) for _ in range(ranks)]
    dist.all_gather(outputs, mine, ours)
    assert all(map(torch.equal, outputs, inputs)), f"allgather {what}"
    outputs = [torch.empty_like(mine) for _ in range(ranks)] if rank == root else []
    dist.gather(mine, outputs or None, root, ours)
    assert all(map(torch.equal, outputs, inputs)), f"gather {what}"
    parts = [made(dtype, count * ranks, of, seed + 2).split(count) for of in range(ranks)]
    output = torch.empty_like(mine)
    dist.scatter(output, list(parts[rank]) if rank == root else None, root, ours)
    assert torch.equal(output, parts[root][rank]), f"scatter {what}"
    outputs = [torch.empty_like(mine) for _ in range(ranks)]
    dist.all_to_all(outputs, list(parts[rank]), ours)
    assert all(torch.equal(outputs[of], parts[of][rank]) for of in range(ranks)), f"alltoall {what}"
    # Rank r sends r + s rows to rank s; some pairs have none.
    splits = [(rank + to) % 3 for to in range(ranks)]
    rows = made(dtype, sum(splits) * 4, rank, seed).view(-1, 4)
    output = torch.empty(sum((of + rank) % 3 for of in range(ranks)), 4, dtype=dtype)
    dist.all_to_all_single(output, rows, [(of + rank) % 3 for of in range(ranks)], splits, ours)
    expected = []
    for of in range(ranks):
        theirs = [(of + to) % 3 for to in range(ranks)]
        expected.append(made(dtype, sum(theirs) * 4, of, seed).view(-1, 4).split(theirs)[rank])
    assert torch.equal(output, torch.cat(expected)), f"alltoallv {what}"
    # FSDP's names.
    output = torch.empty(ranks * count, dtype=dtype)
    dist._all_gather_base(output, mine, ours)
    assert torch.equal(output, torch.cat(inputs)), f"allgather_base {what}"
    output = torch.empty_like(mine)
    dist._reduce_scatter_base(output, torch.cat(parts[rank]), dist.ReduceOp.SUM, ours)
    column = [of[rank] for of in parts]
    same(output, reduced(column, dist.ReduceOp.SUM), column, f"reduce_scatter_base {what}")


def messages(rank: int, size: int) -> None:
    before, after = (rank - 1) % size, (rank + 1) % size
    for count in [1, 5000, 500_000]:
        # All receives are posted in another order than the sends, around a collective.
        into = [torch.empty(count) for _ in range(3)]
        works = [dist.irecv(into[tag], before, tag=tag) for tag in (2, 0, 1)]
        works += [dist.isend(torch.full((count,), float(rank * 10 + tag)), after, tag=tag) for tag in range(3)]
        tensor = torch.ones(count)
        dist.all_reduce(tensor)
        assert torch.equal(tensor, torch.full((count,), float(size)))
        assert all(work.wait() for work in works)
        assert all((into[tag] == before * 10 + tag).all() for tag in range(3))
        if rank == 0:
            seen = set()
            for _ in range(size - 1):
                seen.add(source := dist.recv(into[0], tag=9))
                assert (into[0] == source).all()
            assert seen == set(range(1, size))
        else:
            dist.send(torch.full((count,), float(rank)), 0, tag=9)
    pairs = [dist.P2POp(dist.irecv, into[0][:10], before), dist.P2POp(dist.isend, torch.full((10,), float(rank)), after)]
    for work in dist.batch_isend_irecv(pairs):
        work.wait()
    assert (into[0][:10] == before).all()
    objects: list[Any] = [None] * size
    dist.all_gather_object(objects, {"rank": rank})
    assert objects == [{"rank": of} for of in range(size)]


def together(rank: int, size: int) -> None:
    """Asynchronous operations, futures, coalesced ones, and two groups from two threads."""
    tensors = [torch.full((1000 * (at + 1),), float(rank)) for at in range(20)]
    works = [dist.all_reduce(tensor, async_op=True) for tensor in tensors]
    doubled = works[-1].get_future().then(lambda of: of.value()[0] * 2)
    total = float(sum(range(size)))
    assert (doubled.wait() == 2 * total).all()
    for work in works:
        work.wait()
        assert work.is_completed() and work.is_success()
    assert all((tensor == total).all() for tensor in tensors)
    dist.all_reduce_coalesced(tensors)
    assert all((tensor == total * size).all() for tensor in tensors)
    for alone in [dist.new_group([of], backend="anabranch") for of in range(size)][rank : rank + 1]:
        dist.all_reduce(tensors[0], group=alone)
        dist.barrier(alone)
    assert (tensors[0] == total * size).all()
    others = [dist.new_group(backend="anabranch") for _ in range(2)]
    errors: list[BaseException] = []

    def run(group: Any, count: int) -> None:
        try:
            for turn in range(30):
                tensor = torch.full((count,), float(turn))
                dist.all_reduce(tensor, group=group)
                assert (tensor == turn * size).all()
        except BaseException as error:
            errors.append(error)

    # The ranks start them in opposite order.
    threads = [threading.Thread(target=run, args=(group, count)) for group, count in zip(others, (10, 100_000))]
    for thread in threads if rank % 2 else threads[::-1]:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors, errors
    for group in others:
        dist.destroy_process_group(group)


def training(rank: int, size: int) -> None:
    def train(group: Any) -> list[Tensor]:
        torch.manual_seed(rank)
        model = torch.nn.Sequential(torch.nn.Linear(64, 300), torch.nn.ReLU(), torch.nn.Linear(300, 1))
        # Several buckets a step.
        parallel = DistributedDataParallel(model, process_group=group, bucket_cap_mb=0.05)
        optimizer = torch.optim.SGD(parallel.parameters(), lr=0.01)
        data, losses = torch.randn(16, 64, generator=torch.Generator().manual_seed(100 + rank)), []
        for _ in range(8):
            loss = (parallel(data) - data.sum(1, keepdim=True)).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        assert losses[-1] < losses[0], losses
        return [of.detach() for of in model.parameters()]

    ours, gloo = train(None), train(dist.new_group(backend="gloo"))
    for one, other in zip(ours, gloo):
        assert torch.allclose(one, other, rtol=1e-3, atol=1e-5)
        all_ranks = [torch.empty_like(one) for _ in range(size)]
        dist.all_gather(all_ranks, one)
        assert all(torch.equal(of, one) for of in all_ranks), "weights differ"


def sharded(rank: int, size: int) -> None:
    """FSDP itself, which old versions have for CUDA alone, beside the same steps in one process."""
    try:
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard
    except ImportError:
        return
    torch.manual_seed(1)
    one = torch.nn.Sequential(torch.nn.Linear(64, 301), torch.nn.ReLU(), torch.nn.Linear(301, 3))
    shards = copy.deepcopy(one)
    for layer in (shards[0], shards[2], shards):
        fully_shard(layer, mesh=init_device_mesh("cpu", (size,)))
    both = [torch.optim.SGD(of.parameters(), lr=0.01) for of in (one, shards)]
    for turn in range(6):
        data = torch.randn(8 * size, 64, generator=torch.Generator().manual_seed(turn))
        for model, of in ((one, data), (shards, data[8 * rank : 8 * rank + 8])):
            model(of).square().mean().backward()
        for optimizer in both:
            optimizer.step()
            optimizer.zero_grad()
    for whole, part in zip(one.parameters(), shards.parameters()):
        assert torch.allclose(whole, part.full_tensor(), rtol=1e-4, atol=1e-6), "weights differ from one process"


def main_cases(rank: int, size: int) -> None:
    for case in (operations, messages, together, training, sharded):
        begin = time.time()
        case(rank, size)
        dist.barrier()
        if rank == 0:
            print(f"{case.__name__}: {time.time() - begin:.1f} s", flush=True)


def fails(what: Callable[[], Any], *words: str) -> None:
    try:
        what()
    except (RuntimeError, ValueError) as error:
        text = str(error)
        assert "\n" not in text and all(word in text for word in words), text
        return
    raise AssertionError(f"no error with {words}")


def bad_input(rank: int, size: int) -> None:
    two = torch.ones(4, 4)
    fails(lambda: dist.all_reduce(two.t()[1:]), "contiguous()")
    fails(lambda: dist.all_reduce(torch.ones(4, device="meta")), "on meta", ".cpu()")
    fails(lambda: dist.all_reduce(torch.ones(4).to_sparse()), "to_dense()")
    fails(lambda: dist.all_reduce(torch.ones(4).bool(), dist.ReduceOp.AVG), "avg of torch.bool")
    fails(lambda: dist.all_reduce(torch.ones(4).int(), dist.ReduceOp.BOR), "bor", "allowed are sum")
    fails(lambda: dist._all_gather_base(torch.ones(5), torch.ones(4)), "5 and 4 elements")
    dist.barrier()

    def fresh() -> Any:
        return dist.new_group(backend="anabranch")

    group, sizes, dtypes = fresh(), ("4 B", "12 B"), ("float32", "int32", "differ in collective")
    fails(lambda: dist.all_reduce(torch.ones(1 + 2 * rank), group=group), *sizes)
    fails(lambda: dist.all_reduce(torch.ones(1), group=group), "failed before")
    group = fresh()
    fails(lambda: dist.all_reduce(torch.ones(1).to([torch.float32, torch.int32][rank]), group=group), *dtypes)
    group = fresh()
    large = torch.ones(1_000_000)
    calls = [lambda: dist.all_reduce(large, group=group), lambda: dist.broadcast(large, 0, group=group)]
    fails(calls[rank], "allreduce", "broadcast")
    group = fresh()
    both = [lambda: dist.send(torch.ones(4), 1, group), lambda: dist.recv(torch.ones(3), 0, group)]
    if rank == 1:
        fails(both[1], "16 B", "12 B")
    else:
        both[0]()
    group = dist.new_group(backend="anabranch", timeout=timedelta(seconds=1))
    if rank == 0:
        begin = time.time()
        fails(lambda: dist.all_reduce(torch.ones(1), group=group), "timed out", "1 s", "rank 1")
        assert time.time() - begin < 3
    dist.barrier()


def killed(rank: int, size: int) -> None:
    """The last rank dies at a step of its own; the others learn it within the time, in the middle of something."""
    tensor = torch.ones(2_000_000)
    dist.all_reduce(tensor)
    if rank == size - 1:
        threading.Timer(0.3, os._exit, (9,)).start()
    begin = time.time()
    try:
        while True:
            dist.all_reduce(tensor)
    except RuntimeError as error:
        took, text = time.time() - begin, str(error)
        assert f"rank {size - 1}" in text and "allreduce" in text and took < 12, f"{took} s: {text}"
        print(f"rank {rank} after {took:.1f} s: {text}", flush=True)
        os._exit(0)


def paths(rank: int, size: int) -> None:
    """The paths of this process are on its statistics page, as those of the plugin."""
    from anabranch import _native

    dist.all_reduce(torch.ones(1_000_000))
    time.sleep(0.3)
    [page] = [of for of in _native.pages(os.environ["ANABRANCH_STATS"])[0] if f"-{os.getpid()}-" in str(of)]
    process, scheme, _, connections, labels, numbers = _native.Page(page).read()
    assert (process, scheme, labels) == (os.getpid(), "reps", 2)
    # Three to the other rank: short messages, long ones of collectives, long ones.
    assert len(connections) == 3 * (size - 1) and len(numbers) == len(connections) * labels * 7 * 8
    sent = sum(int.from_bytes(numbers[at + 8 : at + 16], "little") for at in range(0, len(numbers), 56))
    assert sent >= 4_000_000, sent
    dist.barrier()


CASES = {"main": main_cases, "bad_input": bad_input, "killed": killed, "paths": paths}

if __name__ == "__main__":
    case, rank, size, store = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore", message="torch.distributed")
    timeout = timedelta(seconds=float(os.environ.get("TORCH_TIMEOUT", "40")))
    interface = os.environ.get("ANABRANCH_IFNAME")
    anabranch.torch._select_interface([b"a host", b"another"])
    assert os.environ.get("ANABRANCH_IFNAME") == interface
    dist.init_process_group("anabranch", init_method=f"file://{store}", rank=rank, world_size=size, timeout=timeout)
    assert os.environ["ANABRANCH_IFNAME"] == (interface or "lo")
    if case in CASES:
        CASES[case](rank, size)
    dist.destroy_process_group()
