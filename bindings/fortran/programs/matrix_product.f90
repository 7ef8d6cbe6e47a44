! An out-of-core matrix product: C = A B, each in a file, slab by slab; nothing of the size of a matrix is in memory.
!
! A and B are written by blocks of columns. Then B and C are walked as one of two processors has them, columns dealt out in pairs,
! and A as a whole for each slab of them, there and back. An irregular list of entries checks what came of it.
program matrix_product
    use, intrinsic :: iso_fortran_env
    use pario
    use pario_out_of_core
    use pario_irregular
    implicit none
    integer, parameter :: wide = pario_offset_kind, n = 60, width = 7, narrow = 3
    type(pario_client) :: client
    type(pario_file) :: a, b, c, again
    type(pario_slabs) :: of_a, of_b, of_c
    type(pario_layout) :: in_pairs
    type(pario_plan) :: plan
    real(real64) :: slab_a(n, width), slab_b(n, narrow), slab_c(n, narrow), sample, values(300)
    integer(wide) :: extents(2), indices(300)
    integer :: j, k, columns, inner, part, code, first, place
    character(256) :: url

    call get_command_argument(1, url)
    call pario_connect(client, url)
    extents = n
    call open_matrix('/a', a)
    call open_matrix('/b', b)
    call open_matrix('/c', c)
    call fill(a, 1)
    call fill(b, 2)
    call pario_layout_parse(in_pairs, '(*, cyclic(2)) onto 2')
    do part = 0, 1
        call pario_slabs_begin(of_b, b, extents, narrow, sample, layout=in_pairs, element=part)
        call pario_slabs_begin(of_c, c, extents, narrow, sample, layout=in_pairs, element=part)
        call pario_slabs_begin(of_a, a, extents, width, sample)
        call check(of_b%count == 10 .and. of_b%extents(2) == 30, 'slabs of a part')
        do j = 1, of_b%count
            columns = narrow
            call pario_slab_get(of_b, j, slab_b(:, :columns))
            slab_c = 0
            ! There and back, so that the last slab of A is still here.
            do k = merge(1, of_a%count, mod(j, 2) == 1), merge(of_a%count, 1, mod(j, 2) == 1), merge(1, -1, mod(j, 2) == 1)
                first = (k - 1)*width
                inner = min(width, n - first)
                call pario_slab_get(of_a, k, slab_a(:, :inner))
                slab_c(:, :columns) = slab_c(:, :columns) + matmul(slab_a(:, :inner), slab_b(first + 1:first + inner, :columns))
            end do
            call pario_slab_put(of_c, j, slab_c(:, :columns))
        end do
        call check(of_a%ahead > 5*of_a%waited, 'slabs are there before they are asked for')
        call check(of_b%ahead == 9 .and. of_b%waited == 1, 'all but the first slab of B are read ahead')
        ! What was put is got, whatever is under way.
        call pario_slab_get(of_c, 10, slab_b)
        call check(all(abs(slab_b - slab_c) <= 0), 'a slab that was put')
        call pario_slab_put(of_c, 9, slab_a, code)
        call check(code == pario_err_invalid_argument, 'a slab of another size')
        call pario_slab_get(of_c, 11, slab_c, code)
        call check(code == pario_err_invalid_argument, 'a slab that is none')
        call pario_slabs_end(of_a)
        call pario_slabs_end(of_b)
        call pario_slabs_end(of_c)
    end do
    call pario_layout_free(in_pairs)

    ! Entries of C in no order, some of them twice: rows 5 and 6 of every third column, then a column backwards, then single ones.
    place = 0
    do j = 1, n, 3
        call take(5, j)
        call take(6, j)
    end do
    do k = n, 1, -1
        call take(k, 31)
    end do
    do while (place < 300)
        call take(1 + mod(place*place*7, n), 1 + mod(place*13, n))
    end do
    call pario_inspect(plan, indices, int(n, wide)*n, sample)
    call check(plan%indices == 300 .and. plan%entries < 300 .and. plan%groups < plan%entries, 'fewer groups than entries')
    do k = 1, 2
        values = -1
        call pario_gather(plan, c, values)
        do j = 1, 300
            call check(abs(values(j) - product_at(indices(j))) < 1d-9*abs(values(j)), 'an entry of the product')
        end do
        ! The plan holds for another part of the file, here behind the matrix.
        call pario_scatter(plan, c, values, displacement=8_wide*n*n)
    end do
    values = 0
    call pario_gather(plan, c, values, displacement=8_wide*n*n)
    call check(all(abs(values - [(product_at(indices(j)), j=1, 300)]) < 1d-9*abs(values)), 'what was scattered')
    call pario_inspect(plan, [0_wide], 10_wide, sample, code)
    call check(code == pario_err_invalid_argument, 'an index that is none')
    call regular()
    call pario_close(a)
    call pario_close(b)
    call pario_close(c)
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

    subroutine open_matrix(path, file)
        character(*), intent(in) :: path
        type(pario_file), intent(out) :: file
        call pario_open(client, path, file, flags=pario_readwrite + pario_create_new, &
            array=pario_array_text(sample, extents), layout='(*, block) onto 2')
    end subroutine

    real(real64) function entry(which, i, j)
        integer, intent(in) :: which, i, j
        entry = merge(i + 2*j, i - j, which == 1) + 0.5d0*which
    end function

    ! Writes a matrix by slabs, the last of which is shorter.
    subroutine fill(file, which)
        type(pario_file), intent(in) :: file
        integer, intent(in) :: which
        type(pario_slabs) :: slabs
        integer :: i, j, k, columns
        call pario_slabs_begin(slabs, file, extents, width, sample)
        call check(slabs%count == 9, 'slabs')
        do k = 1, slabs%count
            columns = min(width, n - (k - 1)*width)
            do j = 1, columns
                slab_a(:, j) = [(entry(which, i, j + (k - 1)*width), i=1, n)]
            end do
            call pario_slab_put(slabs, k, slab_a(:, :columns))
        end do
        call pario_slabs_end(slabs)
    end subroutine

    subroutine take(i, j)
        integer, intent(in) :: i, j
        place = place + 1
        indices(place) = i + n*(j - 1)
    end subroutine

    ! An entry of the product, by its definition.
    real(real64) function product_at(index)
        integer(wide), intent(in) :: index
        integer :: i, j, k
        i = int(mod(index - 1, int(n, wide))) + 1
        j = int((index - 1)/n) + 1
        product_at = 0
        do k = 1, n
            product_at = product_at + entry(1, i, k)*entry(2, k, j)
        end do
    end function

    ! A list that is regular is one group, however long it is.
    subroutine regular()
        integer :: i
        integer, allocatable :: numbers(:)
        call pario_inspect(plan, [(3_wide*i + 1, i=0, 9999)], 30000_wide, 1)
        call check(plan%groups == 1 .and. plan%entries == 10000, 'one group')
        call pario_open(client, '/regular', again, flags=pario_readwrite + pario_create_new)
        call pario_write(again, [(i, i=1, 30000)])
        allocate (numbers(10000))
        call pario_gather(plan, again, numbers)
        call check(all(numbers == [(3*i + 1, i=0, 9999)]), 'every third number')
        call pario_close(again)
    end subroutine
end program
