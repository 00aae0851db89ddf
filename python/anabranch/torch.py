"""The backend "anabranch" of `torch.distributed`: import this module, then `init_process_group("anabranch")`."""

from __future__ import annotations

import atexit
import collections
import contextlib
import inspect
import os
import weakref
from datetime import timedelta
from pathlib import Path
from typing import Any, Iterable, Sequence

import torch
import torch.distributed as dist

from . import _native

_DTYPES = {
    getattr(torch, name): name
    for name in ["uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64", "bool"]
}
# PyTorch's own code holds the native part of a work alone, which is lost without this one: it is kept until its first use.
_unused: collections.deque[Work] = collections.deque(maxlen=64)
# Variables that select an interface, and those of them that this module has set.
_SELECTORS = ["ANABRANCH_" + name for name in ["IFNAME", "ADDRESS", "PLANES", "DATAPATH"]]
_SELECTORS += ["NCCL_SOCKET_IFNAME", "NCCL_SOCKET_FAMILY"]
_selected: list[str] = []
_groups: weakref.WeakSet[ProcessGroup] = weakref.WeakSet()


def _check(tensors: Iterable[torch.Tensor]) -> None:
    for tensor in tensors:
        if tensor.device.type != "cpu":
            raise ValueError(f"anabranch: a tensor on {tensor.device}: pass tensor.cpu()")
        if tensor.layout != torch.strided:
            raise ValueError(f"anabranch: a tensor of layout {tensor.layout}: pass tensor.to_dense()")
        if not tensor.is_contiguous():
            raise ValueError("anabranch: a tensor that is not contiguous: pass tensor.contiguous()")


def _memory(tensor: torch.Tensor) -> tuple[int, int]:
    return tensor.data_ptr(), tensor.numel() * tensor.element_size()


def _dtype(tensors: Sequence[torch.Tensor]) -> torch.dtype:
    dtypes = {tensor.dtype for tensor in tensors}
    if len(dtypes) > 1:
        raise ValueError(f"anabranch: tensors of {', '.join(sorted(map(str, dtypes)))}: pass one type")
    return next(iter(dtypes))


def _name(reduction: Any) -> str:
    return str(getattr(reduction, "op", reduction)).rpartition(".")[2].lower()


def _seconds(of: timedelta | None) -> float | None:
    """Options without a timeout have less than zero."""
    return None if of is None or of < timedelta(0) or of == timedelta(milliseconds=0) else of.total_seconds()


class Work(torch._C._distributed_c10d.Work):  # type: ignore[misc]
    """Operations that were started together."""

    def __init__(self, works: Sequence[_native.Work], result: Any) -> None:
        super().__init__()
        self._works, self._result = works, result
        self._future: torch.futures.Future[Any] | None = None
        _unused.append(self)

    def _used(self) -> None:
        with contextlib.suppress(ValueError, IndexError):
            _unused.remove(self)

    def is_completed(self) -> bool:
        return all(work.is_done() for work in self._works)

    def is_success(self) -> bool:
        return self.is_completed() and self.exception() is None

    def exception(self) -> RuntimeError | None:
        errors = [error for work in self._works if (error := work.error()) is not None]
        return RuntimeError(errors[0]) if errors else None

    def wait(self, timeout: timedelta | None = None) -> bool:
        self._used()
        limit = _seconds(timeout) or float("inf")
        for work in self._works:
            work.wait(limit)
        return True

    def synchronize(self) -> None:
        self.wait()

    def result(self) -> Any:
        return self._result

    def source_rank(self) -> int:
        return self._works[0].wait(float("inf"))

    _source_rank = source_rank

    def get_future(self) -> torch.futures.Future[Any]:
        self._used()
        if self._future is None:
            future: torch.futures.Future[Any] = torch.futures.Future()
            self._future, left = future, iter(self._works)

            def step() -> None:
                work = next(left, None)
                if work is not None:
                    work.on_done(step)
                elif (error := self.exception()) is not None:
                    future.set_exception(error)
                else:
                    future.set_result(self._result)

            step()
        return self._future


def _host() -> str:
    """Machine and network namespace."""
    return Path("/proc/sys/kernel/random/boot_id").read_text() + os.readlink("/proc/self/ns/net")


def _select_interface(hosts: list[bytes]) -> None:
    """Makes ranks of one host use lo, whose packets are the largest, unless a variable selects another interface."""
    if _groups:
        return  # of which the interface is in use
    if _selected:
        os.environ.pop(_selected.pop(), None)
    if len(set(hosts)) == 1 and not any(name in os.environ for name in _SELECTORS):
        os.environ["ANABRANCH_IFNAME"] = "lo"
        _selected.append("ANABRANCH_IFNAME")


