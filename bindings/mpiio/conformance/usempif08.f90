! A program with `use mpi_f08`: open, views of sub-arrays and distributed arrays, collective and
! non-blocking access, the shared pointer, hints, size, close, and names padded with blanks.
! Statement 68 of source 004. Two ranks or more.
program conformance
  use mpi_f08
  implicit none
  character(len=*), parameter :: kind = 'usempif08'
  integer, parameter :: n = 6
  type(MPI_File) :: file
  type(MPI_Datatype) :: sub, dist, etype, filetype
  type(MPI_Info) :: info, used
  type(MPI_Request) :: request
  type(MPI_Status) :: status
  include 'fortran.inc'
end program
