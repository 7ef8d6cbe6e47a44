! A program with `use mpi`: open, views of sub-arrays and distributed arrays, collective and
! non-blocking access, the shared pointer, hints, size, close, and names padded with blanks.
! Statement 68 of source 004. Two ranks or more.
program conformance
  use mpi
  implicit none
  character(len=*), parameter :: kind = 'usempi'
  integer, parameter :: n = 6
  integer :: file
  integer :: sub, dist, etype, filetype
  integer :: info, used
  integer :: request
  integer :: status(MPI_STATUS_SIZE)
  include 'fortran.inc'
end program
