! Data-parallel streams: every virtual processor (VP) of a program has a stream of bytes of its own, inside one parallel file.
!
!     call pario_stream_open(stream, client, team, '/s', 'w', shape='[256][128]')
!     call pario_stream_write(stream, values)                       ! values(:, vp), vp = 1 .. stream%count
!     call pario_stream_elemental(stream, print_one, active=values(1, :) < 0)
!     call pario_stream_close(stream)
!
! All members of the team call the same, each for its own VPs, whose numbers are stream%vps (from 0 on, the last extent of the shape
! varies fastest). The last dimension of an array counts VPs; it may be a section with a step there. What `active` leaves out takes no part.
!
! An elemental subroutine is called once for each active VP; it may use the procedures pario_vp_*, for that VP.
module pario_streams
    use, intrinsic :: iso_c_binding
    use pario
    implicit none
    private

    integer, parameter :: wide = pario_offset_kind

    public :: pario_stream_open, pario_stream_close, pario_stream_flush, pario_stream_write, pario_stream_read
    public :: pario_stream_seek, pario_stream_rewind, pario_stream_tell, pario_stream_lengths, pario_stream_elemental
    public :: pario_vp_number, pario_vp_write, pario_vp_read, pario_vp_puts, pario_vp_gets, pario_vp_seek, pario_vp_is_at_end

    ! A stream file, open at this member.
    type, public :: pario_stream
        type(c_ptr) :: handle = c_null_ptr
        integer :: count = 0                    ! VPs of this member
        integer(wide), allocatable :: vps(:)    ! their numbers
    end type

    ! A VP inside an elemental subroutine.
    type, public :: pario_vp
        type(c_ptr) :: handle = c_null_ptr
    end type

    abstract interface
        subroutine elemental_subroutine(vp)
            import :: pario_vp
            type(pario_vp), intent(in) :: vp
        end subroutine
    end interface

    ! What the library gives back to the function that it calls.
    type :: called_subroutine
        procedure(elemental_subroutine), pointer, nopass :: each => null()
    end type

    interface
        integer(c_int) function f_stream_open(client, team, path, access, shape, distribution, count, stream) &
            bind(c, name='pario_f_stream_open')
            import
            type(c_ptr), value :: client, team
            character(kind=c_char), intent(in) :: path(*), access(*), shape(*), distribution(*)
            integer(c_size_t) :: count
            type(c_ptr) :: stream
        end function
        integer(c_int) function f_stream_write(stream, active, array, count) bind(c, name='pario_f_stream_write')
            import
            type(c_ptr), value :: stream, active
            type(*), dimension(..), intent(in) :: array
            integer(c_size_t), value :: count
        end function
        integer(c_int) function f_stream_read(stream, active, array, count, counts) bind(c, name='pario_f_stream_read')
            import
            type(c_ptr), value :: stream, active, counts
            type(*), dimension(..) :: array
            integer(c_size_t), value :: count
        end function
        integer(c_int) function f_vp_write(vp, array) bind(c, name='pario_f_vp_write')
            import
            type(c_ptr), value :: vp
            type(*), dimension(..), intent(in) :: array
        end function
        integer(c_int) function f_vp_read(vp, array, moved) bind(c, name='pario_f_vp_read')
            import
            type(c_ptr), value :: vp
            type(*), dimension(..) :: array
            integer(c_int64_t) :: moved
        end function
        integer(c_int) function c_stream_vps(stream, numbers) bind(c, name='pario_stream_vps')
            import
            type(c_ptr), value :: stream
            integer(c_int64_t) :: numbers(*)
        end function
        integer(c_int) function c_stream_close(stream) bind(c, name='pario_stream_close')
            import
            type(c_ptr), value :: stream
        end function
        integer(c_int) function c_stream_flush(stream) bind(c, name='pario_stream_flush')
            import
            type(c_ptr), value :: stream
        end function
        integer(c_int) function c_stream_seek(stream, active, offset, whence) bind(c, name='pario_stream_seek')
            import
            type(c_ptr), value :: stream, active
            integer(c_int64_t), value :: offset
            integer(c_int), value :: whence
        end function
        integer(c_int) function c_stream_tell(stream, places) bind(c, name='pario_stream_tell')
            import
            type(c_ptr), value :: stream
            integer(c_int64_t) :: places(*)
        end function
        integer(c_int) function c_stream_lengths(stream, lengths) bind(c, name='pario_stream_lengths')
            import
            type(c_ptr), value :: stream
            integer(c_int64_t) :: lengths(*)
        end function
        integer(c_int) function c_stream_elemental(stream, active, function, user) bind(c, name='pario_stream_elemental')
            import
            type(c_ptr), value :: stream, active, user
            type(c_funptr), value :: function
        end function
        integer(c_int) function c_vp_about(vp, number, local) bind(c, name='pario_vp_about')
            import
            type(c_ptr), value :: vp
            integer(c_int64_t) :: number
            integer(c_size_t) :: local
        end function
        integer(c_int) function c_vp_write(vp, memory, bytes) bind(c, name='pario_vp_write')
            import
            type(c_ptr), value :: vp
            character(kind=c_char), intent(in) :: memory(*)
            integer(c_size_t), value :: bytes
        end function
        integer(c_int) function c_vp_gets(vp, line, room) bind(c, name='pario_vp_gets')
            import
            type(c_ptr), value :: vp
            character(kind=c_char) :: line(*)
            integer(c_size_t), value :: room
        end function
        integer(c_int) function c_vp_seek(vp, offset, whence, place) bind(c, name='pario_vp_seek')
            import
            type(c_ptr), value :: vp
            integer(c_int64_t), value :: offset
            integer(c_int), value :: whence
            integer(c_int64_t) :: place
        end function
        integer(c_int) function c_vp_eof(vp, at_end) bind(c, name='pario_vp_eof')
            import
            type(c_ptr), value :: vp
            integer(c_int) :: at_end
        end function
    end interface