class ProcessGroup(dist.ProcessGroup):  # type: ignore[misc]
    """A rank of a process group over the datapath of the NCCL plugin, with its variables."""

    def __init__(self, store: Any, rank: int, size: int, timeout: timedelta) -> None:
        super().__init__(rank, size)
        self._timeout, self._own, self._all = timeout.total_seconds(), rank, size
        _select_interface(self._exchange(store, "host", _host().encode()))
        self._group = _native.Group(rank, size)
        _groups.add(self)
        self._group.connect(self._exchange(store, "address", self._group.address()), self._timeout)

    def _exchange(self, store: Any, what: str, value: bytes) -> list[bytes]:
        store.set(f"anabranch/{what}/{self._own}", f"{self._all} {value.hex()}")
        values = []
        for of in range(self._all):
            try:
                store.wait([f"anabranch/{what}/{of}"], timedelta(seconds=self._timeout))
            except RuntimeError as error:
                raise RuntimeError(
                    f"anabranch: rank {of} of {self._all} has no address in the store after {self._timeout:g} s: start it,"
                    " or give the number of ranks that there are"
                ) from error
            size, _, theirs = store.get(f"anabranch/{what}/{of}").decode().partition(" ")
            if size != str(self._all):
                raise RuntimeError(
                    f"anabranch: rank {of} is of {size} ranks; rank {self._own} is of {self._all} ranks; give all ranks the"
                    " same world size"
                )
            values.append(bytes.fromhex(theirs))
        return values

    def getBackendName(self) -> str:  # noqa: N802, by this name PyTorch calls it
        return "anabranch"

    _get_backend_name = name = getBackendName

    # Later versions of PyTorch expect these of a backend within the group.
    group_name = group_desc = ""

    def _set_group_name(self, name: str) -> None:
        self.group_name = name

    def _set_group_desc(self, words: str) -> None:
        self.group_desc = words

    def _get_backend(self, _device: torch.device) -> ProcessGroup:
        return self

    get_backend = _get_backend

    def _start(
        self,
        kind: str,
        opts: Any,
        inputs: Sequence[torch.Tensor],
        outputs: Sequence[torch.Tensor],
        root: int = 0,
        reduction: str = "sum",
    ) -> _native.Work:
        tensors = [*inputs, *outputs]
        _check(tensors)
        dtype = _dtype(tensors)
        if dtype.is_complex and reduction in ("sum", "avg"):
            inputs, outputs = ([torch.view_as_real(of) for of in some] for some in (inputs, outputs))
            dtype = outputs[0].dtype
        name = _DTYPES.get(dtype)
        if kind in ("allreduce", "reduce", "reduce_scatter"):
            if name is None or (reduction == "avg" and name == "bool"):
                raise ValueError(f"anabranch: {reduction} of {dtype}: allowed are {', '.join(_DTYPES.values())}")
        timeout = _seconds(getattr(opts, "timeout", None)) or self._timeout
        memories = [_memory(of) for of in inputs], [_memory(of) for of in outputs]
        return self._group.start(kind, name or "opaque", reduction, root, *memories, tensors, timeout)

    def allreduce(self, tensors: Any, opts: Any = None) -> Work:
        return self.allreduce_coalesced(tensors, opts)

    def allreduce_coalesced(self, tensors: Any, opts: Any = None) -> Work:
        tensors = [tensors] if isinstance(tensors, torch.Tensor) else list(tensors)
        reduction = _name(getattr(opts, "reduceOp", opts or dist.ReduceOp.SUM))
        works = [self._start("allreduce", opts, [], [tensor], 0, reduction) for tensor in tensors]
        return Work(works, tensors)

    def broadcast(self, tensors: Any, opts: Any) -> Work:
        tensors = [tensors] if isinstance(tensors, torch.Tensor) else list(tensors)
        root = opts if isinstance(opts, int) else opts.rootRank
        return Work([self._start("broadcast", opts, [], [tensor], root) for tensor in tensors], tensors)

    def reduce(self, tensors: Any, opts: Any) -> Work:
        works = [self._start("reduce", opts, [], [of], opts.rootRank, _name(opts.reduceOp)) for of in tensors]
        return Work(works, tensors)

    def allgather(self, outputs: Any, inputs: Any, opts: Any = None) -> Work:
        works = [self._start("allgather", opts, [of], into) for into, of in zip(outputs, inputs, strict=True)]
        return Work(works, outputs)

    def allgather_coalesced(self, outputs: Any, inputs: Any, opts: Any = None) -> Work:
        """Takes a list of all tensors per rank."""
        return self.allgather([list(of) for of in zip(*outputs, strict=True)], inputs, opts)

    def _allgather_base(self, output: torch.Tensor, tensor: torch.Tensor, opts: Any = None) -> Work:
        self._fits(output, tensor)
        return Work([self._start("allgather", opts, [tensor], self._blocks(output))], output)

    def reduce_scatter(self, outputs: Any, inputs: Any, opts: Any = None) -> Work:
        reduction = _name(getattr(opts, "reduceOp", None) or dist.ReduceOp.SUM)
        works = [
            self._start("reduce_scatter", opts, of, [into], 0, reduction)
            for into, of in zip(outputs, inputs, strict=True)
        ]
        return Work(works, outputs)

    def _reduce_scatter_base(self, output: torch.Tensor, tensor: torch.Tensor, opts: Any = None) -> Work:
        self._fits(tensor, output)
        return self.reduce_scatter([output], [self._blocks(tensor)], opts)

    def _reduce_scatter_coalesced(self, outputs: Any, inputs: Any, opts: Any = None) -> Work:
        for into, of in zip(outputs, inputs, strict=True):
            self._fits(of, into)
        return self.reduce_scatter(outputs, [self._blocks(of) for of in inputs], opts)

    def _allgather_coalesced(self, outputs: Any, inputs: Any, opts: Any = None) -> Work:
        for into, of in zip(outputs, inputs, strict=True):
            self._fits(into, of)
        return self.allgather([self._blocks(into) for into in outputs], inputs, opts)

    def alltoall(self, outputs: Any, inputs: Any, opts: Any = None) -> Work:
        return Work([self._start("alltoall", opts, inputs, outputs)], outputs)

    def alltoall_base(
        self,
        output: torch.Tensor,
        tensor: torch.Tensor,
        output_splits: Sequence[int],
        input_splits: Sequence[int],
        opts: Any = None,
    ) -> Work:
        blocks = self._blocks(output, output_splits), self._blocks(tensor, input_splits)
        return Work([self._start("alltoall", opts, blocks[1], blocks[0])], [output])

    def gather(self, outputs: Any, inputs: Any, opts: Any) -> Work:
        into = outputs[0] if opts.rootRank == self._own else []
        return Work([self._start("gather", opts, inputs, into, opts.rootRank)], outputs)

    def gather_single(self, output: torch.Tensor, tensor: torch.Tensor, opts: Any) -> Work:
        if opts.rootRank == self._own:
            self._fits(output, tensor)
        return self.gather([self._blocks(output)] if opts.rootRank == self._own else [], [tensor], opts)

    def scatter(self, outputs: Any, inputs: Any, opts: Any) -> Work:
        of = inputs[0] if opts.rootRank == self._own else []
        return Work([self._start("scatter", opts, of, outputs, opts.rootRank)], outputs)

    def barrier(self, opts: Any = None) -> Work:
        timeout = _seconds(getattr(opts, "timeout", None)) or self._timeout
        return Work([self._group.start("barrier", "opaque", "sum", 0, [], [], None, timeout)], [])

    def send(self, tensors: Any, to: int, tag: int = 0) -> Work:
        _check(tensors)
        return Work([self._group.send(to, tag, _memory(of), of, self._timeout) for of in tensors], tensors)

    def recv(self, tensors: Any, of: int | None, tag: int = 0) -> Work:
        _check(tensors)
        works = [self._group.receive(of, tag, _memory(into), into, self._timeout) for into in tensors]
        return Work(works, tensors)

    def recv_anysource(self, tensors: Any, tag: int = 0) -> Work:
        return self.recv(tensors, None, tag)

    # Names of later versions of PyTorch.
    all_gather_single = _allgather_base
    reduce_scatter_single = _reduce_scatter_base
    all_to_all_single = alltoall_base
    gather_into_tensor = gather_single
    allgather_into_tensor_coalesced = all_gather_single_coalesced = _allgather_coalesced
    reduce_scatter_tensor_coalesced = reduce_scatter_single_coalesced = _reduce_scatter_coalesced

    def _start_coalescing(self, *_: Any) -> None:
        """Operations of one call begin as they are passed: nothing is gained by waiting for the last."""

    def _end_coalescing(self, *_: Any) -> None:
        pass

    def _fits(self, large: torch.Tensor, small: torch.Tensor) -> None:
        if large.numel() != small.numel() * self._all:
            sizes = f"{large.numel()} and {small.numel()} elements"
            raise ValueError(f"anabranch: tensors of {sizes}: expected {self._all} times as many, one part per rank")

    def _blocks(self, tensor: torch.Tensor, splits: Sequence[int] = ()) -> list[torch.Tensor]:
        """Returns the part of each rank, by rows; equal parts if there are no splits."""
        _check([tensor])
        if not splits:
            if tensor.numel() % self._all:
                raise ValueError(f"anabranch: {tensor.numel()} elements are no equal parts for {self._all} ranks")
            return list(tensor.view(-1).split(tensor.numel() // self._all)) if tensor.numel() else [tensor] * self._all
        if sum(splits) != tensor.shape[0] or len(splits) != self._all:
            raise ValueError(f"anabranch: splits {list(splits)}: expected {self._all} with a sum of {tensor.shape[0]}")
        return list(tensor.split(list(splits)))

    def close(self) -> None:
        """Ends the group after its last messages have arrived."""
        self._group.close()

    shutdown = abort = close

    def set_timeout(self, timeout: timedelta) -> None:
        self._timeout = timeout.total_seconds()


@atexit.register
def _close() -> None:
    for group in list(_groups):
        group.close()


def _create(store: Any, rank: int, size: int, timeout: timedelta) -> ProcessGroup:
    return ProcessGroup(store, rank, size, timeout)


if not hasattr(dist.Backend, "ANABRANCH"):
    # PyTorch warns without them from 2.1 on.
    _devices = {"devices": ["cpu"]} if "devices" in inspect.signature(dist.Backend.register_backend).parameters else {}
    dist.Backend.register_backend("anabranch", _create, **_devices)
