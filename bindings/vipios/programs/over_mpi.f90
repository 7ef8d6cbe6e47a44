! The Fortran names of the source: module vipmpi, MPIO_INIT and MPIO_FINALIZE, waiting and counting.
program over_mpi
  use vipmpi
  implicit none
  integer :: ierror, rank, fh, request, status(MPI_STATUS_SIZE), count, i
  integer :: mine(8), back(8)
  logical :: flag
  call MPI_INIT(ierror)
  call MPIO_INIT(ierror)
  if (ierror /= MPI_SUCCESS) stop 1
  call MPI_COMM_RANK(MPI_COMM_APP, rank, ierror)
  do i = 1, 8
    mine(i) = 100 * rank + i
  end do
  call MPI_FILE_OPEN(MPI_COMM_APP, 'pario:/vipmpi   ', MPI_MODE_CREATE + MPI_MODE_RDWR, MPI_INFO_NULL, fh, ierror)
  if (ierror /= MPI_SUCCESS) stop 2
  call MPI_FILE_IWRITE_AT(fh, int(rank * 32, MPI_OFFSET_KIND), mine, 8, MPI_INTEGER, request, ierror)
  call MPI_FILE_WAIT(request, status, ierror)
  call MPI_FILE_GET_COUNT(status, MPI_INTEGER, count, ierror)
  if (ierror /= MPI_SUCCESS .or. count /= 32) stop 3
  call MPI_FILE_IREAD_AT(fh, int(rank * 32, MPI_OFFSET_KIND), back, 8, MPI_INTEGER, request, ierror)
  flag = .false.
  do while (.not. flag)
    call MPI_FILE_TEST(request, flag, status, ierror)
  end do
  if (any(back /= mine)) stop 4
  call MPI_FILE_CLOSE(fh, ierror)
  call MPI_BARRIER(MPI_COMM_UNIVERSAL, ierror)
  if (rank == 0) print '(a)', 'all is well'
  call MPIO_FINALIZE(ierror)
  if (ierror /= MPI_SUCCESS) stop 5
  call MPI_FINALIZE(ierror)
end program
