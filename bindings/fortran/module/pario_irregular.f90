! Entries of an array by a list of their indices: an inspector makes a plan of the list, an executor uses it as often as the list
! holds.
!
!     call pario_inspect(plan, indices, extent, sample)        ! once: sorted, double ones once, runs and regular steps found
!     do step = 1, steps
!         call pario_gather(plan, file, values, displacement=offset_of(step))
!         ...
!         call pario_scatter(plan, file, values, displacement=offset_of(step))
!     end do
!
! Indices begin at 1, in any order, some of them perhaps several times. Of entries that are scattered several times the last one counts.
! The plan has groups of equal blocks with equal steps (plan%groups), not single entries; the file is accessed through one view of them.
module pario_irregular
    use, intrinsic :: iso_c_binding
    use pario
    implicit none
    private

    integer, parameter :: wide = pario_offset_kind

    public :: pario_inspect, pario_gather, pario_scatter

    ! What is accessed, and where each entry of the list is among it.
    type, public :: pario_plan
        integer(wide) :: indices = 0    ! in the list
        integer(wide) :: entries = 0    ! different ones
        integer(wide) :: groups = 0     ! what they were compressed to
        integer(wide), private :: entry_bytes = 0, period = 0
        integer(wide), allocatable, private :: start(:), block(:), count(:), stride(:), order(:)
    end type

    interface
        integer(c_int) function f_permute(array, bytes, order, count, is_back) bind(c, name='pario_f_permute')
            import
            type(*), dimension(..) :: array
            integer(c_int8_t) :: bytes(*)
            integer(c_int64_t), intent(in) :: order(*)
            integer(c_int64_t), value :: count
            integer(c_int), value :: is_back
        end function
        integer(c_int) function f_view_of_groups(groups, start, block, count, stride, period, displacement, view) &
            bind(c, name='pario_f_view_of_groups')
            import
            integer(c_int64_t), value :: groups, period, displacement
            integer(c_int64_t), intent(in) :: start(*), block(*), count(*), stride(*)
            type(c_ptr) :: view
        end function
        integer(c_int) function c_apply_view(file, view) bind(c, name='pario_apply_view')
            import
            type(c_ptr), value :: file, view
        end function
        integer(c_int) function c_view_free(view) bind(c, name='pario_view_free')
            import
            type(c_ptr), value :: view
        end function
    end interface

