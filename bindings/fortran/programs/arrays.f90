! Arrays of every type, kind and rank, whole and in sections, at offsets, pointers and the end, at once and beside the program.
!
!     arrays URL
program arrays
    use, intrinsic :: iso_fortran_env
    use pario
    implicit none
    integer, parameter :: wide = pario_offset_kind
    type(pario_client) :: client
    character(256) :: url

    call get_command_argument(1, url)
    call pario_connect(client, url)
    call types_and_ranks()
    call sections()
    call pointers()
    call beside()
    call views()
    call names_and_errors()
    call pario_disconnect(client)
    print '(a)', 'all is well'

contains

    subroutine check(holds, what)
        logical, intent(in) :: holds
        character(*), intent(in) :: what
        if (.not. holds) then
            write (error_unit, '(2a)') 'does not hold: ', what
            error stop 1
        end if
    end subroutine

    subroutine types_and_ranks()
        type(pario_file) :: f
        integer(int8) :: i1(3), j1(3)
        integer(int16) :: i2, j2
        integer(int32) :: i4(2, 3), j4(2, 3)
        integer(int64) :: i8(2, 1, 2), j8(2, 1, 2)
        real(real32) :: r4(5), q4(5)
        real(real64) :: r8(2, 2, 2, 2), q8(2, 2, 2, 2)
        real(real128) :: r16, q16
        complex(real32) :: c4(2), d4(2)
        complex(real64) :: c8, d8
        logical :: l(3), m(3)
        logical(int8) :: l1, m1
        character(7) :: s(2), t(2)
        character(1) :: one, other
        integer :: deep(1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1), down(1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1)
        integer :: none(0), i
        integer(wide) :: moved, at
        i1 = [1_int8, -2_int8, 127_int8]
        i2 = -300
        i4 = reshape([(i, i=1, 6)], [2, 3])
        i8 = 2_int64**40
        r4 = [(0.5*i, i=1, 5)]
        r8 = 3.25d0
        r16 = 1/3.0_real128
        c4 = (1.0, -2.0)
        c8 = (3d0, 4d0)
        l = [.true., .false., .true.]
        l1 = .true.
        s = ['pario  ', 'fortran']
        one = 'x'
        deep = reshape([(i, i=1, 128)], shape(deep))
        call pario_open(client, '/types', f, flags=pario_readwrite + pario_create_new)
        call pario_write(f, i1)
        call pario_write(f, i2)
        call pario_write(f, i4)
        call pario_write(f, i8)
        call pario_write(f, r4)
        call pario_write(f, r8)
        call pario_write(f, r16)
        call pario_write(f, c4)
        call pario_write(f, c8)
        call pario_write(f, l)
        call pario_write(f, l1)
        call pario_write(f, s)
        call pario_write(f, one)
        call pario_write(f, deep)
        call pario_write(f, none, moved=moved)
        call check(moved == 0, 'nothing of an empty array')
        call pario_tell(f, at)
        call check(at == 3 + 2 + 24 + 32 + 20 + 128 + 16 + 16 + 16 + 12 + 1 + 14 + 1 + 512, 'bytes of all types')
        call pario_seek(f, 0_wide)
        call pario_read(f, j1)
        call pario_read(f, j2)
        call pario_read(f, j4)
        call pario_read(f, j8)
        call pario_read(f, q4)
        call pario_read(f, q8)
        call pario_read(f, q16)
        call pario_read(f, d4)
        call pario_read(f, d8)
        call pario_read(f, m)
        call pario_read(f, m1)
        call pario_read(f, t)
        call pario_read(f, other)
        call pario_read(f, down, moved=moved)
        call check(moved == 512, 'bytes of rank 15')
        call check(all(i1 == j1) .and. i2 == j2 .and. all(i4 == j4) .and. all(i8 == j8), 'integers')
        call check(all(r4 == q4) .and. all(r8 == q8) .and. r16 == q16 .and. all(c4 == d4) .and. c8 == d8, 'reals')
        call check(all(l .eqv. m) .and. (l1 .eqv. m1) .and. all(s == t) .and. one == other .and. all(deep == down), 'others')
        call pario_read(f, i4, moved=moved)
        call check(moved == 0, 'the end is a short count')
        call check(pario_array_text(i4) == 'i32[2,3]:fortran', 'array of integers')
        call check(pario_array_text(r8(:, :, 1, 1)) == 'f64[2,2]:fortran', 'array of reals')
        call check(pario_array_text(c8) == 'c128[]' .or. pario_array_text(c8) == 'c128[]:fortran', pario_array_text(c8))
        call check(pario_array_text(s, [4_wide]) == 'bytes(7)[4]' .or. pario_array_text(s, [4_wide]) == 'bytes(7)[4]:fortran', &
            pario_array_text(s, [4_wide]))
        call pario_close(f)
    end subroutine

    ! Sections are read and written where they lie; what is between them stays.
    subroutine sections()
        type(pario_file) :: f
        integer :: a(10, 6), b(10, 6), packed(12), i, step
        integer, allocatable :: c(:)
        real(real64) :: x(4, 4, 4), y(4, 4, 4)
        character(5) :: words(6), back(6)
        a = reshape([(i, i=1, 60)], shape(a))
        call pario_open(client, '/sections', f, flags=pario_readwrite + pario_create_new)
        call pario_write_at(f, 0_wide, a(2:9:3, 1:6:2))
        call pario_read_at(f, 0_wide, packed(:9))
        call check(all(packed(:9) == reshape(a(2:9:3, 1:6:2), [9])), 'a strided section is written in its order')
        b = 0
        call pario_read_at(f, 0_wide, b(1:10:4, 2:6:2))
        call check(all(reshape(b(1:10:4, 2:6:2), [9]) == packed(:9)) .and. sum(abs(b)) == sum(packed(:9)), &
            'it is read into another')
        do step = -3, 3
            if (step == 0) cycle
            c = a(merge(1, 10, step > 0):merge(10, 1, step > 0):step, 4)
            call pario_write_at(f, 0_wide, a(merge(1, 10, step > 0):merge(10, 1, step > 0):step, 4))
            call pario_read_at(f, 0_wide, packed(:size(c)))
            call check(all(packed(:size(c)) == c), 'steps of all signs')
        end do
        x = reshape([(i*1d0, i=1, 64)], shape(x))
        y = -1
        call pario_write_at(f, 100_wide, x(4:1:-1, 2, ::2))
        call pario_read_at(f, 100_wide, y(1, :, 3:4))
        call check(all(y(1, :, 3:4) == x(4:1:-1, 2, ::2)) .and. count(y >= 0) == 8, 'three dimensions')
        words = ['ab   ', 'cd   ', 'ef   ', 'gh   ', 'ij   ', 'kl   ']
        call pario_write_at(f, 0_wide, words(1:6:2))
        back = ''
        call pario_read_at(f, 0_wide, back(2:6:2))
        call check(all(back(2:6:2) == words(1:6:2)) .and. all(back(1:5:2) == ''), 'words')
        ! Many shapes, so that those that are kept are taken out again.
        do i = 1, 10
            call pario_write_at(f, 0_wide, a(1:10:i, :))
            b = 0
            call pario_read_at(f, 0_wide, b(1:10:i, :))
            call check(all(b(1:10:i, :) == a(1:10:i, :)), 'more shapes than are kept')
        end do
        call pario_close(f)
    end subroutine

    subroutine pointers()
        type(pario_file) :: f
        integer :: a(6), b(6), code, i
        integer(wide) :: at
        a = [(i, i=1, 6)]
        call pario_open(client, '/pointers', f, flags=pario_readwrite + pario_create_new, shared_pointer=7_wide)
        call pario_write(f, a(1:6:2))
        call pario_tell(f, at)
        call check(at == 12, 'a section moves the pointer by its bytes')
        call pario_write(f, a(2:6:2))
        call pario_seek(f, -24_wide, whence=pario_from_end, position=at)
        call check(at == 0, 'from the end')
        call pario_read(f, b)
        call check(all(b == [1, 3, 5, 2, 4, 6]), 'one behind the other')
        call pario_seek_shared(f, 8_wide)
        call pario_write_shared(f, a(6:1:-3))
        call pario_seek_shared(f, 0_wide)
        b = 9
        call pario_read_shared(f, b(1:6:2))
        call check(all(b == [1, 9, 3, 9, 6, 9]), 'the shared pointer')
        call pario_append(f, a(1:3:2), offset=at)
        call check(at == 24, 'the end')
        call pario_size(f, at)
        call check(at == 32, 'the size')
        call pario_close(f)
        call pario_open(client, '/pointers', f, flags=pario_readwrite + pario_appending)
        call pario_write(f, a(5:6), code)
        call pario_write(f, a(1:6:4), code)
        call pario_read_at(f, 32_wide, b(1:4))
        call check(code == 0 .and. all(b(1:4) == [5, 6, 1, 5]), 'writes at the end')
        call pario_truncate(f, 4_wide)
        call pario_size(f, at)
        call check(at == 4, 'a smaller size')
        call pario_sync(f)
        call pario_close(f)
    end subroutine

    subroutine beside()
        type(pario_file) :: f
        type(pario_request) :: requests(4)
        integer, asynchronous :: a(100, 4), b(100, 4)
        integer :: i
        integer(wide) :: moved
        logical :: is_done, is_cancelled
        a = reshape([(i, i=1, 400)], shape(a))
        b = 0
        call pario_open(client, '/beside', f, flags=pario_readwrite + pario_create_new)
        do i = 1, 4
            call pario_iwrite_at(f, 200_wide*(i - 1), a(1:100:2, i), requests(i))
        end do
        call pario_wait_all(requests)
        call pario_iread(f, b(1:100:2, 1), requests(1))
        call pario_iread(f, b(2:100:2, 2), requests(2))
        call pario_cancel(requests(2), is_cancelled)
        call pario_wait(requests(1), moved=moved)
        call check(moved == 200, 'bytes of a request')
        is_done = .false.
        do while (.not. is_done)
            call pario_test(requests(2), is_done, moved=moved)
        end do
        call check(all(b(1:100:2, 1) == a(1:100:2, 1)), 'read beside the program')
        call check(is_cancelled .or. all(b(2:100:2, 2) == a(1:100:2, 2)), 'the pointer moved at once')
        call pario_iread_at(f, 0_wide, b, requests(3))
        call pario_wait(requests(3), moved=moved)
        call check(moved == 800, 'as much as there is')
        call pario_close(f)
    end subroutine

    subroutine views()
        type(pario_file) :: f
        type(pario_layout) :: layout
        type(pario_team) :: team
        character(*), parameter :: text = '!HPF$ PROCESSORS P(3,4)' // new_line('a') // '!HPF$ DISTRIBUTE A(CYCLIC(3),BLOCK) ONTO P'
        integer :: a(14, 17), b(14, 17), local(6, 5), i, count, rank, size, numbers(2)
        integer(wide) :: extents(2), sums(2)
        character(:), allocatable :: array
        a = reshape([(i, i=1, 14*17)], shape(a))
        call pario_layout_directives(layout, text, 'A', [14_wide, 17_wide])
        call check(pario_layout_text(layout) == '(cyclic(3), block) onto 3x4:fortran', pario_layout_text(layout))
        array = pario_array_text(a)
        call pario_layout_elements(layout, array, count)
        call check(count == 12, 'processors')
        call pario_open(client, '/views', f, flags=pario_readwrite + pario_create_new, array=array, &
            layout=pario_layout_text(layout))
        call pario_team_alone(team)
        ! Every processor's part of the whole array, then every part alone.
        do i = 0, count - 1
            call pario_set_view(f, layout, i, array)
            call pario_write_part(f, 0_wide, a, layout, i, array)
        end do
        call pario_set_view(f, 'whole')
        call pario_read_at_all(f, team, 0_wide, b)
        call check(all(a == b), 'parts make the whole')
        ! Rank 4 is processor (1,1): rows 4-6 and 13-14, columns 6-10.
        call pario_layout_extents(layout, 4, array, extents)
        call check(all(extents == [5, 5]), 'local extents')
        call pario_set_view(f, layout, 4, array)
        local = 0
        call pario_read_at(f, 0_wide, local(1:5, 1:5))
        call check(all(local(1:3, 1:5) == a(4:6, 6:10)) .and. all(local(4:5, 1:5) == a(13:14, 6:10)), 'a local part')
        b = 0
        call pario_read_part(f, 0_wide, b, layout, 4, array)
        call check(sum(b) == sum(local) .and. all(b(13:14, 6:10) == a(13:14, 6:10)), 'a part in its place')
        call pario_layout_free(layout)
        call pario_layout_run_time(layout, [2, 3, 4, 8, 4, 2, 14, 5, 3, 3, 17, 5, 1, 5], array)
        call check(pario_layout_text(layout) == '(cyclic(3), block(5)) onto 3x4:fortran', pario_layout_text(layout))
        call check(array == 'bytes(4)[14,17]:fortran', array)
        call pario_layout_free(layout)
        call pario_layout_parse(layout, '(*, cyclic) onto 17')
        call pario_set_view(f, layout, 16, 'i32[14,17]:fortran')
        call pario_read_at(f, 0_wide, local(:, 1))
        call check(all(local(:, 1) == a(1:6, 17)), 'a column')
        call pario_layout_free(layout)
        call pario_team_rank(team, rank, size)
        sums = [rank, size]
        call pario_team_reduce(team, sums, pario_sum)
        call check(all(sums == [0, 1]), 'a team of one')
        numbers = [4, 5]
        call pario_team_broadcast(team, 0, numbers)
        call pario_team_barrier(team)
        call pario_set_hints(f, 'access_style=read_mostly,sequential; read_ahead=on')
        call check(index(pario_hint_report(f), 'access_style') > 0, 'hints are told of')
        call pario_close(f)
        call pario_relayout(client, '/views', 'striped(4KiB) over 1')
        call pario_team_leave(team)
    end subroutine

    subroutine names_and_errors()
        type(pario_file) :: f
        type(pario_layout) :: layout
        logical :: exists, is_new
        integer :: code, a(2)
        call pario_mkdir(client, '/some/where')
        call pario_create(client, '/some/where/file   ', is_new=is_new)
        call check(is_new, 'a new file')
        call pario_rename(client, '/some/where/file', '/some/where/else')
        call pario_exists(client, '/some/where/else', exists)
        call check(exists, 'a file by its other name, without blanks')
        call pario_unlink(client, '/some/where/else')
        call pario_unlink(client, '/some/where/else', code)
        call check(code == pario_err_not_found, 'a file that is gone')
        call check(index(pario_last_error(), 'else') > 0, pario_last_error())
        call check(len(pario_strerror(code)) > 5 .and. index(pario_version(), '.') > 0, 'texts')
        call pario_rmdir(client, '/some/where')
        call pario_open(client, '/none', f, code)
        call check(code == pario_err_not_found, 'no such file')
        a = 0
        call pario_read(f, a, code)
        call check(code == pario_err_bad_handle, 'what is not open')
        call pario_read(f, a(1:2:2), code)
        call check(code == pario_err_bad_handle, 'what is not open, by section')
        call pario_open(client, '/bad', f, code, flags=pario_readwrite + pario_create_new, array='f64[3', layout='whole')
        call check(code == pario_err_invalid_argument, 'a text that is no array')
        call pario_layout_directives(layout, '!HPF$ DISTRIBUTE A(CYCLC)', 'A', [4_wide], code)
        call check(code == pario_err_invalid_argument .and. index(pario_last_error(), 'character 20') > 0, pario_last_error())
        call assumed_size(a)
    end subroutine

    ! An array whose last extent nobody knows is refused.
    subroutine assumed_size(a)
        integer, intent(inout) :: a(*)
        type(pario_file) :: f
        call pario_open(client, '/assumed', f, flags=pario_readwrite + pario_create_new)
        call pario_write(f, a(1:2))
        call pario_close(f)
    end subroutine
end program
