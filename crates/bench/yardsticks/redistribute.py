"""The numpy yardstick of `pario bench move`: the copies of a redistribution, each np.copyto between strided views.

Lines in, one answer each:

  setup <source bytes> <target bytes> <copies> { <source offset> <target offset> <len> <levels> { <count> <source stride> <target stride> } }  -> "ok"
  run <iterations>                                                                                                       -> nanoseconds

Views are made in setup, so that a pass only copies. Offsets, strides and blocks that are multiples of 8 bytes are
taken as 8-byte words, which is numpy's best case.
"""

import mmap
import sys
import time

import numpy as np
from numpy.lib.stride_tricks import as_strided

HUGE = 2 << 20


def mapped(size):
    size = -(-size // HUGE) * HUGE + HUGE
    region = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    region.madvise(mmap.MADV_HUGEPAGE)
    array = np.frombuffer(region, dtype=np.uint8)
    start = -array.ctypes.data % HUGE
    array = array[start : start + size - HUGE]
    array[:] = 1
    return array


def view(array, offset, length, shape, strides, width):
    word = np.dtype(f"u{width}")
    part = array[offset : offset + (len(array) - offset) // width * width].view(word)
    if length == width:
        return as_strided(part, shape=shape, strides=strides)
    return as_strided(part, shape=shape + (length // width,), strides=strides + (width,))


def main():
    copies = []
    print("ready", flush=True)
    for line in sys.stdin:
        word, *rest = line.split()
        if word == "setup":
            numbers = iter(map(int, rest))
            source, target = mapped(next(numbers)), mapped(next(numbers))
            copies = []
            for _ in range(next(numbers)):
                source_offset, target_offset, length, levels = (next(numbers) for _ in range(4))
                triples = [tuple(next(numbers) for _ in range(3)) for _ in range(levels)]
                shape = tuple(triple[0] for triple in triples)
                steps = [step for triple in triples for step in triple[1:]]
                width = 8
                while any(n % width for n in [source_offset, target_offset, length, *steps]):
                    width //= 2
                from_view = view(source, source_offset, length, shape, tuple(t[1] for t in triples), width)
                to_view = view(target, target_offset, length, shape, tuple(t[2] for t in triples), width)
                copies.append((to_view, from_view))
            print("ok", flush=True)
        elif word == "run":
            start = time.perf_counter_ns()
            for _ in range(int(rest[0])):
                for to_view, from_view in copies:
                    np.copyto(to_view, from_view)
            print(time.perf_counter_ns() - start, flush=True)
        else:
            break


main()