contains

    subroutine finish(code, ierr)
        integer, intent(in) :: code
        integer, intent(out), optional :: ierr
        character(:), allocatable :: text
        if (present(ierr)) then
            ierr = code
        else if (code /= 0) then
            text = pario_last_error()
            if (len(text) == 0) text = 'an argument of pario_irregular is wrong'
            error stop text
        end if
    end subroutine

    ! The inspector: a plan for these indices of an array of so many entries, such as a sample.
    subroutine pario_inspect(plan, indices, extent, sample, ierr)
        type(pario_plan), intent(out) :: plan
        integer(wide), intent(in) :: indices(:), extent
        type(*), dimension(..), intent(in) :: sample
        integer, intent(out), optional :: ierr
        integer(wide), allocatable :: sorted(:), different(:), first(:), length(:)
        integer(wide) :: i, n, runs, groups, place
        n = size(indices, kind=wide)
        if (any(indices < 1) .or. any(indices > extent)) then
            call finish(pario_err_invalid_argument, ierr)
            return
        end if
        plan%indices = n
        plan%entry_bytes = pario_element_bytes(sample)
        plan%period = extent*plan%entry_bytes
        sorted = indices - 1
        call sort(sorted)
        ! Each index once.
        allocate (different(n), plan%order(n))
        do i = 1, n
            if (plan%entries > 0) then
                if (different(plan%entries) == sorted(i)) cycle
            end if
            plan%entries = plan%entries + 1
            different(plan%entries) = sorted(i)
        end do
        do i = 1, n
            plan%order(i) = place_in(different(1:plan%entries), indices(i) - 1)
        end do
        ! Neighbours as runs.
        allocate (first(plan%entries), length(plan%entries))
        runs = 0
        do i = 1, plan%entries
            if (runs > 0) then
                if (first(runs) + length(runs) == different(i)) then
                    length(runs) = length(runs) + 1
                    cycle
                end if
            end if
            runs = runs + 1
            first(runs) = different(i)
            length(runs) = 1
        end do
        ! Runs of one length and one step as groups.
        allocate (plan%start(runs), plan%block(runs), plan%count(runs), plan%stride(runs))
        groups = 0
        i = 1
        do while (i <= runs)
            groups = groups + 1
            place = i + 1
            do while (place <= runs)
                if (length(place) /= length(i)) exit
                if (first(place) - first(place - 1) /= first(i + 1) - first(i)) exit
                place = place + 1
            end do
            plan%start(groups) = first(i)*plan%entry_bytes
            plan%block(groups) = length(i)*plan%entry_bytes
            plan%count(groups) = place - i
            plan%stride(groups) = plan%block(groups)
            if (place - i > 1) plan%stride(groups) = (first(i + 1) - first(i))*plan%entry_bytes
            i = place
        end do
        plan%groups = groups
        call finish(0, ierr)
    end subroutine

    ! Where a value is in a list in order, from 0 on.
    integer(wide) function place_in(list, value)
        integer(wide), intent(in) :: list(:), value
        integer(wide) :: low, high, middle
        low = 1
        high = size(list, kind=wide)
        do while (low < high)
            middle = (low + high)/2
            if (list(middle) < value) then
                low = middle + 1
            else
                high = middle
            end if
        end do
        place_in = low - 1
    end function

    ! Sorts by merging.
    recursive subroutine sort(list)
        integer(wide), intent(inout) :: list(:)
        integer(wide), allocatable :: left(:), right(:)
        integer(wide) :: half, i, j, k
        half = size(list, kind=wide)/2
        if (half == 0) return
        left = list(:half)
        right = list(half + 1:)
        call sort(left)
        call sort(right)
        i = 1
        j = 1
        do k = 1, size(list, kind=wide)
            if (j > size(right, kind=wide)) then
                list(k) = left(i)
                i = i + 1
            else if (i > half) then
                list(k) = right(j)
                j = j + 1
            else if (left(i) <= right(j)) then
                list(k) = left(i)
                i = i + 1
            else
                list(k) = right(j)
                j = j + 1
            end if
        end do
    end subroutine

    ! Shows the entries of a plan.
    subroutine show(plan, file, displacement, ierr)
        type(pario_plan), intent(in) :: plan
        type(pario_file), intent(in) :: file
        integer(wide), intent(in), optional :: displacement
        integer, intent(out) :: ierr
        integer(wide) :: from
        integer :: ignored
        type(c_ptr) :: view
        from = 0
        view = c_null_ptr
        if (present(displacement)) from = displacement
        ierr = f_view_of_groups(plan%groups, plan%start, plan%block, plan%count, plan%stride, plan%period, from, view)
        if (ierr == 0) ierr = c_apply_view(file%handle, view)
        if (c_associated(view)) ignored = c_view_free(view)
    end subroutine

    ! The executor: reads the entries in the order of the list.
    subroutine pario_gather(plan, file, values, ierr, displacement)
        type(pario_plan), intent(in) :: plan
        type(pario_file), intent(in) :: file
        type(*), dimension(..), intent(inout) :: values
        integer, intent(out), optional :: ierr
        integer(wide), intent(in), optional :: displacement
        integer(c_int8_t), allocatable :: bytes(:)
        integer :: code
        code = 0
        if (pario_bytes(values) /= plan%indices*plan%entry_bytes) code = pario_err_invalid_argument
        if (code == 0 .and. plan%indices > 0) then
            allocate (bytes(plan%entries*plan%entry_bytes))
            bytes = 0
            call show(plan, file, displacement, code)
            if (code == 0) call pario_read_at(file, 0_wide, bytes, code)
            if (code == 0) code = f_permute(values, bytes, plan%order, plan%indices, 1_c_int)
        end if
        call finish(code, ierr)
    end subroutine

    ! The executor: writes the entries of the list.
    subroutine pario_scatter(plan, file, values, ierr, displacement)
        type(pario_plan), intent(in) :: plan
        type(pario_file), intent(in) :: file
        type(*), dimension(..), intent(in) :: values
        integer, intent(out), optional :: ierr
        integer(wide), intent(in), optional :: displacement
        integer(c_int8_t), allocatable :: bytes(:)
        integer :: code
        code = 0
        if (pario_bytes(values) /= plan%indices*plan%entry_bytes) code = pario_err_invalid_argument
        if (code == 0 .and. plan%indices > 0) then
            allocate (bytes(plan%entries*plan%entry_bytes))
            code = f_permute(values, bytes, plan%order, plan%indices, 0_c_int)
            if (code == 0) call show(plan, file, displacement, code)
            if (code == 0) call pario_write_at(file, 0_wide, bytes, code)
        end if
        call finish(code, ierr)
    end subroutine
end module
