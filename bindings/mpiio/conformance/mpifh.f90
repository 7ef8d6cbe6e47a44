! A program with `include 'mpif.h'`: open, views of sub-arrays and distributed arrays, collective and
! non-blocking access, the shared pointer, hints, size, close, and names padded with blanks.
! Statement 68 of source 004. Two ranks or more.
program conformance
  implicit none
  include 'mpif.h'
  integer, parameter :: n = 6
  integer :: file
  integer :: sub, dist, etype, filetype
  integer :: info, used
  integer :: request
  integer :: status(MPI_STATUS_SIZE)
  integer :: ierror, rank, ranks, failures, total, i, j, count, keys, amode
  integer :: values(n, n), back(n, n), one
  complex :: numbers(4), numbers_back(4)
  integer :: sizes(2), parts(2), starts(2), grid(2), kinds(2), arguments(2)
  integer(kind=MPI_OFFSET_KIND) :: offset, length
  integer, allocatable :: whole(:, :)
  character(len=200) :: prefix, name
  character(len=40) :: datarep
  failures = 0
  call MPI_INIT(ierror)
  call MPI_COMM_RANK(MPI_COMM_WORLD, rank, ierror)
  call MPI_COMM_SIZE(MPI_COMM_WORLD, ranks, ierror)
  call get_environment_variable('CONFORMANCE_PREFIX', prefix)
  if (len_trim(prefix) == 0) prefix = 'pario:/'
  ! Padded with blanks to its length: they do not belong to the name.
  name = trim(prefix) // 'fortran-mpifh'
  call MPI_INFO_CREATE(info, ierror)
  call MPI_INFO_SET(info, 'cb_nodes  ', '1  ', ierror)
  call MPI_FILE_OPEN(MPI_COMM_WORLD, name, MPI_MODE_CREATE + MPI_MODE_RDWR, info, file, ierror)
  call expect(ierror == MPI_SUCCESS, 'open')
  call MPI_FILE_GET_AMODE(file, amode, ierror)
  call expect(amode == MPI_MODE_CREATE + MPI_MODE_RDWR, 'amode')
  call MPI_FILE_GET_INFO(file, used, ierror)
  call expect(ierror == MPI_SUCCESS, 'get_info')
  call MPI_INFO_GET_NKEYS(used, keys, ierror)
  call expect(keys >= 0, 'keys')
  call MPI_INFO_FREE(used, ierror)
  call MPI_INFO_FREE(info, ierror)

  ! Columns of a matrix, one block for each rank.
  sizes = (/ n, n * ranks /)
  parts = (/ n, n /)
  starts = (/ 0, n * rank /)
  call MPI_TYPE_CREATE_SUBARRAY(2, sizes, parts, starts, MPI_ORDER_FORTRAN, MPI_INTEGER, sub, ierror)
  call MPI_TYPE_COMMIT(sub, ierror)
  do j = 1, n
    do i = 1, n
      values(i, j) = (n * rank + j - 1) * n + i
    end do
  end do
  offset = 64
  call MPI_FILE_SET_VIEW(file, offset, MPI_INTEGER, sub, 'native', MPI_INFO_NULL, ierror)
  call expect(ierror == MPI_SUCCESS, 'set_view')
  call MPI_FILE_WRITE_ALL(file, values, n * n, MPI_INTEGER, status, ierror)
  call expect(ierror == MPI_SUCCESS, 'write_all')
  call MPI_GET_COUNT(status, MPI_INTEGER, count, ierror)
  call expect(count == n * n, 'count')
  call MPI_FILE_GET_VIEW(file, offset, etype, filetype, datarep, ierror)
  call expect(offset == 64 .and. datarep == 'native', 'get_view')
  call MPI_FILE_SYNC(file, ierror)
  call MPI_BARRIER(MPI_COMM_WORLD, ierror)
  call MPI_FILE_SYNC(file, ierror)
  back = 0
  offset = 0
  call MPI_FILE_READ_AT_ALL(file, offset, back, n * n, MPI_INTEGER, status, ierror)
  call expect(all(back == values), 'read_at_all')
  back = 0
  call MPI_FILE_IREAD_AT(file, offset, back, n * n, MPI_INTEGER, request, ierror)
  call expect(ierror == MPI_SUCCESS, 'iread_at')
  call MPI_WAIT(request, status, ierror)
  call expect(all(back == values), 'wait')
  allocate(whole(n, n * ranks))
  offset = 64
  call MPI_FILE_SET_VIEW(file, offset, MPI_INTEGER, MPI_INTEGER, 'native', MPI_INFO_NULL, ierror)
  offset = 0
  call MPI_FILE_READ_AT(file, offset, whole, n * n * ranks, MPI_INTEGER, status, ierror)
  do j = 1, n * ranks
    do i = 1, n
      call expect(whole(i, j) == (j - 1) * n + i, 'whole')
    end do
  end do

  ! The same matrix, rows dealt out in turn.
  grid = (/ ranks, 1 /)
  sizes = (/ n * ranks, n /)
  kinds = (/ MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_NONE /)
  arguments = (/ MPI_DISTRIBUTE_DFLT_DARG, MPI_DISTRIBUTE_DFLT_DARG /)
  call MPI_TYPE_CREATE_DARRAY(ranks, rank, 2, sizes, kinds, arguments, grid, MPI_ORDER_FORTRAN, MPI_INTEGER, dist, ierror)
  call MPI_TYPE_COMMIT(dist, ierror)
  offset = 64
  call MPI_FILE_SET_VIEW(file, offset, MPI_INTEGER, dist, 'native', MPI_INFO_NULL, ierror)
  call MPI_FILE_READ_ALL(file, back, n * n, MPI_INTEGER, status, ierror)
  do j = 1, n
    do i = 1, n
      ! Item (i, j) of this rank is row (i - 1) * ranks + rank of column j of an (n * ranks) x n matrix.
      one = (j - 1) * n * ranks + (i - 1) * ranks + rank + 1
      call expect(back(i, j) == one, 'darray')
    end do
  end do
  call MPI_TYPE_FREE(sub, ierror)
  call MPI_TYPE_FREE(dist, ierror)

  ! Complex numbers, and the shared pointer in order.
  offset = 4096
  call MPI_FILE_SET_VIEW(file, offset, MPI_COMPLEX, MPI_COMPLEX, 'native', MPI_INFO_NULL, ierror)
  do i = 1, 4
    numbers(i) = cmplx(rank + 1, i)
  end do
  call MPI_FILE_WRITE_ORDERED(file, numbers, 4, MPI_COMPLEX, status, ierror)
  call expect(ierror == MPI_SUCCESS, 'write_ordered')
  call MPI_FILE_SYNC(file, ierror)
  call MPI_BARRIER(MPI_COMM_WORLD, ierror)
  call MPI_FILE_SYNC(file, ierror)
  call MPI_FILE_GET_POSITION_SHARED(file, offset, ierror)
  call expect(offset == 4 * ranks, 'position_shared')
  call MPI_BARRIER(MPI_COMM_WORLD, ierror)
  offset = 4 * rank
  call MPI_FILE_SEEK(file, offset, MPI_SEEK_SET, ierror)
  call MPI_FILE_READ(file, numbers_back, 4, MPI_COMPLEX, status, ierror)
  call expect(all(numbers == numbers_back), 'complex')
  call MPI_FILE_GET_SIZE(file, length, ierror)
  call expect(length == 4096 + 32 * ranks, 'size')
  call MPI_FILE_CLOSE(file, ierror)
  call expect(ierror == MPI_SUCCESS .and. file == MPI_FILE_NULL, 'close')

  ! The name without blanks is the same file; a missing one is an error, and names its class.
  call MPI_BARRIER(MPI_COMM_WORLD, ierror)
  if (rank == 0) then
    call MPI_FILE_DELETE(trim(name), MPI_INFO_NULL, ierror)
    call expect(ierror == MPI_SUCCESS, 'delete')
    call MPI_FILE_DELETE(name, MPI_INFO_NULL, ierror)
    call expect(ierror /= MPI_SUCCESS, 'delete of a missing file')
    call MPI_ERROR_CLASS(ierror, count, i)
    call expect(count == MPI_ERR_NO_SUCH_FILE, 'error class')
  end if
  call MPI_ALLREDUCE(failures, total, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierror)
  if (rank == 0 .and. total == 0) print '(a)', 'ok seed004_s68_mpifh'
  call MPI_FINALIZE(ierror)
  if (total /= 0) stop 1
contains
  subroutine expect(holds, what)
    logical, intent(in) :: holds
    character(len=*), intent(in) :: what
    if (.not. holds) then
      if (failures == 0) print '(a,i0,a,a)', 'FAIL seed004_s68_mpifh: rank ', rank, ': ', what
      failures = failures + 1
    end if
  end subroutine
end program
