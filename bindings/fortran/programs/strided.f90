! What an access of a strided section costs in Fortran, beside described memory in C (strided.c), by turns on one file.
!
!     strided URL [ROUNDS]    prints, for each size of a section: bytes, ns of C, ns of Fortran, and their ratio (medians)
program strided
    use, intrinsic :: iso_c_binding
    use, intrinsic :: iso_fortran_env
    use pario
    implicit none
    integer, parameter :: wide = pario_offset_kind
    integer, parameter :: rows(4) = [16, 64, 512, 2048], times(4) = [4000, 1000, 60, 6]
    interface
        ! Nanoseconds of one write and one read of every second row of a matrix of reals.
        real(c_double) function strided_in_c(file, base, rows, columns, times) bind(c)
            import
            type(c_ptr), value :: file, base
            integer(c_int64_t), value :: rows, columns, times
        end function
    end interface
    type(pario_client) :: client
    type(pario_file) :: file
    real(real64), allocatable, target :: a(:, :)
    real(real64), allocatable :: of_c(:), of_fortran(:)
    real(real64) :: first, last
    integer(int64) :: from, to, rate
    integer :: i, k, n, round, rounds
    character(256) :: url, word

    call get_command_argument(1, url)
    call get_command_argument(2, word)
    rounds = 41
    if (word /= '') read (word, *) rounds
    allocate (of_c(rounds), of_fortran(rounds))
    call pario_connect(client, url)
    call pario_open(client, '/strided', file, flags=pario_readwrite + pario_create_new)
    call system_clock(count_rate=rate)
    do i = 1, size(rows)
        n = rows(i)
        allocate (a(n, n))
        a = 1
        do round = 1, rounds
            of_c(round) = strided_in_c(file%handle, c_loc(a), int(n, c_int64_t), int(n, c_int64_t), int(times(i), c_int64_t))
            call system_clock(from)
            do k = 1, times(i)
                call pario_write_at(file, 0_wide, a(1:n:2, :))
                call pario_read_at(file, 0_wide, a(1:n:2, :))
            end do
            call system_clock(to)
            of_fortran(round) = (to - from)*1d9/rate/times(i)
        end do
        first = median(of_c)
        last = median(of_fortran)
        print '(i0, 2(1x, f0.0), 1x, f0.3)', n*n*4, first, last, last/first
        deallocate (a)
    end do
    call pario_close(file)
    call pario_unlink(client, '/strided')
    call pario_disconnect(client)

contains

    real(real64) function median(values)
        real(real64), intent(inout) :: values(:)
        real(real64) :: value
        integer :: i, j
        do i = 2, size(values)
            value = values(i)
            j = i - 1
            do while (j > 0)
                if (values(j) <= value) exit
                values(j + 1) = values(j)
                j = j - 1
            end do
            values(j + 1) = value
        end do
        median = values(size(values)/2 + 1)
    end function
end program
