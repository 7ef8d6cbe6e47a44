! Declarations of local parts: the whole is a template, or a directive DIMENSION.
program local
  use pario_hpf, only: pario_hpf_rank
  implicit none
  integer, allocatable :: a(:, :), b(:)
  integer :: i, j, u, rank, ios
  character(80) :: message
  !HPF$ PROCESSORS p(2)
  !HPF$ TEMPLATE t(0:5, 4)
  !HPF$ DISTRIBUTE t(BLOCK, *) ONTO p
  !HPF$ ALIGN a(i,j) WITH t(i,j)
  !HPF$ DIMENSION b(7)
  !HPF$ DISTRIBUTE b(CYCLIC) ONTO p
  rank = pario_hpf_rank()
  allocate (a(3, 4), b(4 - rank))
  a = reshape([((100*(i + 3*rank) + j, i=1, 3), j=1, 4)], [3, 4])
  b = [(i, i=1 + rank, 7, 2)]
  open (newunit=u, file='local', form='unformatted', status='replace')
  write (u, iostat=ios, iomsg=message) a, b
  if (ios /= 0) error stop 'not written'
  rewind (u)
  if (rank >= 0) read (u) a, b
  if (any(a /= reshape([((100*(i + 3*rank) + j, i=1, 3), j=1, 4)], [3, 4]))) error stop 'another a'
  if (any(b /= [(i, i=1 + rank, 7, 2)])) error stop 'another b'
  deallocate (b)
  ! What is wrong in one process fails in all.
  allocate (b(merge(9, 3, rank == 0)), source=0)
  write (u, iostat=ios, iomsg=message) b
  if (ios == 0) error stop 'too long a part was taken'
  if (index(message, merge('the local part ', 'another process', rank == 0)) == 0) error stop 'another reason'
  close (u)
  print '(a)', 'local parts'
end program
