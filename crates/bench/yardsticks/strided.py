"""The numpy yardstick of `pario bench kernels`: np.copyto between two strided views.

The same line protocol as pack.c, with both strides of every level:

  setup <pages> <source bytes> <target bytes> <len> <levels> { <count> <source stride> <target stride> }  -> "ok"
  run <iterations>                                                                             -> nanoseconds

<pages> is "huge" for memory of one's own, or two files to map, "source:target".

Blocks of 1, 2, 4, 8 and 16 bytes are elements of that size, which is numpy's best case; longer ones are
an innermost axis of bytes, or of 8-byte words where strides and length allow, whichever is faster.
"""

import mmap
import sys
import time

import numpy as np
from numpy.lib.stride_tricks import as_strided

HUGE = 2 << 20
ELEMENT = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64, 16: np.complex128}


def mapped(size):
    size = -(-size // HUGE) * HUGE + HUGE
    region = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    region.madvise(mmap.MADV_HUGEPAGE)
    array = np.frombuffer(region, dtype=np.uint8)
    start = -array.ctypes.data % HUGE
    array = array[start : start + size - HUGE]
    array[:] = 1
    return array


def mapped_file(path, size):
    with open(path, "r+b", buffering=0) as file:
        return np.frombuffer(mmap.mmap(file.fileno(), size), dtype=np.uint8)


def view(array, length, shape, strides):
    if length in ELEMENT:
        array = array[: len(array) // length * length].view(ELEMENT[length])
        return as_strided(array, shape=shape, strides=strides)
    word = np.uint64 if length % 8 == 0 and all(stride % 8 == 0 for stride in strides) else np.uint8
    width = np.dtype(word).itemsize
    return as_strided(array.view(word), shape=shape + (length // width,), strides=strides + (width,))


def main():
    buffers = None
    source = target = None
    print("ready", flush=True)
    for line in sys.stdin:
        word, *rest = line.split()
        if word == "setup":
            pages, *rest = rest
            numbers = [int(text) for text in rest]
            source_bytes, target_bytes, length, levels = numbers[:4]
            triples = [numbers[4 + 3 * level : 7 + 3 * level] for level in range(levels)]
            source = target = buffers = None
            if pages == "huge":
                buffers = mapped(source_bytes), mapped(target_bytes)
            else:
                files = zip(pages.split(":"), (source_bytes, target_bytes))
                buffers = tuple(mapped_file(path, size) for path, size in files)
            shape = tuple(triple[0] for triple in triples)
            source = view(buffers[0], length, shape, tuple(triple[1] for triple in triples))
            target = view(buffers[1], length, shape, tuple(triple[2] for triple in triples))
            print("ok", flush=True)
        elif word == "run":
            start = time.perf_counter_ns()
            for _ in range(int(rest[0])):
                np.copyto(target, source)
            print(time.perf_counter_ns() - start, flush=True)
        else:
            break


main()
