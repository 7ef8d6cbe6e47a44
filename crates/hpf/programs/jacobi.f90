! An HPF program: Jacobi's method on a plate whose left side is warm. It writes the plate as (BLOCK,BLOCK), and a second part reads it as
! (CYCLIC,CYCLIC), as another program would.
program jacobi
  use, intrinsic :: iso_fortran_env, only: error_unit
  implicit none
  integer, parameter :: n = 24
  real(8) :: plate(n, n), next(n, n), back(n, n)
  integer :: step, ios, steps
  logical :: is_there
  !HPF$ PROCESSORS procs(2,2)
  !HPF$ DISTRIBUTE (BLOCK,BLOCK) ONTO procs :: plate, &
  !HPF$&  next
  !HPF$ DISTRIBUTE back(CYCLIC,CYCLIC) ONTO procs

  plate = 0
  plate(:, 1) = 100   ! a warm side
  do step = 1, 50
    next = plate
    next(2:n-1, 2:n-1) = 0.25d0*(plate(1:n-2, 2:n-1) + plate(3:n, 2:n-1) + plate(2:n-1, 1:n-2) + plate(2:n-1, 3:n))
    plate = next
  end do
  open (10, file='plate', form='unformatted', status='replace', iostat=ios) ! the plate; and how often
  if (ios /= 0) stop 'no file'
  write (10) step - 1, plate
  close (10)

  inquire (file='plate', exist=is_there); if (.not. is_there) stop 'it is gone'
  open (unit=10, file='plate', form="unformatted", status='old', action='read')
  back = -1
  read (10, err=20, end=20) steps, &
      back     ! under another distribution
  read (10, iostat=ios) back
  if (ios == 0) stop 'there is no second plate'
  close (10)
  call check()
  write (*, '(a,i0)') 'steps: ', steps
  stop
20 write (error_unit, *) 'the plate could not be read'
  error stop 1

contains

  ! What came of it: every process has read its own part.
  subroutine check()
    use pario_hpf
    integer :: i, j, own
    do j = 1, n
      do i = 1, n
        own = mod(i - 1, 2) + 2*mod(j - 1, 2)
        if (pario_hpf_processes() > 1 .and. own /= pario_hpf_rank()) then
          if (back(i, j) /= -1) error stop 'a part of another'
        else
          if (abs(back(i, j) - plate(i, j)) > 0) error stop 'another value'
        end if
      end do
    end do
  end subroutine
end program
