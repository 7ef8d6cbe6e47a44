! vipmpi.f90: the module of the source (6.3.7). Compile it with the Fortran compiler of your MPI, and link with -lvipios:
!
!     mpif90 -c vipmpi.f90 && mpif90 program.f90 vipmpi.o -lvipios
!
! USE vipmpi brings mpi, the clients' communicator, MPIO_INIT and MPIO_FINALIZE, and what ViMPIOS has in place of MPI_WAIT, MPI_TEST
! and MPI_GET_COUNT. Call MPIO_INIT behind MPI_INIT, and MPIO_FINALIZE in front of MPI_FINALIZE.
module vipmpi
  use, intrinsic :: iso_c_binding, only: c_bool, c_int
  use mpi
  implicit none
  public
  private :: c_bool, c_int, vip_connect, vip_disconnect

  integer, parameter :: MPI_COMM_APP = MPI_COMM_WORLD
  integer, parameter :: MPI_COMM_UNIVERSAL = MPI_COMM_WORLD
  integer, parameter :: MPI_COMM_SERV = MPI_COMM_NULL

  interface
    function vip_connect(system_id) bind(c, name='ViPIOS_Connect') result(done)
      import :: c_bool, c_int
      integer(c_int), value :: system_id
      logical(c_bool) :: done
    end function

    function vip_disconnect() bind(c, name='ViPIOS_Disconnect') result(done)
      import :: c_bool
      logical(c_bool) :: done
    end function
  end interface

contains

  subroutine MPIO_INIT(ierror)
    integer, intent(out) :: ierror
    ierror = MPI_ERR_OTHER
    if (vip_connect(0_c_int)) ierror = MPI_SUCCESS
  end subroutine

  subroutine MPIO_FINALIZE(ierror)
    integer, intent(out) :: ierror
    ierror = MPI_ERR_OTHER
    if (vip_disconnect()) ierror = MPI_SUCCESS
  end subroutine

  subroutine MPI_FILE_WAIT(request, status, ierror)
    integer, intent(inout) :: request
    integer, intent(out) :: status(MPI_STATUS_SIZE), ierror
    call MPI_WAIT(request, status, ierror)
  end subroutine

  subroutine MPI_FILE_TEST(request, flag, status, ierror)
    integer, intent(inout) :: request
    logical, intent(out) :: flag
    integer, intent(out) :: status(MPI_STATUS_SIZE), ierror
    call MPI_TEST(request, flag, status, ierror)
  end subroutine

  ! Bytes, whatever the datatype, as in the source.
  subroutine MPI_FILE_GET_COUNT(status, datatype, count, ierror)
    integer, intent(in) :: status(MPI_STATUS_SIZE), datatype
    integer, intent(out) :: count, ierror
    if (datatype == MPI_DATATYPE_NULL) then
      count = 0
      ierror = MPI_ERR_TYPE
      return
    end if
    call MPI_GET_COUNT(status, MPI_BYTE, count, ierror)
  end subroutine
end module
