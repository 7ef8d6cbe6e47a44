! Pario: parallel files for n-dimensional arrays. The Fortran interface.
!
!     use pario
!     type(pario_client) :: client
!     type(pario_file) :: file
!     real(8) :: a(1024, 1024)
!
!     call pario_connect(client, 'dir:data')
!     call pario_open(client, '/matrix', file, flags=pario_readwrite + pario_create_new, array='f64[1024,1024]:fortran')
!     call pario_write_at(file, 0_pario_offset_kind, a(:, 1:512))
!     call pario_close(file)
!     call pario_disconnect(client)
!
! - Arrays are of any intrinsic type, kind and rank. Sections are read and written where they lie, without a copy.
! - Every routine has an optional ierr, 0 or a code PARIO_ERR_* of pario.h; pario_last_error() says more. Without ierr a failure ends
!   the program with that text. Blanks at the end of texts do not count.
! - Offsets and positions are in bytes of the view, from 0 on, as integer(pario_offset_kind).
! - Arrays of operations that go on beside the program belong to them until pario_wait or pario_test has said that they are done:
!   declare them ASYNCHRONOUS. Give whole variables or sections of them, no expressions and no components of arrays, which the compiler copies.
! - Handles are values; what was closed is refused.
module pario
    use, intrinsic :: iso_c_binding
    implicit none
    private

    ! Kind of offsets, positions and sizes.
    integer, parameter, public :: pario_offset_kind = c_int64_t

    ! How a file is opened: add them up.
    integer, parameter, public :: pario_readonly = 1, pario_writeonly = 2, pario_readwrite = 3, pario_appending = 4, &
        pario_create_new = 8, pario_exclusive = 16, pario_truncating = 32, pario_unique = 64, pario_delete_on_close = 128, &
        pario_atomic = 256

    ! Where a pointer is moved from.
    integer, parameter, public :: pario_from_start = 0, pario_from_here = 1, pario_from_end = 2

    ! What is made of numbers of all members of a team.
    integer, parameter, public :: pario_sum = 0, pario_min = 1, pario_max = 2

    ! As rank to join a team by: the next that is free.
    integer, parameter, public :: pario_any_rank = -1

    ! Codes that programs ask for; pario.h has all of them.
    integer, parameter, public :: pario_ok = 0, pario_err_invalid_argument = 4, pario_err_not_found = 6, pario_err_exists = 7, &
        pario_err_permission_denied = 11, pario_err_bad_handle = 15

    type, public :: pario_client
        type(c_ptr) :: handle = c_null_ptr
    end type
    type, public :: pario_file
        type(c_ptr) :: handle = c_null_ptr
    end type
    type, public :: pario_team
        type(c_ptr) :: handle = c_null_ptr
    end type
    type, public :: pario_request
        type(c_ptr) :: handle = c_null_ptr
    end type
    type, public :: pario_layout
        type(c_ptr) :: handle = c_null_ptr
    end type

    public :: pario_connect, pario_disconnect, pario_last_error, pario_strerror, pario_version
    public :: pario_unlink, pario_mkdir, pario_rmdir, pario_rename, pario_exists, pario_create
    public :: pario_open, pario_close, pario_size, pario_truncate, pario_preallocate, pario_sync, pario_set_atomic, pario_array_text
    public :: pario_set_hints, pario_keep_hint, pario_will_read, pario_hint_report, pario_relayout
    public :: pario_set_view, pario_layout_parse, pario_layout_directives, pario_layout_run_time, pario_layout_text, &
        pario_layout_elements, pario_layout_extents, pario_layout_free
    public :: pario_read, pario_write, pario_read_at, pario_write_at, pario_read_shared, pario_write_shared, pario_append
    public :: pario_seek, pario_tell, pario_seek_shared
    public :: pario_iread, pario_iwrite, pario_iread_at, pario_iwrite_at, pario_wait, pario_wait_all, pario_test, pario_cancel
    public :: pario_read_at_all, pario_write_at_all, pario_iread_at_all, pario_iwrite_at_all
    public :: pario_read_part, pario_write_part, pario_bytes, pario_element_bytes
    public :: pario_team_join, pario_team_alone, pario_team_leave, pario_team_rank, pario_team_barrier, pario_team_broadcast, &
        pario_team_reduce

    ! Sets the view of a file: by notation, to one element of a layout, or to the whole file.
    interface pario_set_view
        module procedure set_view_text, set_view_layout
    end interface

    ! Combines numbers of all members of a team entry by entry, in their place.
    interface pario_team_reduce
        module procedure reduce_integers, reduce_reals
    end interface

    ! What an access is; pario_fortran.c has the same numbers.
    integer(c_int), parameter :: writes = 1, beside = 2, at_pointer = 4, at_shared_pointer = 8, at_end = 16, together = 32

    interface
        integer(c_int) function f_access(verb, file, team, offset, array, moved, request) bind(c, name='pario_f_access')
            import
            integer(c_int), value :: verb
            type(c_ptr), value :: file, team
            integer(c_int64_t), value :: offset
            type(*), dimension(..) :: array
            integer(c_int64_t) :: moved
            type(c_ptr) :: request
        end function
        integer(c_int) function f_access_part(verb, file, team, offset, array, layout, element, text, moved) &
            bind(c, name='pario_f_access_part')
            import
            integer(c_int), value :: verb
            type(c_ptr), value :: file, team, layout
            integer(c_int64_t), value :: offset, element
            type(*), dimension(..) :: array
            character(kind=c_char), intent(in) :: text(*)
            integer(c_int64_t) :: moved
        end function
        pure integer(c_int64_t) function f_bytes(array) bind(c, name='pario_f_bytes')
            import
            type(*), dimension(..), intent(in) :: array
        end function
        pure integer(c_int64_t) function f_element_bytes(array) bind(c, name='pario_f_element_bytes')
            import
            type(*), dimension(..), intent(in) :: array
        end function
        integer(c_int) function f_array_text(array, dimensions, extents, text) bind(c, name='pario_f_array_text')
            import
            type(*), dimension(..), intent(in) :: array
            integer(c_int), value :: dimensions
            integer(c_int64_t), intent(in) :: extents(*)
            type(c_ptr) :: text
        end function
        integer(c_int) function f_connect(url, application, hints, rank, processes, client) bind(c, name='pario_f_connect')
            import
            character(kind=c_char), intent(in) :: url(*), application(*), hints(*)
            integer(c_int64_t), value :: rank, processes
            type(c_ptr) :: client
        end function
        integer(c_int) function f_open(client, team, path, flags, array, layout, hints, clients, shared, file) &
            bind(c, name='pario_f_open')
            import
            type(c_ptr), value :: client, team
            character(kind=c_char), intent(in) :: path(*), array(*), layout(*), hints(*)
            integer(c_int), value :: flags
            integer(c_int64_t), value :: clients, shared
            type(c_ptr) :: file
        end function
        integer(c_int) function f_create(client, path, array, layout, hints, is_new) bind(c, name='pario_f_create')
            import
            type(c_ptr), value :: client
            character(kind=c_char), intent(in) :: path(*), array(*), layout(*), hints(*)
            integer(c_int) :: is_new
        end function
        integer(c_int) function f_set_hints(file, team, hints) bind(c, name='pario_f_set_hints')
            import
            type(c_ptr), value :: file, team
            character(kind=c_char), intent(in) :: hints(*)
        end function
        integer(c_int) function f_broadcast(team, root, array) bind(c, name='pario_f_broadcast')
            import
            type(c_ptr), value :: team
            integer(c_int), value :: root
            type(*), dimension(..) :: array
        end function
        integer(c_int) function f_keep_hint(client, path, name, value) bind(c, name='pario_f_keep_hint')
            import
            type(c_ptr), value :: client
            character(kind=c_char), intent(in) :: path(*), name(*), value(*)
        end function
        integer(c_int) function f_relayout(client, path, layout) bind(c, name='pario_f_relayout')
            import
            type(c_ptr), value :: client
            character(kind=c_char), intent(in) :: path(*), layout(*)
        end function

        type(c_ptr) function c_last_error() bind(c, name='pario_last_error')
            import
        end function
        type(c_ptr) function c_strerror(code) bind(c, name='pario_strerror')
            import
            integer(c_int), value :: code
        end function
        type(c_ptr) function c_version() bind(c, name='pario_version')
            import
        end function
        subroutine c_text_free(text) bind(c, name='pario_text_free')
            import
            type(c_ptr), value :: text
        end subroutine
        integer(c_size_t) function c_strlen(text) bind(c, name='strlen')
            import
            type(c_ptr), value :: text
        end function
        integer(c_int) function c_disconnect(client) bind(c, name='pario_disconnect')
            import
            type(c_ptr), value :: client
        end function
        integer(c_int) function c_unlink(client, path) bind(c, name='pario_unlink')
            import
            type(c_ptr), value :: client
            character(kind=c_char), intent(in) :: path(*)
        end function
        integer(c_int) function c_mkdir_all(client, path, mode) bind(c, name='pario_mkdir_all')
            import
            type(c_ptr), value :: client
            character(kind=c_char), intent(in) :: path(*)
            integer(c_int), value :: mode
        end function
        integer(c_int) function c_rmdir(client, path) bind(c, name='pario_rmdir')
            import
            type(c_ptr), value :: client
            character(kind=c_char), intent(in) :: path(*)
        end function
        integer(c_int) function c_rename(client, from, to) bind(c, name='pario_rename')
            import
            type(c_ptr), value :: client
            character(kind=c_char), intent(in) :: from(*), to(*)
        end function
        integer(c_int) function c_exists(client, path, exists) bind(c, name='pario_exists')
            import
            type(c_ptr), value :: client
            character(kind=c_char), intent(in) :: path(*)
            integer(c_int) :: exists
        end function
        integer(c_int) function c_close(file) bind(c, name='pario_close')
            import
            type(c_ptr), value :: file
        end function
        integer(c_int) function c_size(file, bytes) bind(c, name='pario_size')
            import
            type(c_ptr), value :: file
            integer(c_int64_t) :: bytes
        end function
        integer(c_int) function c_truncate(file, bytes) bind(c, name='pario_truncate')
            import
            type(c_ptr), value :: file
            integer(c_int64_t), value :: bytes
        end function
        integer(c_int) function c_preallocate(file, bytes) bind(c, name='pario_preallocate')
            import
            type(c_ptr), value :: file
            integer(c_int64_t), value :: bytes
        end function
        integer(c_int) function c_sync(file, is_durable) bind(c, name='pario_sync')
            import
            type(c_ptr), value :: file
            integer(c_int) :: is_durable
        end function
        integer(c_int) function c_set_atomic(file, is_atomic) bind(c, name='pario_set_atomic')
            import
            type(c_ptr), value :: file
            integer(c_int), value :: is_atomic
        end function
        integer(c_int) function c_will_read(file, offset, bytes) bind(c, name='pario_will_read')
            import
            type(c_ptr), value :: file
            integer(c_int64_t), value :: offset, bytes
        end function
        integer(c_int) function c_hint_report(file, json) bind(c, name='pario_hint_report')
            import
            type(c_ptr), value :: file
            type(c_ptr) :: json
        end function
        integer(c_int) function c_set_view(file, displacement, text) bind(c, name='pario_set_view')
            import
            type(c_ptr), value :: file
            integer(c_int64_t), value :: displacement
            character(kind=c_char), intent(in) :: text(*)
        end function
        integer(c_int) function c_set_view_all(file, team, text) bind(c, name='pario_set_view_all')
            import
            type(c_ptr), value :: file, team
            character(kind=c_char), intent(in) :: text(*)
        end function
        integer(c_int) function c_view_of_layout(layout, element, array, displacement, view) bind(c, name='pario_view_of_layout')
            import
            type(c_ptr), value :: layout
            integer(c_int64_t), value :: element, displacement
            character(kind=c_char), intent(in) :: array(*)
            type(c_ptr) :: view
        end function
        integer(c_int) function c_apply_view(file, view) bind(c, name='pario_apply_view')
            import
            type(c_ptr), value :: file, view
        end function
        integer(c_int) function c_apply_view_all(file, team, view) bind(c, name='pario_apply_view_all')
            import
            type(c_ptr), value :: file, team, view
        end function
        integer(c_int) function c_view_free(view) bind(c, name='pario_view_free')
            import
            type(c_ptr), value :: view
        end function
        integer(c_int) function c_layout_parse(text, layout) bind(c, name='pario_layout_parse')
            import
            character(kind=c_char), intent(in) :: text(*)
            type(c_ptr) :: layout
        end function
        integer(c_int) function c_layout_directives(text, array, dimensions, extents, processes, layout) &
            bind(c, name='pario_layout_directives')
            import
            character(kind=c_char), intent(in) :: text(*), array(*)
            integer(c_size_t), value :: dimensions
            integer(c_int64_t), intent(in) :: extents(*)
            integer(c_int64_t), value :: processes
            type(c_ptr) :: layout
        end function
        integer(c_int) function c_layout_run_time(descriptor, count, layout, array) bind(c, name='pario_layout_run_time')
            import
            integer(c_int), intent(in) :: descriptor(*)
            integer(c_size_t), value :: count
            type(c_ptr) :: layout, array
        end function
        integer(c_int) function c_layout_text(layout, text) bind(c, name='pario_layout_text')
            import
            type(c_ptr), value :: layout
            type(c_ptr) :: text
        end function
        integer(c_int) function c_layout_elements(layout, array, elements) bind(c, name='pario_layout_elements')
            import
            type(c_ptr), value :: layout
            character(kind=c_char), intent(in) :: array(*)
            integer(c_int64_t) :: elements
        end function
        integer(c_int) function c_layout_extents(layout, element, array, dimensions, extents) bind(c, name='pario_layout_extents')
            import
            type(c_ptr), value :: layout
            integer(c_int64_t), value :: element
            character(kind=c_char), intent(in) :: array(*)
            integer(c_size_t), value :: dimensions
            integer(c_int64_t) :: extents(*)
        end function
        integer(c_int) function c_layout_free(layout) bind(c, name='pario_layout_free')
            import
            type(c_ptr), value :: layout
        end function
        integer(c_int) function c_seek(file, offset, whence, position) bind(c, name='pario_seek')
            import
            type(c_ptr), value :: file
            integer(c_int64_t), value :: offset
            integer(c_int), value :: whence
            integer(c_int64_t) :: position
        end function
        integer(c_int) function c_seek_shared(file, offset, whence, position) bind(c, name='pario_seek_shared')
            import
            type(c_ptr), value :: file
            integer(c_int64_t), value :: offset
            integer(c_int), value :: whence
            integer(c_int64_t) :: position
        end function
        integer(c_int) function c_tell(file, position) bind(c, name='pario_tell')
            import
            type(c_ptr), value :: file
            integer(c_int64_t) :: position
        end function
        integer(c_int) function c_wait(request, moved) bind(c, name='pario_wait')
            import
            type(c_ptr) :: request
            integer(c_int64_t) :: moved
        end function
        integer(c_int) function c_test(request, is_done, moved) bind(c, name='pario_test')
            import
            type(c_ptr) :: request
            integer(c_int) :: is_done
            integer(c_int64_t) :: moved
        end function
        integer(c_int) function c_cancel(request, is_cancelled) bind(c, name='pario_cancel')
            import
            type(c_ptr), value :: request
            integer(c_int) :: is_cancelled
        end function
        integer(c_int) function c_team_join(client, name, rank, size, team) bind(c, name='pario_team_join')
            import
            type(c_ptr), value :: client
            character(kind=c_char), intent(in) :: name(*)
            integer(c_int), value :: rank, size
            type(c_ptr) :: team
        end function
        integer(c_int) function c_team_alone(team) bind(c, name='pario_team_alone')
            import
            type(c_ptr) :: team
        end function
        integer(c_int) function c_team_leave(team) bind(c, name='pario_team_leave')
            import
            type(c_ptr), value :: team
        end function
        integer(c_int) function c_team_rank(team, rank, size) bind(c, name='pario_team_rank')
            import
            type(c_ptr), value :: team
            integer(c_int) :: rank, size
        end function
        integer(c_int) function c_team_barrier(team) bind(c, name='pario_team_barrier')
            import
            type(c_ptr), value :: team
        end function
        integer(c_int) function c_reduce_i64(team, values, count, how) bind(c, name='pario_team_reduce_i64')
            import
            type(c_ptr), value :: team
            integer(c_int64_t) :: values(*)
            integer(c_size_t), value :: count
            integer(c_int), value :: how
        end function
        integer(c_int) function c_reduce_f64(team, values, count, how) bind(c, name='pario_team_reduce_f64')
            import
            type(c_ptr), value :: team
            real(c_double) :: values(*)
            integer(c_size_t), value :: count
            integer(c_int), value :: how
        end function
    end interface

