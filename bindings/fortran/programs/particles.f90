! A particle code: every cell of a grid is a virtual processor, and writes the particles that are in it, step by step. What it finds
! wrong goes to a log, where it finds it. Another number of processes reads both:
!
!     particles URL writes RANK SIZE      for all ranks from 0 to SIZE - 1, and the same with reads
module grid
    use pario
    use pario_streams
    implicit none

    integer, parameter :: wide = pario_offset_kind, double = kind(1.0d0)
    integer, parameter :: steps = 8, cells = 120
    integer(wide) :: step, found = 0

contains

    pure integer(wide) function particles(cell, step)
        integer(wide), intent(in) :: cell, step
        particles = mod(cell*7 + step*3, 5_wide)
    end function

    pure real(double) function place(cell, step, particle)
        integer(wide), intent(in) :: cell, step, particle
        place = real(cell, double) + real(step, double)/16 + real(particle, double)/256
    end function

    subroutine expect(holds, what)
        logical, intent(in) :: holds
        character(*), intent(in) :: what
        if (.not. holds) error stop what
    end subroutine

    subroutine write_cell(cell)
        type(pario_vp), intent(in) :: cell
        integer(wide) :: number, n
        call pario_vp_number(cell, number)
        call pario_vp_write(cell, [(place(number, step, n), n=1, particles(number, step))])
    end subroutine

    subroutine log_cell(cell)
        type(pario_vp), intent(in) :: cell
        character(40) :: line
        write (line, '(a, i0, a)') 'step ', step, ': no particle left'
        call pario_vp_puts(cell, trim(line))
    end subroutine

    subroutine write_particles(client, team)
        type(pario_client), intent(in) :: client
        type(pario_team), intent(in) :: team
        type(pario_stream) :: stream, log
        integer(wide), allocatable :: counts(:, :)
        integer :: i
        call pario_stream_open(stream, client, team, '/particles', 'w', shape='[12][10]', distribution='(block, *)')
        ! How many there are is one entry of an array of each cell; the other is for the program.
        allocate (counts(2, stream%count))
        do step = 0, steps - 1
            do i = 1, stream%count
                counts(:, i) = [-1_wide, particles(stream%vps(i), step)]
            end do
            call pario_stream_write(stream, counts(2, :))
            call pario_stream_elemental(stream, write_cell)
            ! The log is opened, printed to and closed where there is something to say.
            call pario_stream_open(log, client, team, '/log', merge('w', 'a', step == 0), shape='[12][10]')
            call pario_stream_elemental(log, log_cell, active=counts(2, :) == 0)
            call pario_stream_close(log)
        end do
        call pario_stream_close(stream)
    end subroutine

    subroutine read_cell(cell)
        type(pario_vp), intent(in) :: cell
        integer(wide) :: number, count, at, n, moved
        real(double), allocatable :: places(:)
        call pario_vp_number(cell, number)
        do at = 1, steps - 1
            call pario_vp_read(cell, count, moved)
            call expect(moved == 8 .and. count == particles(number, at), 'another number of particles')
            allocate (places(count))
            call pario_vp_read(cell, places, moved)
            call expect(moved == 8*count, 'the stream is too short')
            call expect(all(abs(places - [(place(number, at, n), n=1, count)]) < 1e-12_double), 'another place')
            deallocate (places)
            found = found + count
        end do
        call pario_vp_read(cell, count, moved)
        call expect(moved == 0, 'more than was written')
        call expect(pario_vp_is_at_end(cell), 'this is not the end')
    end subroutine

    subroutine read_log(cell)
        type(pario_vp), intent(in) :: cell
        integer(wide) :: number, at
        character(:), allocatable :: line
        character(40) :: expected
        logical :: is_there
        call pario_vp_number(cell, number)
        do at = 0, steps - 1
            if (particles(number, at) > 0) cycle
            call pario_vp_gets(cell, line, is_there)
            write (expected, '(a, i0, a)') 'step ', at, ': no particle left'
            call expect(is_there .and. line == trim(expected), 'another line')
        end do
        call pario_vp_gets(cell, line, is_there)
        call expect(.not. is_there, 'more lines than were written')
    end subroutine

    subroutine read_particles(client, team)
        type(pario_client), intent(in) :: client
        type(pario_team), intent(in) :: team
        type(pario_stream) :: stream
        integer(wide), allocatable :: places(:), lengths(:), counts(:), first(:)
        integer(wide) :: all_of_them(1), cell, at
        integer :: i, code
        call pario_stream_open(stream, client, team, '/particles', 'r', distribution='(*, cyclic)')
        ! The counts of the first step for all at once, then the rest of that step is skipped, each cell its own.
        allocate (first(stream%count), counts(stream%count))
        call pario_stream_read(stream, first, counts=counts)
        call expect(all(counts == 8), 'short counts')
        do i = 1, stream%count
            call expect(first(i) == particles(stream%vps(i), 0_wide), 'another first number')
        end do
        call pario_stream_tell(stream, places)
        call pario_stream_lengths(stream, lengths)
        call expect(all(places == 8) .and. all(lengths >= 8*steps), 'places or lengths are wrong')
        call pario_stream_elemental(stream, skip_first)
        call pario_stream_elemental(stream, read_cell)
        found = found + sum(first)
        ! What does not fit is refused by name.
        call pario_stream_read(stream, first(2:), ierr=code)
        call expect(code == pario_err_invalid_argument, 'a short array was taken')
        call pario_stream_close(stream)
        all_of_them(1) = found
        call pario_team_reduce(team, all_of_them, pario_sum)
        do cell = 0, cells - 1
            do at = 0, steps - 1
                all_of_them(1) = all_of_them(1) - particles(cell, at)
            end do
        end do
        call expect(all_of_them(1) == 0, 'another number of particles in all')
        call pario_stream_open(stream, client, team, '/log', 'r', distribution='(cyclic, *)')
        call pario_stream_elemental(stream, read_log)
        call pario_stream_close(stream)
    end subroutine

    subroutine skip_first(cell)
        type(pario_vp), intent(in) :: cell
        integer(wide) :: number
        call pario_vp_number(cell, number)
        call pario_vp_seek(cell, 8*particles(number, 0_wide), pario_from_here)
    end subroutine
end module

program particle_code
    use grid
    implicit none
    type(pario_client) :: client
    type(pario_team) :: team
    character(200) :: url, side, word
    integer :: rank, size
    call get_command_argument(1, url)
    call get_command_argument(2, side)
    call get_command_argument(3, word)
    read (word, *) rank
    call get_command_argument(4, word)
    read (word, *) size
    call pario_connect(client, trim(url))
    call pario_team_join(client, trim(side), rank, size, team)
    if (side == 'writes') call write_particles(client, team)
    if (side == 'reads') call read_particles(client, team)
    call pario_team_leave(team)
    call pario_disconnect(client)
    if (rank == 0) print '(a)', 'all is well'
end program
