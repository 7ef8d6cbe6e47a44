! Parts of distributed arrays: sections, elements, columns and loops within lists, written under one distribution and read under another;
! files that end where they were written last, that are streams, and that have records.
program sections
  implicit none
  integer, parameter :: n = 6, m = 7
  integer, parameter :: unit = 10
  integer :: a(0:n-1, m), b(n, m), i, j, k, ios, at
  integer(8) :: last
  logical :: is_there
  character(20) :: word, may
  !HPF$ PROCESSORS p(2,2)
  !HPF$ DISTRIBUTE a(BLOCK, CYCLIC(2)) ONTO p
  !HPF$ DISTRIBUTE b(CYCLIC, BLOCK) ONTO p

  a = reshape([((10*i + j, i=1, n), j=1, m)], [n, m])
  k = 4
  last = m
  open (10, file='sections', form='unformatted', status='replace')
  write (unit) a(:,:)
  write (unit) a(1:4:2, 2:last), k, a(3, 5)
  write (10) ((a(i, j), i=0, n-1), j=2, 3)
  write (10) a(:, k), a(1:0, :)
  rewind 10
  b = -1
  read (10) b
  call check(a, 'all')
  read (10) b(1:2, :m-1), at, b(2, 2)
  call check_part(1, 2, 1, 6, a(1:4:2, 2:m), 'every second row', 2, 2)
  if (at /= k) error stop 'what all have alike'
  i = 2
  call check_part(2, 2, 2, 2, a(3:3, 5:5), 'an element', 0, 0)
  read (10) (b(i, 1), i=1, n), (b(i, 2), i=1, n)
  call check_part(1, n, 1, 2, a(:, 2:3), 'columns', 0, 0)
  read (10, iostat=ios) b(:, 7)
  if (ios /= 0) error stop 'there is a column'
  call check_part(1, n, 7, 7, a(:, 4:4), 'a column', 0, 0)
  read (10, iostat=ios) at
  if (.not. is_iostat_end(ios)) error stop 'that was all'

  ! What is written is the last that there is.
  rewind (10)
  write (10) a(:, 5:6)
  rewind 10
  read (10) b(:, 6:7)
  call check_part(1, n, 6, 7, a(:, 5:6), 'over what was there', 0, 0)
  read (10, iostat=ios) at
  if (.not. is_iostat_end(ios)) error stop 'the rest is still there'
  rewind 10
  read (10) b(:, 6)
  endfile 10
  flush (10, iostat=ios)
  if (ios /= 0) error stop 'not flushed'
  rewind 10
  read (10, end=5) b(:, 6), b(:, 7)
  error stop 'the file did not end'
5 close (unit)

  open (11, file='stream', access='stream', form='unformatted', status='replace')
  write (11) a
  write (11, pos=1 + 4*n) a(:, 7)
  inquire (11, pos=at, access=word, size=i, readwrite=may)
  if (at /= 1 + 8*n .or. word /= 'STREAM' .or. may /= 'YES' .or. i /= 4*n*m) error stop 'another position'
  read (11, pos=1 + 4*n) b(:, 1:2)
  call check_part(1, n, 1, 1, a(:, 7:7), 'in a stream', 0, 0)
  close (11)

  open (12, access='direct', recl=64, status='scratch')
  write (12, rec=3) k, a(:, 1)
  write (12, rec=1) k + 1, a(:, 2)
  at = 0
  read (12, rec=3) at, b(:, 7)
  if (at /= k) error stop 'another record'
  call check_part(1, n, 7, 7, a(:, 1:1), 'a record', 0, 0)
  inquire (unit=12, recl=at, nextrec=i)
  if (at /= 64 .or. i /= 3) error stop 'another length of records'
  close (12)
  inquire (file='stream', exist=is_there, unformatted=word)
  if (.not. is_there .or. word /= 'YES') error stop 'no stream'
  write (word, *) b(1, 1)
  print '(a)', 'parts'

contains

  ! Whether b has what it should: its own entries.
  subroutine check(what, name)
    integer, intent(in) :: what(:, :)
    character(*), intent(in) :: name
    call check_part(1, n, 1, m, what, name, 0, 0)
  end subroutine

  ! The same of a part, but for one entry.
  subroutine check_part(i1, i2, j1, j2, what, name, but_i, but_j)
    use pario_hpf
    integer, intent(in) :: i1, i2, j1, j2, what(i1:, j1:), but_i, but_j
    character(*), intent(in) :: name
    integer :: i, j, own
    do j = j1, j2
      do i = i1, i2
        own = mod(i - 1, 2) + 2*((j - 1)/4)
        if (i == but_i .and. j == but_j) cycle
        if (pario_hpf_processes() > 1 .and. own /= pario_hpf_rank()) cycle
        if (b(i, j) /= what(i, j)) error stop 'another part'
      end do
    end do
    do j = 1, m
      do i = 1, n
        own = mod(i - 1, 2) + 2*((j - 1)/4)
        if (pario_hpf_processes() == 1 .or. own == pario_hpf_rank()) cycle
        if (b(i, j) /= -1) error stop 'a part of another process'
      end do
    end do
    if (len(name) == 0) print *, name
  end subroutine
end program
