! Pario beside MPI, for Fortran: redistribution of arrays in the memory of MPI processes.
!
! Compile this file with the MPI compiler of the program. Handles may be integers (`use mpi`) or those of `use mpi_f08`.
! What the arguments mean is in pario_mpi.h. Matrices: pario_pdgemr2d and its relatives are called like pdgemr2d.
module pario_mpi
  implicit none
  private
  public :: pario_redistribute, pario_redistribute_to

  interface pario_redistribute
    subroutine pario_redistribute(buf, source, target, comm, ierror)
      type(*), dimension(*) :: buf
      integer, intent(in) :: source, target, comm
      integer, intent(out) :: ierror
    end subroutine
    procedure redistribute_f08
  end interface

  interface pario_redistribute_to
    subroutine pario_redistribute_to(from, source, to, target, comm, ierror)
      type(*), dimension(*) :: from, to
      integer, intent(in) :: source, target, comm
      integer, intent(out) :: ierror
    end subroutine
    procedure redistribute_to_f08
  end interface

contains

  subroutine redistribute_f08(buf, source, target, comm, ierror)
    use mpi_f08, only: MPI_Datatype, MPI_Comm
    type(*), dimension(*) :: buf
    type(MPI_Datatype), intent(in) :: source, target
    type(MPI_Comm), intent(in) :: comm
    integer, intent(out) :: ierror
    call pario_redistribute(buf, source%MPI_VAL, target%MPI_VAL, comm%MPI_VAL, ierror)
  end subroutine

  subroutine redistribute_to_f08(from, source, to, target, comm, ierror)
    use mpi_f08, only: MPI_Datatype, MPI_Comm
    type(*), dimension(*) :: from, to
    type(MPI_Datatype), intent(in) :: source, target
    type(MPI_Comm), intent(in) :: comm
    integer, intent(out) :: ierror
    call pario_redistribute_to(from, source%MPI_VAL, to, target%MPI_VAL, comm%MPI_VAL, ierror)
  end subroutine
end module