contains

    ! --- Texts and errors ---

    ! A text for C: without blanks at the end, with a zero behind it; an empty one if there is none.
    function zeroed(text) result(ended)
        character(*), intent(in), optional :: text
        character(:, kind=c_char), allocatable :: ended
        if (present(text)) then
            ended = trim(text) // c_null_char
        else
            ended = c_null_char
        end if
    end function

    ! A text of C.
    function text_of(pointer) result(text)
        type(c_ptr), intent(in) :: pointer
        character(:), allocatable :: text
        character(kind=c_char), pointer :: bytes(:)
        integer(c_size_t) :: i, length
        if (.not. c_associated(pointer)) then
            text = ''
            return
        end if
        length = c_strlen(pointer)
        call c_f_pointer(pointer, bytes, [length])
        allocate (character(length) :: text)
        do i = 1, length
            text(i:i) = bytes(i)
        end do
    end function

    ! A text of C that is given back.
    function taken(pointer) result(text)
        type(c_ptr), intent(in) :: pointer
        character(:), allocatable :: text
        text = text_of(pointer)
        call c_text_free(pointer)
    end function

    ! Hands a code to the program, or ends it.
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

    ! Why the last call that failed did.
    function pario_last_error() result(text)
        character(:), allocatable :: text
        text = text_of(c_last_error())
    end function

    ! What a code means.
    function pario_strerror(code) result(text)
        integer, intent(in) :: code
        character(:), allocatable :: text
        text = text_of(c_strerror(int(code, c_int)))
    end function

    ! The version of the library.
    function pario_version() result(text)
        character(:), allocatable :: text
        text = text_of(c_version())
    end function

    ! --- Connecting, and names ---

    ! Connects to what a URL names; to what PARIO_URL names without one. Hints are 'name=value;name=value'.
    subroutine pario_connect(client, url, ierr, application, hints, rank, processes)
        type(pario_client), intent(out) :: client
        character(*), intent(in), optional :: url, application, hints
        integer, intent(out), optional :: ierr
        integer, intent(in), optional :: rank, processes
        integer(c_int64_t) :: own, all
        own = 0
        all = 0
        if (present(rank)) own = rank
        if (present(processes)) all = processes
        call finish(f_connect(zeroed(url), zeroed(application), zeroed(hints), own, all, client%handle), ierr)
    end subroutine

    ! Closes everything that was opened through a client, and the client.
    subroutine pario_disconnect(client, ierr)
        type(pario_client), intent(inout) :: client
        integer, intent(out), optional :: ierr
        call finish(c_disconnect(client%handle), ierr)
        client%handle = c_null_ptr
    end subroutine

    ! Removes the name of a file.
    subroutine pario_unlink(client, path, ierr)
        type(pario_client), intent(in) :: client
        character(*), intent(in) :: path
        integer, intent(out), optional :: ierr
        call finish(c_unlink(client%handle, zeroed(path)), ierr)
    end subroutine

    ! Creates a directory and those above it.
    subroutine pario_mkdir(client, path, ierr)
        type(pario_client), intent(in) :: client
        character(*), intent(in) :: path
        integer, intent(out), optional :: ierr
        call finish(c_mkdir_all(client%handle, zeroed(path), 0_c_int), ierr)
    end subroutine

    ! Removes an empty directory.
    subroutine pario_rmdir(client, path, ierr)
        type(pario_client), intent(in) :: client
        character(*), intent(in) :: path
        integer, intent(out), optional :: ierr
        call finish(c_rmdir(client%handle, zeroed(path)), ierr)
    end subroutine

    ! Gives a file or directory another name.
    subroutine pario_rename(client, from, to, ierr)
        type(pario_client), intent(in) :: client
        character(*), intent(in) :: from, to
        integer, intent(out), optional :: ierr
        call finish(c_rename(client%handle, zeroed(from), zeroed(to)), ierr)
    end subroutine

    ! Whether there is a file or directory of this name.
    subroutine pario_exists(client, path, exists, ierr)
        type(pario_client), intent(in) :: client
        character(*), intent(in) :: path
        logical, intent(out) :: exists
        integer, intent(out), optional :: ierr
        integer(c_int) :: found
        found = 0
        call finish(c_exists(client%handle, zeroed(path), found), ierr)
        exists = found /= 0
    end subroutine

    ! Creates a file without opening it.
    subroutine pario_create(client, path, ierr, array, layout, hints, is_new)
        type(pario_client), intent(in) :: client
        character(*), intent(in) :: path
        integer, intent(out), optional :: ierr
        character(*), intent(in), optional :: array, layout, hints
        logical, intent(out), optional :: is_new
        integer(c_int) :: created
        created = 0
        call finish(f_create(client%handle, zeroed(path), zeroed(array), zeroed(layout), zeroed(hints), created), ierr)
        if (present(is_new)) is_new = created /= 0
    end subroutine

    ! --- Open files ---

    ! Opens a file; with a team, together with its other members. flags is pario_readonly unless said otherwise. array and layout are of
    ! the layout language, for a file that is created.
    subroutine pario_open(client, path, file, ierr, flags, array, layout, hints, team, clients, shared_pointer)
        type(pario_client), intent(in) :: client
        character(*), intent(in) :: path
        type(pario_file), intent(out) :: file
        integer, intent(out), optional :: ierr
        integer, intent(in), optional :: flags, clients
        character(*), intent(in), optional :: array, layout, hints
        type(pario_team), intent(in), optional :: team
        integer(pario_offset_kind), intent(in), optional :: shared_pointer
        integer(c_int) :: how
        integer(c_int64_t) :: expected, group
        type(c_ptr) :: members
        how = pario_readonly
        expected = 0
        group = 0
        members = c_null_ptr
        if (present(flags)) how = flags
        if (present(clients)) expected = clients
        if (present(shared_pointer)) group = shared_pointer
        if (present(team)) members = team%handle
        call finish(f_open(client%handle, members, zeroed(path), how, zeroed(array), zeroed(layout), zeroed(hints), expected, &
            group, file%handle), ierr)
    end subroutine

    ! Closes a file once operations on it are done.
    subroutine pario_close(file, ierr)
        type(pario_file), intent(inout) :: file
        integer, intent(out), optional :: ierr
        call finish(c_close(file%handle), ierr)
        file%handle = c_null_ptr
    end subroutine

    ! The size of a file in bytes.
    subroutine pario_size(file, bytes, ierr)
        type(pario_file), intent(in) :: file
        integer(pario_offset_kind), intent(out) :: bytes
        integer, intent(out), optional :: ierr
        bytes = 0
        call finish(c_size(file%handle, bytes), ierr)
    end subroutine

    ! Sets the size.
    subroutine pario_truncate(file, bytes, ierr)
        type(pario_file), intent(in) :: file
        integer(pario_offset_kind), intent(in) :: bytes
        integer, intent(out), optional :: ierr
        call finish(c_truncate(file%handle, bytes), ierr)
    end subroutine

    ! Commits space for bytes, and grows the file to them.
    subroutine pario_preallocate(file, bytes, ierr)
        type(pario_file), intent(in) :: file
        integer(pario_offset_kind), intent(in) :: bytes
        integer, intent(out), optional :: ierr
        call finish(c_preallocate(file%handle, bytes), ierr)
    end subroutine

    ! Makes what was written durable.
    subroutine pario_sync(file, ierr)
        type(pario_file), intent(in) :: file
        integer, intent(out), optional :: ierr
        integer(c_int) :: is_durable
        call finish(c_sync(file%handle, is_durable), ierr)
    end subroutine

    ! Enters or leaves atomic mode.
    subroutine pario_set_atomic(file, is_atomic, ierr)
        type(pario_file), intent(in) :: file
        logical, intent(in) :: is_atomic
        integer, intent(out), optional :: ierr
        call finish(c_set_atomic(file%handle, merge(1_c_int, 0_c_int, is_atomic)), ierr)
    end subroutine

    ! What a file is that holds arrays like this one, as 'f64[14,17]:fortran'; of other extents, if they are given.
    function pario_array_text(array, extents) result(text)
        type(*), dimension(..), intent(in) :: array
        integer(pario_offset_kind), intent(in), optional :: extents(:)
        character(:), allocatable :: text
        integer(c_int64_t) :: none(1)
        integer(c_int) :: code
        type(c_ptr) :: found
        found = c_null_ptr
        if (present(extents)) then
            code = f_array_text(array, size(extents, kind=c_int), extents, found)
        else
            code = f_array_text(array, -1_c_int, none, found)
        end if
        call finish(code)
        text = taken(found)
    end function

    ! Bytes of an array.
    pure function pario_bytes(array) result(bytes)
        type(*), dimension(..), intent(in) :: array
        integer(pario_offset_kind) :: bytes
        bytes = f_bytes(array)
    end function

    ! Bytes of an entry of an array.
    pure function pario_element_bytes(array) result(bytes)
        type(*), dimension(..), intent(in) :: array
        integer(pario_offset_kind) :: bytes
        bytes = f_element_bytes(array)
    end function

    ! --- Hints ---

    ! Adds hints 'name=value;name=value' to an open file; with a team, all members the same.
    subroutine pario_set_hints(file, hints, ierr, team)
        type(pario_file), intent(in) :: file
        character(*), intent(in) :: hints
        integer, intent(out), optional :: ierr
        type(pario_team), intent(in), optional :: team
        type(c_ptr) :: members
        members = c_null_ptr
        if (present(team)) members = team%handle
        call finish(f_set_hints(file%handle, members, zeroed(hints)), ierr)
    end subroutine

    ! Keeps a hint with a file or directory.
    subroutine pario_keep_hint(client, path, name, value, ierr)
        type(pario_client), intent(in) :: client
        character(*), intent(in) :: path, name, value
        integer, intent(out), optional :: ierr
        call finish(f_keep_hint(client%handle, zeroed(path), zeroed(name), zeroed(value)), ierr)
    end subroutine

    ! Says what is going to be read, in bytes of the view.
    subroutine pario_will_read(file, offset, bytes, ierr)
        type(pario_file), intent(in) :: file
        integer(pario_offset_kind), intent(in) :: offset, bytes
        integer, intent(out), optional :: ierr
        call finish(c_will_read(file%handle, offset, bytes), ierr)
    end subroutine

    ! What became of the hints of an open file, as JSON.
    function pario_hint_report(file) result(json)
        type(pario_file), intent(in) :: file
        character(:), allocatable :: json
        type(c_ptr) :: found
        found = c_null_ptr
        call finish(c_hint_report(file%handle, found))
        json = taken(found)
    end function

    ! Moves a file into another layout, and waits until that is done.
    subroutine pario_relayout(client, path, layout, ierr)
        type(pario_client), intent(in) :: client
        character(*), intent(in) :: path, layout
        integer, intent(out), optional :: ierr
        call finish(f_relayout(client%handle, zeroed(path), zeroed(layout)), ierr)
    end subroutine

    ! --- Layouts and views ---

    subroutine set_view_text(file, text, ierr, displacement, team)
        type(pario_file), intent(in) :: file
        character(*), intent(in) :: text
        integer, intent(out), optional :: ierr
        integer(pario_offset_kind), intent(in), optional :: displacement
        type(pario_team), intent(in), optional :: team
        integer(c_int64_t) :: from
        from = 0
        if (present(displacement)) from = displacement
        if (present(team)) then
            call finish(c_set_view_all(file%handle, team%handle, zeroed(text)), ierr)
        else
            call finish(c_set_view(file%handle, from, zeroed(text)), ierr)
        end if
    end subroutine

    ! The view is what an element of a layout has of an array, such as 'f64[14,17]:fortran'.
    subroutine set_view_layout(file, layout, element, array, ierr, displacement, team)
        type(pario_file), intent(in) :: file
        type(pario_layout), intent(in) :: layout
        integer, intent(in) :: element
        character(*), intent(in) :: array
        integer, intent(out), optional :: ierr
        integer(pario_offset_kind), intent(in), optional :: displacement
        type(pario_team), intent(in), optional :: team
        integer(c_int64_t) :: from
        integer(c_int) :: code, ignored
        type(c_ptr) :: view
        from = 0
        view = c_null_ptr
        if (present(displacement)) from = displacement
        code = c_view_of_layout(layout%handle, int(element, c_int64_t), zeroed(array), from, view)
        if (present(team)) then
            ! The other members wait for this one, whatever its view is.
            ignored = c_apply_view_all(file%handle, team%handle, view)
            if (code == 0) code = ignored
        else if (code == 0) then
            code = c_apply_view(file%handle, view)
        end if
        call finish(code, ierr)
        if (c_associated(view)) ignored = c_view_free(view)
    end subroutine

    ! Reads a layout in the layout language.
    subroutine pario_layout_parse(layout, text, ierr)
        type(pario_layout), intent(out) :: layout
        character(*), intent(in) :: text
        integer, intent(out), optional :: ierr
        call finish(c_layout_parse(zeroed(text), layout%handle), ierr)
    end subroutine

    ! The layout of an array by HPF directives, '!HPF$ DISTRIBUTE A(CYCLIC(3),BLOCK) ONTO PROCS(3,4)'; lines are ended by new_line('a').
    subroutine pario_layout_directives(layout, text, array, extents, ierr, processes)
        type(pario_layout), intent(out) :: layout
        character(*), intent(in) :: text, array
        integer(pario_offset_kind), intent(in) :: extents(:)
        integer, intent(out), optional :: ierr
        integer, intent(in), optional :: processes
        integer(c_int64_t) :: all
        all = 0
        if (present(processes)) all = processes
        call finish(c_layout_directives(zeroed(text), zeroed(array), size(extents, kind=c_size_t), extents, all, layout%handle), &
            ierr)
    end subroutine

    ! The layout of an array by the run-time descriptor of an HPF compiler, and the array.
    subroutine pario_layout_run_time(layout, descriptor, array, ierr)
        type(pario_layout), intent(out) :: layout
        integer, intent(in) :: descriptor(:)
        character(:), allocatable, intent(out) :: array
        integer, intent(out), optional :: ierr
        type(c_ptr) :: found
        found = c_null_ptr
        call finish(c_layout_run_time(descriptor, size(descriptor, kind=c_size_t), layout%handle, found), ierr)
        array = taken(found)
    end subroutine

    ! A layout in the layout language.
    function pario_layout_text(layout) result(text)
        type(pario_layout), intent(in) :: layout
        character(:), allocatable :: text
        type(c_ptr) :: found
        found = c_null_ptr
        call finish(c_layout_text(layout%handle, found))
        text = taken(found)
    end function

    ! Elements of a layout on an array.
    subroutine pario_layout_elements(layout, array, elements, ierr)
        type(pario_layout), intent(in) :: layout
        character(*), intent(in) :: array
        integer, intent(out) :: elements
        integer, intent(out), optional :: ierr
        integer(c_int64_t) :: count
        count = 0
        call finish(c_layout_elements(layout%handle, zeroed(array), count), ierr)
        elements = int(count)
    end subroutine

    ! Extents of what an element of a layout has of an array.
    subroutine pario_layout_extents(layout, element, array, extents, ierr)
        type(pario_layout), intent(in) :: layout
        integer, intent(in) :: element
        character(*), intent(in) :: array
        integer(pario_offset_kind), intent(out) :: extents(:)
        integer, intent(out), optional :: ierr
        extents = 0
        call finish(c_layout_extents(layout%handle, int(element, c_int64_t), zeroed(array), size(extents, kind=c_size_t), &
            extents), ierr)
    end subroutine

    ! Ends a layout.
    subroutine pario_layout_free(layout, ierr)
        type(pario_layout), intent(inout) :: layout
        integer, intent(out), optional :: ierr
        call finish(c_layout_free(layout%handle), ierr)
        layout%handle = c_null_ptr
    end subroutine

    ! --- Reading and writing; moved is less than the array only at the end of the file ---

    ! Hands out a count.
    subroutine tell_moved(bytes, moved)
        integer(c_int64_t), intent(in) :: bytes
        integer(pario_offset_kind), intent(out), optional :: moved
        if (present(moved)) moved = bytes
    end subroutine

    ! Reads at the pointer of the file, and moves it.
    subroutine pario_read(file, array, ierr, moved)
        type(pario_file), intent(in) :: file
        type(*), dimension(..), intent(inout) :: array
        integer, intent(out), optional :: ierr
        integer(pario_offset_kind), intent(out), optional :: moved
        integer(c_int64_t) :: bytes
        type(c_ptr) :: none
        call finish(f_access(at_pointer, file%handle, c_null_ptr, 0_c_int64_t, array, bytes, none), ierr)
        call tell_moved(bytes, moved)
    end subroutine

    ! Writes at the pointer of the file, and moves it.
    subroutine pario_write(file, array, ierr, moved)
        type(pario_file), intent(in) :: file
        type(*), dimension(..), intent(in) :: array
        integer, intent(out), optional :: ierr
        integer(pario_offset_kind), intent(out), optional :: moved
        integer(c_int64_t) :: bytes
        type(c_ptr) :: none
        call finish(f_access(at_pointer + writes, file%handle, c_null_ptr, 0_c_int64_t, array, bytes, none), ierr)
        call tell_moved(bytes, moved)
    end subroutine

    ! Reads at an offset.
    subroutine pario_read_at(file, offset, array, ierr, moved)
        type(pario_file), intent(in) :: file
        integer(pario_offset_kind), intent(in) :: offset
        type(*), dimension(..), intent(inout) :: array
        integer, intent(out), optional :: ierr
        integer(pario_offset_kind), intent(out), optional :: moved
        integer(c_int64_t) :: bytes
        type(c_ptr) :: none
        call finish(f_access(0_c_int, file%handle, c_null_ptr, offset, array, bytes, none), ierr)
        call tell_moved(bytes, moved)
    end subroutine

    ! Writes at an offset.
    subroutine pario_write_at(file, offset, array, ierr, moved)
        type(pario_file), intent(in) :: file
        integer(pario_offset_kind), intent(in) :: offset
        type(*), dimension(..), intent(in) :: array
        integer, intent(out), optional :: ierr
        integer(pario_offset_kind), intent(out), optional :: moved
        integer(c_int64_t) :: bytes
        type(c_ptr) :: none
        call finish(f_access(writes, file%handle, c_null_ptr, offset, array, bytes, none), ierr)
        call tell_moved(bytes, moved)
    end subroutine

    ! Reads at the shared pointer, and moves it.
    subroutine pario_read_shared(file, array, ierr, moved)
        type(pario_file), intent(in) :: file
        type(*), dimension(..), intent(inout) :: array
        integer, intent(out), optional :: ierr
        integer(pario_offset_kind), intent(out), optional :: moved
        integer(c_int64_t) :: bytes
        type(c_ptr) :: none
        call finish(f_access(at_shared_pointer, file%handle, c_null_ptr, 0_c_int64_t, array, bytes, none), ierr)
        call tell_moved(bytes, moved)
    end subroutine

    ! Writes at the shared pointer, and moves it.
    subroutine pario_write_shared(file, array, ierr, moved)
        type(pario_file), intent(in) :: file
        type(*), dimension(..), intent(in) :: array
        integer, intent(out), optional :: ierr
        integer(pario_offset_kind), intent(out), optional :: moved
        integer(c_int64_t) :: bytes
        type(c_ptr) :: none
        call finish(f_access(at_shared_pointer + writes, file%handle, c_null_ptr, 0_c_int64_t, array, bytes, none), ierr)
        call tell_moved(bytes, moved)
    end subroutine

    ! Writes behind the end of the file, wherever that is by then.
    subroutine pario_append(file, array, ierr, offset)
        type(pario_file), intent(in) :: file
        type(*), dimension(..), intent(in) :: array
        integer, intent(out), optional :: ierr
        integer(pario_offset_kind), intent(out), optional :: offset
        integer(c_int64_t) :: place
        type(c_ptr) :: none
        call finish(f_access(at_end + writes, file%handle, c_null_ptr, 0_c_int64_t, array, place, none), ierr)
        call tell_moved(place, offset)
    end subroutine

    ! Moves the pointer of the file, in bytes of the view.
    subroutine pario_seek(file, offset, ierr, whence, position)
        type(pario_file), intent(in) :: file
        integer(pario_offset_kind), intent(in) :: offset
        integer, intent(out), optional :: ierr
        integer, intent(in), optional :: whence
        integer(pario_offset_kind), intent(out), optional :: position
        integer(c_int) :: from
        integer(c_int64_t) :: at
        from = pario_from_start
        at = 0
        if (present(whence)) from = whence
        call finish(c_seek(file%handle, offset, from, at), ierr)
        if (present(position)) position = at
    end subroutine

    ! Moves the shared pointer, in bytes of the view.
    subroutine pario_seek_shared(file, offset, ierr, whence, position)
        type(pario_file), intent(in) :: file
        integer(pario_offset_kind), intent(in) :: offset
        integer, intent(out), optional :: ierr
        integer, intent(in), optional :: whence
        integer(pario_offset_kind), intent(out), optional :: position
        integer(c_int) :: from
        integer(c_int64_t) :: at
        from = pario_from_start
        at = 0
        if (present(whence)) from = whence
        call finish(c_seek_shared(file%handle, offset, from, at), ierr)
        if (present(position)) position = at
    end subroutine

    ! Where the pointer of the file stands.
    subroutine pario_tell(file, position, ierr)
        type(pario_file), intent(in) :: file
        integer(pario_offset_kind), intent(out) :: position
        integer, intent(out), optional :: ierr
        position = 0
        call finish(c_tell(file%handle, position), ierr)
    end subroutine

    ! Reads what an element of a layout has of an array that lies whole in memory; the view of the file is the same element.
    subroutine pario_read_part(file, offset, array, layout, element, text, ierr, moved, team)
        type(pario_file), intent(in) :: file
        integer(pario_offset_kind), intent(in) :: offset
        type(*), dimension(..), intent(inout) :: array
        type(pario_layout), intent(in) :: layout
        integer, intent(in) :: element
        character(*), intent(in) :: text
        integer, intent(out), optional :: ierr
        integer(pario_offset_kind), intent(out), optional :: moved
        type(pario_team), intent(in), optional :: team
        integer(c_int64_t) :: bytes
        if (present(team)) then
            call finish(f_access_part(together, file%handle, team%handle, offset, array, layout%handle, int(element, c_int64_t), &
                zeroed(text), bytes), ierr)
        else
            call finish(f_access_part(0_c_int, file%handle, c_null_ptr, offset, array, layout%handle, int(element, c_int64_t), &
                zeroed(text), bytes), ierr)
        end if
        call tell_moved(bytes, moved)
    end subroutine

    ! Writes what an element of a layout has of an array that lies whole in memory; the view of the file is the same element.
    subroutine pario_write_part(file, offset, array, layout, element, text, ierr, moved, team)
        type(pario_file), intent(in) :: file
        integer(pario_offset_kind), intent(in) :: offset
        type(*), dimension(..), intent(in) :: array
        type(pario_layout), intent(in) :: layout
        integer, intent(in) :: element
        character(*), intent(in) :: text
        integer, intent(out), optional :: ierr
        integer(pario_offset_kind), intent(out), optional :: moved
        type(pario_team), intent(in), optional :: team
        integer(c_int64_t) :: bytes
        if (present(team)) then
            call finish(f_access_part(together + writes, file%handle, team%handle, offset, array, layout%handle, &
                int(element, c_int64_t), zeroed(text), bytes), ierr)
        else
            call finish(f_access_part(writes, file%handle, c_null_ptr, offset, array, layout%handle, int(element, c_int64_t), &
                zeroed(text), bytes), ierr)
        end if
        call tell_moved(bytes, moved)
    end subroutine

    ! --- Beside the program ---

    ! Begins to read at the pointer of the file, which is behind the array at once.
    subroutine pario_iread(file, array, request, ierr)
        type(pario_file), intent(in) :: file
        type(*), dimension(..), asynchronous, intent(inout) :: array
        type(pario_request), intent(out) :: request
        integer, intent(out), optional :: ierr
        integer(c_int64_t) :: bytes
        call finish(f_access(at_pointer + beside, file%handle, c_null_ptr, 0_c_int64_t, array, bytes, request%handle), ierr)
    end subroutine

    ! Begins to write at the pointer of the file, which is behind the array at once.
    subroutine pario_iwrite(file, array, request, ierr)
        type(pario_file), intent(in) :: file
        type(*), dimension(..), asynchronous, intent(in) :: array
        type(pario_request), intent(out) :: request
        integer, intent(out), optional :: ierr
        integer(c_int64_t) :: bytes
        call finish(f_access(at_pointer + beside + writes, file%handle, c_null_ptr, 0_c_int64_t, array, bytes, request%handle), &
            ierr)
    end subroutine

    ! Begins to read at an offset.
    subroutine pario_iread_at(file, offset, array, request, ierr)
        type(pario_file), intent(in) :: file
        integer(pario_offset_kind), intent(in) :: offset
        type(*), dimension(..), asynchronous, intent(inout) :: array
        type(pario_request), intent(out) :: request
        integer, intent(out), optional :: ierr
        integer(c_int64_t) :: bytes
        call finish(f_access(beside, file%handle, c_null_ptr, offset, array, bytes, request%handle), ierr)
    end subroutine

    ! Begins to write at an offset.
    subroutine pario_iwrite_at(file, offset, array, request, ierr)
        type(pario_file), intent(in) :: file
        integer(pario_offset_kind), intent(in) :: offset
        type(*), dimension(..), asynchronous, intent(in) :: array
        type(pario_request), intent(out) :: request
        integer, intent(out), optional :: ierr
        integer(c_int64_t) :: bytes
        call finish(f_access(beside + writes, file%handle, c_null_ptr, offset, array, bytes, request%handle), ierr)
    end subroutine

    ! Waits until a request is done.
    subroutine pario_wait(request, ierr, moved)
        type(pario_request), intent(inout) :: request
        integer, intent(out), optional :: ierr
        integer(pario_offset_kind), intent(out), optional :: moved
        integer(c_int64_t) :: bytes
        bytes = 0
        call finish(c_wait(request%handle, bytes), ierr)
        call tell_moved(bytes, moved)
    end subroutine

    ! Waits until all requests of a list are done; the first failure if there is one.
    subroutine pario_wait_all(requests, ierr)
        type(pario_request), intent(inout) :: requests(:)
        integer, intent(out), optional :: ierr
        integer(c_int64_t) :: bytes
        integer(c_int) :: code, first
        integer :: i
        first = 0
        do i = 1, size(requests)
            code = c_wait(requests(i)%handle, bytes)
            if (first == 0) first = code
        end do
        call finish(first, ierr)
    end subroutine

    ! Whether a request is done, without waiting.
    subroutine pario_test(request, is_done, ierr, moved)
        type(pario_request), intent(inout) :: request
        logical, intent(out) :: is_done
        integer, intent(out), optional :: ierr
        integer(pario_offset_kind), intent(out), optional :: moved
        integer(c_int64_t) :: bytes
        integer(c_int) :: done
        bytes = 0
        done = 0
        call finish(c_test(request%handle, done, bytes), ierr)
        is_done = done /= 0
        call tell_moved(bytes, moved)
    end subroutine

    ! Takes a request back if it has not begun; it has to be waited for in any case.
    subroutine pario_cancel(request, is_cancelled, ierr)
        type(pario_request), intent(in) :: request
        logical, intent(out) :: is_cancelled
        integer, intent(out), optional :: ierr
        integer(c_int) :: is_it
        is_it = 0
        call finish(c_cancel(request%handle, is_it), ierr)
        is_cancelled = is_it /= 0
    end subroutine

    ! --- Together: all members of a team call, each at an offset of its own view ---

    ! Reads together.
    subroutine pario_read_at_all(file, team, offset, array, ierr, moved)
        type(pario_file), intent(in) :: file
        type(pario_team), intent(in) :: team
        integer(pario_offset_kind), intent(in) :: offset
        type(*), dimension(..), intent(inout) :: array
        integer, intent(out), optional :: ierr
        integer(pario_offset_kind), intent(out), optional :: moved
        integer(c_int64_t) :: bytes
        type(c_ptr) :: none
        call finish(f_access(together, file%handle, team%handle, offset, array, bytes, none), ierr)
        call tell_moved(bytes, moved)
    end subroutine

    ! Writes together.
    subroutine pario_write_at_all(file, team, offset, array, ierr, moved)
        type(pario_file), intent(in) :: file
        type(pario_team), intent(in) :: team
        integer(pario_offset_kind), intent(in) :: offset
        type(*), dimension(..), intent(in) :: array
        integer, intent(out), optional :: ierr
        integer(pario_offset_kind), intent(out), optional :: moved
        integer(c_int64_t) :: bytes
        type(c_ptr) :: none
        call finish(f_access(together + writes, file%handle, team%handle, offset, array, bytes, none), ierr)
        call tell_moved(bytes, moved)
    end subroutine

    ! Begins to read together.
    subroutine pario_iread_at_all(file, team, offset, array, request, ierr)
        type(pario_file), intent(in) :: file
        type(pario_team), intent(in) :: team
        integer(pario_offset_kind), intent(in) :: offset
        type(*), dimension(..), asynchronous, intent(inout) :: array
        type(pario_request), intent(out) :: request
        integer, intent(out), optional :: ierr
        integer(c_int64_t) :: bytes
        call finish(f_access(together + beside, file%handle, team%handle, offset, array, bytes, request%handle), ierr)
    end subroutine

    ! Begins to write together.
    subroutine pario_iwrite_at_all(file, team, offset, array, request, ierr)
        type(pario_file), intent(in) :: file
        type(pario_team), intent(in) :: team
        integer(pario_offset_kind), intent(in) :: offset
        type(*), dimension(..), asynchronous, intent(in) :: array
        type(pario_request), intent(out) :: request
        integer, intent(out), optional :: ierr
        integer(c_int64_t) :: bytes
        call finish(f_access(together + beside + writes, file%handle, team%handle, offset, array, bytes, request%handle), ierr)
    end subroutine

    ! --- Teams: all members call the same of these in the same order ---

    ! Joins a team by name; the rank is this one, or the next that is free.
    subroutine pario_team_join(client, name, rank, size, team, ierr)
        type(pario_client), intent(in) :: client
        character(*), intent(in) :: name
        integer, intent(in) :: rank, size
        type(pario_team), intent(out) :: team
        integer, intent(out), optional :: ierr
        call finish(c_team_join(client%handle, zeroed(name), int(rank, c_int), int(size, c_int), team%handle), ierr)
    end subroutine

    ! A team of this process alone.
    subroutine pario_team_alone(team, ierr)
        type(pario_team), intent(out) :: team
        integer, intent(out), optional :: ierr
        call finish(c_team_alone(team%handle), ierr)
    end subroutine

    ! Leaves a team.
    subroutine pario_team_leave(team, ierr)
        type(pario_team), intent(inout) :: team
        integer, intent(out), optional :: ierr
        call finish(c_team_leave(team%handle), ierr)
        team%handle = c_null_ptr
    end subroutine

    ! Rank of a member, from 0 on, and members in all.
    subroutine pario_team_rank(team, rank, size, ierr)
        type(pario_team), intent(in) :: team
        integer, intent(out) :: rank, size
        integer, intent(out), optional :: ierr
        integer(c_int) :: own, all
        own = 0
        all = 0
        call finish(c_team_rank(team%handle, own, all), ierr)
        rank = own
        size = all
    end subroutine

    ! Waits until all members are here.
    subroutine pario_team_barrier(team, ierr)
        type(pario_team), intent(in) :: team
        integer, intent(out), optional :: ierr
        call finish(c_team_barrier(team%handle), ierr)
    end subroutine

    ! Gives an array of one member to all.
    subroutine pario_team_broadcast(team, root, array, ierr)
        type(pario_team), intent(in) :: team
        integer, intent(in) :: root
        type(*), dimension(..), intent(inout) :: array
        integer, intent(out), optional :: ierr
        call finish(f_broadcast(team%handle, int(root, c_int), array), ierr)
    end subroutine

    subroutine reduce_integers(team, values, how, ierr)
        type(pario_team), intent(in) :: team
        integer(c_int64_t), contiguous, intent(inout) :: values(:)
        integer, intent(in) :: how
        integer, intent(out), optional :: ierr
        call finish(c_reduce_i64(team%handle, values, size(values, kind=c_size_t), int(how, c_int)), ierr)
    end subroutine

    subroutine reduce_reals(team, values, how, ierr)
        type(pario_team), intent(in) :: team
        real(c_double), contiguous, intent(inout) :: values(:)
        integer, intent(in) :: how
        integer, intent(out), optional :: ierr
        call finish(c_reduce_f64(team%handle, values, size(values, kind=c_size_t), int(how, c_int)), ierr)
    end subroutine
end module
