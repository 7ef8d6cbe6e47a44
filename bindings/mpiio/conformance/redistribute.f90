! Redistribution from Fortran, with handles of `use mpi` and of `use mpi_f08`: rows become columns.
program redistribute
  use mpi_f08
  use pario_mpi
  implicit none
  integer, parameter :: n = 12
  integer :: rank, many, i, j, k, error, wrong
  integer :: sizes(2), parts(2), starts(2)
  type(MPI_Datatype) :: rows, columns
  real(8), allocatable :: buffer(:), other(:)

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, many)
  sizes = [n, n]
  parts = [n / many, n]
  starts = [rank * (n / many), 0]
  call MPI_Type_create_subarray(2, sizes, parts, starts, MPI_ORDER_FORTRAN, MPI_DOUBLE_PRECISION, rows)
  parts = [n, n / many]
  starts = [0, rank * (n / many)]
  call MPI_Type_create_subarray(2, sizes, parts, starts, MPI_ORDER_FORTRAN, MPI_DOUBLE_PRECISION, columns)
  call MPI_Type_commit(rows)
  call MPI_Type_commit(columns)
  allocate (buffer(n * (n / many)), other(n * (n / many)))
  k = 0
  do j = 1, n
    do i = rank * (n / many) + 1, (rank + 1) * (n / many)
      k = k + 1
      buffer(k) = 100 * i + j
    end do
  end do
  call pario_redistribute_to(buffer, rows, other, columns, MPI_COMM_WORLD, error)
  wrong = error
  call pario_redistribute(buffer, rows%MPI_VAL, columns%MPI_VAL, MPI_COMM_WORLD%MPI_VAL, error)
  wrong = wrong + error
  k = 0
  do j = rank * (n / many) + 1, (rank + 1) * (n / many)
    do i = 1, n
      k = k + 1
      if (buffer(k) /= 100 * i + j .or. other(k) /= 100 * i + j) wrong = wrong + 1
    end do
  end do
  call MPI_Allreduce(MPI_IN_PLACE, wrong, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
  if (rank == 0 .and. wrong == 0) print '(a)', 'ok fortran_redistributes'
  if (rank == 0 .and. wrong /= 0) print '(a,i0)', 'FAIL fortran_redistributes: ', wrong
  call MPI_Type_free(rows)
  call MPI_Type_free(columns)
  call MPI_Finalize()
end program
