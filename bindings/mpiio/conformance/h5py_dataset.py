"""h5py with MPI: each rank writes its rows and reads its neighbour's. Two ranks or more."""

import sys

import h5py
import numpy
from mpi4py import MPI

comm = MPI.COMM_WORLD
rank, size = comm.rank, comm.size
rows, columns = 5, 7
mine = numpy.arange(rows * columns, dtype="f8").reshape(rows, columns) + 1000 * rank
with h5py.File("/h5py-dataset.h5", "w", driver="mpio", comm=comm) as file:
    data = file.create_dataset("matrix", (rows * size, columns), dtype="f8")
    with data.collective:
        data[rows * rank : rows * (rank + 1)] = mine
with h5py.File("/h5py-dataset.h5", "r", driver="mpio", comm=comm) as file:
    other = (rank + 1) % size
    with file["matrix"].collective:
        back = file["matrix"][rows * other : rows * (other + 1)]
right = comm.allreduce(bool((back == mine - 1000 * rank + 1000 * other).all()), op=MPI.LAND)
if rank == 0:
    print("ok h5py_dataset" if right else "FAIL h5py_dataset: other values came back", flush=True)
sys.exit(0 if right else 1)
