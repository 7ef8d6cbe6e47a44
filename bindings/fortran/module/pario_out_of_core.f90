! Arrays that are larger than memory, slab by slab: some indices of the last dimension at a time.
!
!     call pario_slabs_begin(slabs, file, [1000000_8, 5000_8], 100, sample)
!     do k = 1, slabs%count
!         call pario_slab_get(slabs, k, buffer)      ! slab k + 1 is on its way meanwhile
!         ...
!         call pario_slab_put(slabs, k, buffer)      ! goes on beside the program
!     end do
!     call pario_slabs_end(slabs)
!
! With a layout the array is the part that one of its elements has, so the same file is walked under any distribution. The next slab
! is read ahead in the direction in which slabs are asked for; two slabs at most are being written.
!
! Invariants
! - A slab that was put is what is got afterwards, whatever is still under way.
! - A failure of what went on beside the program is told by the next call, pario_slabs_end at the latest.
! - Four slabs of memory beside the program's own at most.
module pario_out_of_core
    use, intrinsic :: iso_c_binding
    use pario
    implicit none
    private

    integer, parameter :: wide = pario_offset_kind

    public :: pario_slabs_begin, pario_slab_get, pario_slab_put, pario_slabs_end

    ! A slab that is being read or written.
    type :: staged_slab
        integer :: number = 0       ! 0 for none
        logical :: is_under_way = .false.
        type(pario_request) :: request
        integer(c_int8_t), pointer, contiguous :: bytes(:) => null()
    end type

    ! An array, slab by slab.
    type, public :: pario_slabs
        integer :: count = 0                    ! slabs in all
        integer(wide), allocatable :: extents(:) ! of the array, or of the part
        integer :: width = 0                    ! indices of the last dimension in a slab
        integer :: ahead = 0, waited = 0        ! slabs that were read ahead in time to be asked for; those that were not
        integer(wide), private :: slab_bytes = 0, all_bytes = 0
        type(pario_file), private :: file
        type(staged_slab), private :: reading(2), writing(2)
        integer, private :: last = 0, next_writing = 1
    end type

    interface
        integer(c_int) function f_copy(array, bytes, is_back) bind(c, name='pario_f_copy')
            import
            type(*), dimension(..) :: array
            integer(c_int8_t) :: bytes(*)
            integer(c_int), value :: is_back
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
            error stop text
        end if
    end subroutine

    ! Begins to walk an array of these extents, with entries such as those of a sample. The file shows nothing else until
    ! pario_slabs_end.
    subroutine pario_slabs_begin(slabs, file, extents, width, sample, ierr, layout, element, displacement)
        type(pario_slabs), intent(out) :: slabs
        type(pario_file), intent(in) :: file
        integer(wide), intent(in) :: extents(:)
        integer, intent(in) :: width
        type(*), dimension(..), intent(in) :: sample
        integer, intent(out), optional :: ierr
        type(pario_layout), intent(in), optional :: layout
        integer, intent(in), optional :: element
        integer(wide), intent(in), optional :: displacement
        character(:), allocatable :: text
        integer(wide) :: from, rows
        integer :: code, i, dimensions
        from = 0
        if (present(displacement)) from = displacement
        slabs%file = file
        slabs%extents = extents
        slabs%width = width
        dimensions = size(extents)
        text = pario_array_text(sample, extents)
        code = 0
        if (present(layout)) then
            i = 0
            if (present(element)) i = element
            call pario_layout_extents(layout, i, text, slabs%extents, code)
            if (code == 0 .and. product(slabs%extents) > 0) then
                call pario_set_view(file, layout, i, text, code, displacement=from)
            end if
        else
            call pario_set_view(file, 'whole', code, displacement=from)
        end if
        if (code == 0 .and. (width < 1 .or. dimensions < 1)) code = pario_err_invalid_argument
        if (code == 0) then
            rows = product(slabs%extents(1:dimensions - 1))*pario_element_bytes(sample)
            slabs%all_bytes = rows*slabs%extents(dimensions)
            slabs%slab_bytes = rows*width
            if (rows > 0) slabs%count = int((slabs%extents(dimensions) + width - 1)/width)
        end if
        call finish(code, ierr)
    end subroutine

    ! Bytes of a slab; the last may be shorter.
    integer(wide) function bytes_of(slabs, number)
        type(pario_slabs), intent(in) :: slabs
        integer, intent(in) :: number
        bytes_of = min(slabs%slab_bytes, slabs%all_bytes - (number - 1)*slabs%slab_bytes)
    end function

    ! Waits for what is under way in a place.
    subroutine settle(place, ierr)
        type(staged_slab), intent(inout) :: place
        integer, intent(inout) :: ierr
        integer :: code
        if (.not. place%is_under_way) return
        call pario_wait(place%request, code)
        place%is_under_way = .false.
        if (code /= 0) place%number = 0
        if (ierr == 0) ierr = code
    end subroutine

    ! Whether a slab can be got or put with such a buffer.
    integer function checked(slabs, number, bytes)
        type(pario_slabs), intent(in) :: slabs
        integer, intent(in) :: number
        integer(wide), intent(in) :: bytes
        checked = pario_err_invalid_argument
        if (number < 1 .or. number > slabs%count) return
        if (bytes == bytes_of(slabs, number)) checked = 0
    end function

    ! Begins to read a slab, unless it is here or is being written.
    subroutine read_ahead(slabs, number)
        type(pario_slabs), intent(inout) :: slabs
        integer, intent(in) :: number
        integer :: place, code
        if (number < 1 .or. number > slabs%count) return
        if (any(slabs%writing%number == number) .or. any(slabs%reading%number == number)) return
        place = 1
        if (slabs%reading(1)%number == slabs%last) place = 2
        code = 0
        call settle(slabs%reading(place), code)
        if (.not. associated(slabs%reading(place)%bytes)) allocate (slabs%reading(place)%bytes(slabs%slab_bytes))
        slabs%reading(place)%number = 0
        call pario_iread_at(slabs%file, (number - 1)*slabs%slab_bytes, &
            slabs%reading(place)%bytes(1:bytes_of(slabs, number)), slabs%reading(place)%request, code)
        if (code /= 0) return   ! it is read, and told of, when it is asked for
        slabs%reading(place)%number = number
        slabs%reading(place)%is_under_way = .true.
    end subroutine

    ! Gets a slab, and has the next one read meanwhile.
    subroutine pario_slab_get(slabs, number, buffer, ierr)
        type(pario_slabs), intent(inout) :: slabs
        integer, intent(in) :: number
        type(*), dimension(..), intent(inout) :: buffer
        integer, intent(out), optional :: ierr
        integer :: code, place, i, step
        logical :: is_here
        code = checked(slabs, number, pario_bytes(buffer))
        if (code /= 0) then
            call finish(code, ierr)
            return
        end if
        do i = 1, 2
            ! What is being written may be what is asked for.
            if (slabs%writing(i)%number == number) call settle(slabs%writing(i), code)
        end do
        place = findloc(slabs%reading%number, number, dim=1)
        is_here = .false.
        if (place > 0 .and. code == 0) then
            i = 0
            call settle(slabs%reading(place), i)
            is_here = i == 0
        end if
        if (is_here) then
            slabs%ahead = slabs%ahead + 1
            code = f_copy(buffer, slabs%reading(place)%bytes, 1_c_int)
        else if (code == 0) then
            slabs%waited = slabs%waited + 1
            call pario_read_at(slabs%file, (number - 1)*slabs%slab_bytes, buffer, code)
        end if
        step = 1
        if (slabs%last > number) step = -1
        slabs%last = number
        if (code == 0) call read_ahead(slabs, number + step)
        call finish(code, ierr)
    end subroutine

    ! Puts a slab; writing it goes on beside the program, whose buffer is free at once.
    subroutine pario_slab_put(slabs, number, buffer, ierr)
        type(pario_slabs), intent(inout) :: slabs
        integer, intent(in) :: number
        type(*), dimension(..), intent(in) :: buffer
        integer, intent(out), optional :: ierr
        integer :: code, place, i
        code = checked(slabs, number, pario_bytes(buffer))
        if (code /= 0) then
            call finish(code, ierr)
            return
        end if
        do i = 1, 2
            ! What was read ahead is not what will be there; and writes of one slab have an order.
            if (slabs%reading(i)%number == number) then
                call settle(slabs%reading(i), code)
                slabs%reading(i)%number = 0
            end if
            if (slabs%writing(i)%number == number) call settle(slabs%writing(i), code)
        end do
        place = slabs%next_writing
        slabs%next_writing = 3 - place
        call settle(slabs%writing(place), code)
        if (code == 0) then
            if (.not. associated(slabs%writing(place)%bytes)) allocate (slabs%writing(place)%bytes(slabs%slab_bytes))
            code = f_copy(buffer, slabs%writing(place)%bytes, 0_c_int)
        end if
        if (code == 0) then
            call pario_iwrite_at(slabs%file, (number - 1)*slabs%slab_bytes, &
                slabs%writing(place)%bytes(1:bytes_of(slabs, number)), slabs%writing(place)%request, code)
            slabs%writing(place)%is_under_way = code == 0
            slabs%writing(place)%number = merge(number, 0, code == 0)
        end if
        call finish(code, ierr)
    end subroutine

    ! Waits for everything, and ends the walk; the file stays open.
    subroutine pario_slabs_end(slabs, ierr)
        type(pario_slabs), intent(inout) :: slabs
        integer, intent(out), optional :: ierr
        integer :: code, i, ignored
        code = 0
        do i = 1, 2
            ignored = 0
            call settle(slabs%reading(i), ignored)
            call settle(slabs%writing(i), code)
            if (associated(slabs%reading(i)%bytes)) deallocate (slabs%reading(i)%bytes)
            if (associated(slabs%writing(i)%bytes)) deallocate (slabs%writing(i)%bytes)
        end do
        slabs%count = 0
        call finish(code, ierr)
    end subroutine
end module