contains

    subroutine finish(code, ierr)
        integer(c_int), intent(in) :: code
        integer, intent(out), optional :: ierr
        character(:), allocatable :: text
        if (present(ierr)) then
            ierr = code
        else if (code /= 0) then
            text = pario_last_error()
            error stop text
        end if
    end subroutine

    ! --- For all active VPs ---

    ! Opens a file by the modes of C: r, r+, w, w+, a, a+. Without a shape that of the file; without a distribution blocks of VPs.
    subroutine pario_stream_open(stream, client, team, path, access, shape, distribution, ierr)
        type(pario_stream), intent(out) :: stream
        type(pario_client), intent(in) :: client
        type(pario_team), intent(in) :: team
        character(*), intent(in) :: path, access
        character(*), intent(in), optional :: shape, distribution
        integer, intent(out), optional :: ierr
        character(:), allocatable :: of_shape, of_distribution
        integer(c_size_t) :: count
        integer(c_int) :: code
        of_shape = ''
        of_distribution = ''
        if (present(shape)) of_shape = trim(shape)
        if (present(distribution)) of_distribution = trim(distribution)
        code = f_stream_open(client%handle, team%handle, trim(path)//c_null_char, trim(access)//c_null_char, &
                             of_shape//c_null_char, of_distribution//c_null_char, count, stream%handle)
        if (code == 0) then
            stream%count = int(count)
            allocate (stream%vps(stream%count + 1))
            code = c_stream_vps(stream%handle, stream%vps)
            stream%vps = stream%vps(1:stream%count)
        end if
        call finish(code, ierr)
    end subroutine

    ! Makes everything that was written so far what the file has.
    subroutine pario_stream_flush(stream, ierr)
        type(pario_stream), intent(in) :: stream
        integer, intent(out), optional :: ierr
        call finish(c_stream_flush(stream%handle), ierr)
    end subroutine

    ! Flushes and closes.
    subroutine pario_stream_close(stream, ierr)
        type(pario_stream), intent(inout) :: stream
        integer, intent(out), optional :: ierr
        integer(c_int) :: code
        code = c_stream_close(stream%handle)
        stream%handle = c_null_ptr
        call finish(code, ierr)
    end subroutine

    ! A list of who is active for C; a null pointer if all are.
    function list_of(stream, active, list) result(pointer)
        type(pario_stream), intent(in) :: stream
        logical, intent(in), optional :: active(:)
        integer(c_int8_t), allocatable, target, intent(out) :: list(:)
        type(c_ptr) :: pointer
        integer :: i
        pointer = c_null_ptr
        if (.not. present(active)) return
        allocate (list(stream%count + 1))
        list = 0_c_int8_t
        do i = 1, min(stream%count, size(active))
            if (active(i)) list(i) = 1_c_int8_t
        end do
        pointer = c_loc(list)
    end function

    ! Writes an array, whose last dimension counts VPs: as many bytes of each.
    subroutine pario_stream_write(stream, array, active, ierr)
        type(pario_stream), intent(in) :: stream
        type(*), dimension(..), intent(in) :: array
        logical, intent(in), optional :: active(:)
        integer, intent(out), optional :: ierr
        integer(c_int8_t), allocatable, target :: list(:)
        type(c_ptr) :: pointer
        pointer = list_of(stream, active, list)
        call finish(f_stream_write(stream%handle, pointer, array, int(stream%count, c_size_t)), ierr)
    end subroutine

    ! Reads an array, whose last dimension counts VPs; counts has the bytes of each, fewer where its stream ends.
    subroutine pario_stream_read(stream, array, active, counts, ierr)
        type(pario_stream), intent(in) :: stream
        type(*), dimension(..) :: array
        logical, intent(in), optional :: active(:)
        integer(wide), intent(out), optional :: counts(:)
        integer, intent(out), optional :: ierr
        integer(c_int8_t), allocatable, target :: list(:)
        integer(wide), allocatable, target :: found(:)
        type(c_ptr) :: pointer
        allocate (found(stream%count + 1))
        found = 0
        pointer = list_of(stream, active, list)
        call finish(f_stream_read(stream%handle, pointer, array, int(stream%count, c_size_t), c_loc(found)), ierr)
        if (present(counts)) counts = found(1:size(counts))
    end subroutine

    ! Moves the active VPs: to one place, by one distance, or to one distance from the end of each.
    subroutine pario_stream_seek(stream, offset, whence, active, ierr)
        type(pario_stream), intent(in) :: stream
        integer(wide), intent(in) :: offset
        integer, intent(in), optional :: whence
        logical, intent(in), optional :: active(:)
        integer, intent(out), optional :: ierr
        integer(c_int8_t), allocatable, target :: list(:)
        type(c_ptr) :: pointer
        integer(c_int) :: from
        from = pario_from_start
        if (present(whence)) from = int(whence, c_int)
        pointer = list_of(stream, active, list)
        call finish(c_stream_seek(stream%handle, pointer, offset, from), ierr)
    end subroutine

    ! Moves all VPs to the beginning.
    subroutine pario_stream_rewind(stream, ierr)
        type(pario_stream), intent(in) :: stream
        integer, intent(out), optional :: ierr
        call finish(c_stream_seek(stream%handle, c_null_ptr, 0_c_int64_t, int(pario_from_start, c_int)), ierr)
    end subroutine

    ! Where each VP is.
    subroutine pario_stream_tell(stream, places, ierr)
        type(pario_stream), intent(in) :: stream
        integer(wide), allocatable, intent(out) :: places(:)
        integer, intent(out), optional :: ierr
        allocate (places(stream%count))
        call finish(c_stream_tell(stream%handle, places), ierr)
    end subroutine

    ! How many bytes each VP has.
    subroutine pario_stream_lengths(stream, lengths, ierr)
        type(pario_stream), intent(in) :: stream
        integer(wide), allocatable, intent(out) :: lengths(:)
        integer, intent(out), optional :: ierr
        allocate (lengths(stream%count))
        call finish(c_stream_lengths(stream%handle, lengths), ierr)
    end subroutine

    ! Calls a subroutine for every active VP.
    subroutine pario_stream_elemental(stream, each, active, ierr)
        type(pario_stream), intent(in) :: stream
        procedure(elemental_subroutine) :: each
        logical, intent(in), optional :: active(:)
        integer, intent(out), optional :: ierr
        integer(c_int8_t), allocatable, target :: list(:)
        type(called_subroutine), target :: called
        type(c_ptr) :: pointer
        called%each => each
        pointer = list_of(stream, active, list)
        call finish(c_stream_elemental(stream%handle, pointer, c_funloc(call_one), c_loc(called)), ierr)
    end subroutine

    integer(c_int) function call_one(vp, user) bind(c, name='pario_f_call_one')
        type(c_ptr), value :: vp, user
        type(called_subroutine), pointer :: called
        type(pario_vp) :: this
        call c_f_pointer(user, called)
        this%handle = vp
        call called%each(this)
        call_one = 0
    end function

    ! --- For one VP ---

    ! The number of a VP, and its place at this member, from 1 on.
    subroutine pario_vp_number(vp, number, local, ierr)
        type(pario_vp), intent(in) :: vp
        integer(wide), intent(out) :: number
        integer, intent(out), optional :: local
        integer, intent(out), optional :: ierr
        integer(c_size_t) :: place
        integer(c_int) :: code
        place = 0
        code = c_vp_about(vp%handle, number, place)
        if (present(local)) local = int(place) + 1
        call finish(code, ierr)
    end subroutine

    ! Writes an array.
    subroutine pario_vp_write(vp, array, ierr)
        type(pario_vp), intent(in) :: vp
        type(*), dimension(..), intent(in) :: array
        integer, intent(out), optional :: ierr
        call finish(f_vp_write(vp%handle, array), ierr)
    end subroutine

    ! Reads an array; moved has the bytes that there were.
    subroutine pario_vp_read(vp, array, moved, ierr)
        type(pario_vp), intent(in) :: vp
        type(*), dimension(..) :: array
        integer(wide), intent(out), optional :: moved
        integer, intent(out), optional :: ierr
        integer(wide) :: found
        integer(c_int) :: code
        code = f_vp_read(vp%handle, array, found)
        if (present(moved)) moved = found
        call finish(code, ierr)
    end subroutine

    ! Writes a text as a line.
    subroutine pario_vp_puts(vp, text, ierr)
        type(pario_vp), intent(in) :: vp
        character(*), intent(in) :: text
        integer, intent(out), optional :: ierr
        call finish(c_vp_write(vp%handle, text//c_new_line, len(text, c_size_t) + 1), ierr)
    end subroutine

    ! Reads a line, without its end; is_there is false at the end of the stream.
    subroutine pario_vp_gets(vp, line, is_there, ierr)
        type(pario_vp), intent(in) :: vp
        character(:), allocatable, intent(out) :: line
        logical, intent(out), optional :: is_there
        integer, intent(out), optional :: ierr
        integer, parameter :: most = 4096
        character(kind=c_char) :: bytes(most)
        integer(c_int) :: code
        integer :: length
        bytes(1) = c_null_char
        code = c_vp_gets(vp%handle, bytes, int(most, c_size_t))
        length = 0
        do while (bytes(length + 1) /= c_null_char)
            length = length + 1
        end do
        if (present(is_there)) is_there = length > 0
        if (length > 0) then
            if (bytes(length) == c_new_line) length = length - 1
        end if
        allocate (character(length) :: line)
        line = transfer(bytes(1:length), line)
        call finish(code, ierr)
    end subroutine

    ! Moves a VP.
    subroutine pario_vp_seek(vp, offset, whence, place, ierr)
        type(pario_vp), intent(in) :: vp
        integer(wide), intent(in) :: offset
        integer, intent(in), optional :: whence
        integer(wide), intent(out), optional :: place
        integer, intent(out), optional :: ierr
        integer(wide) :: now
        integer(c_int) :: from, code
        from = pario_from_start
        if (present(whence)) from = int(whence, c_int)
        code = c_vp_seek(vp%handle, offset, from, now)
        if (present(place)) place = now
        call finish(code, ierr)
    end subroutine

    ! Whether the last read of a VP came to the end.
    logical function pario_vp_is_at_end(vp)
        type(pario_vp), intent(in) :: vp
        integer(c_int) :: at_end
        at_end = 0
        call finish(c_vp_eof(vp%handle, at_end))
        pario_vp_is_at_end = at_end /= 0
    end function
end module
