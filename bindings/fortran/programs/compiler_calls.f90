! What the HPF compiler of ViPIOS made of a program: A(14,17), (CYCLIC(3),BLOCK) onto P(2,3), run by six processes, each with its
! local part and the run-time descriptor. It is written so, and read as (BLOCK,CYCLIC(2)) onto P(3,2).
program compiler_calls
    use, intrinsic :: iso_fortran_env
    use pario_hpf
    implicit none
    integer, parameter :: rows = 14, columns = 17
    character(256) :: url
    integer :: connection, fd, other, rank, i
    integer, allocatable :: local(:, :), back(:, :), mine(:), theirs(:), none(:)
    integer :: written(13), read_as(13), narrow(9)

    call get_command_argument(1, url)
    call check(vipios_connect(trim(url), connection) == 0, 'connected')
    rank = pario_hpf_rank()
    call check(pario_hpf_processes() == 6, 'six processes')
    call check(vipios_open_binary(connection, 'absent', 0, 0) == -1, 'an old file that is not there')
    fd = vipios_open_binary(connection, 'matrix', 1, 0)
    call check(fd >= 0, 'a new file')
    call check(vipios_open_binary(connection, 'matrix', 1, 0) == -1, 'a new file that is there')
    call check(vipios_open_binary(connection, 'matrix', 7, 0) == -1, 'a status that is none')

    ! Rank 4 is processor (0,2), its coordinates with the first one fastest.
    mine = owned(rows, 2, mod(rank, 2), 3, .true.)
    theirs = owned(columns, 3, rank/2, 6, .false.)
    allocate (local(size(mine), size(theirs)))
    call fill(local, mine, theirs)
    written = [2, 2, 3, 8, 4, 2, rows, size(mine), 3, 3, columns, size(theirs), 1]
    call check(vipios_write_binary_array(connection, fd, local, [written, 6]) == 0, 'written')
    local = -local
    call check(vipios_write_binary_array(connection, fd, local, [written, 6]) == 0, 'written behind it')
    call check(vipios_close_binary(connection, fd) == 0, 'closed')
    call check(vipios_close_binary(connection, fd) == -1, 'closed twice')

    fd = vipios_open_binary(connection, 'matrix', 0, 1)
    call check(fd >= 0, 'an old file')
    mine = owned(rows, 3, mod(rank, 3), 5, .false.)
    theirs = owned(columns, 2, rank/3, 2, .true.)
    allocate (back(size(mine), size(theirs)))
    deallocate (local)
    allocate (local(size(mine), size(theirs)))
    call fill(local, mine, theirs)
    read_as = [2, 3, 2, 8, 4, 2, rows, size(mine), 1, 5, columns, size(theirs), 3]
    back = 0
    call check(vipios_read_binary_array(connection, fd, back, [read_as, 2]) == 0, 'read')
    call check(all(back == local), 'the same bytes under another distribution')
    call check(vipios_read_binary_array(connection, fd, back, [read_as, 2]) == 0, 'read behind it')
    call check(all(back == -local), 'the second array')
    call check(vipios_read_binary_array(connection, fd, back, [read_as, 2]) == -1, 'read behind the end')
    call check(vipios_write_binary_array(connection, fd, back, [read_as, 2]) == -1, 'written to what is only read')
    call check(vipios_close_binary(connection, fd) == 0, 'closed')

    ! Five indices in blocks of one: the last process has none, and moves nothing.
    allocate (none(merge(1, 0, rank < 5)))
    none = rank
    narrow = [1, 6, 8, 4, 1, 5, size(none), 1, 0]
    fd = vipios_open_binary(connection, 'narrow', 3, 0)
    other = vipios_open_binary(connection, 'scratch', 4, 0)
    call check(fd >= 0 .and. other >= 0 .and. fd /= other, 'two files')
    call check(vipios_write_binary_array(connection, fd, none, narrow) == 0, 'by five of six')
    call check(vipios_write_binary_array(connection, other, none, narrow) == 0, 'to a scratch file')
    call check(vipios_close_binary(connection, fd) == 0, 'closed')
    fd = vipios_open_binary(connection, 'narrow', 2, 0)
    none = -1
    call check(vipios_read_binary_array(connection, fd, none, narrow) == 0, 'read by five')
    call check(all(none == rank), 'what each has written')
    call check(vipios_close_binary(connection, fd) == 0, 'closed')
    call check(vipios_close_binary(connection, other) == 0, 'closed')
    fd = vipios_open_binary(connection, 'narrow', 3, 0)
    call check(vipios_read_binary_array(connection, fd, none, narrow) == -1, 'nothing is left of what was replaced')
    call check(vipios_disconnect(connection) == 0, 'disconnected')
    call check(vipios_disconnect(connection) == -1, 'disconnected twice')
    if (rank == 0) print '(a)', 'all is well'

contains

    subroutine check(holds, what)
        logical, intent(in) :: holds
        character(*), intent(in) :: what
        if (.not. holds) then
            write (error_unit, '(a, i0, 2a)') 'rank ', rank, ': does not hold: ', what
            error stop 1
        end if
    end subroutine

    ! Indices of a coordinate, from 1 on: one block, or blocks in turn.
    function owned(extent, processors, coordinate, block, in_turn) result(list)
        integer, intent(in) :: extent, processors, coordinate, block
        logical, intent(in) :: in_turn
        integer, allocatable :: list(:)
        if (in_turn) then
            list = pack([(i, i=1, extent)], mod(([(i, i=1, extent)] - 1)/block, processors) == coordinate)
        else
            list = pack([(i, i=1, extent)], ([(i, i=1, extent)] - 1)/block == coordinate)
        end if
    end function

    ! What the whole array has at these indices.
    subroutine fill(part, first, second)
        integer, intent(out) :: part(:, :)
        integer, intent(in) :: first(:), second(:)
        integer :: j
        do j = 1, size(second)
            part(:, j) = 100*first + second(j)
        end do
    end subroutine
end program
