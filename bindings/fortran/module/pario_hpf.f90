! HPF over Pario: the calls that the compiler of ViPIOS made (vipios_*), and those that `pario hpf` writes (pario_hpf_*).
!
! A file of an HPF program is arrays one after the other, each whole, in the order of Fortran: how an array is distributed while it is
! written or read changes no byte of it. An input or output statement moves one array, each process its part, and all processes
! execute it, as in any HPF program; a process that runs alone has all parts.
!
! Processes know their number by the environment: PARIO_HPF_RANK and PARIO_HPF_PROCESSES, or what launchers of MPI and Slurm set.
! Those of a program meet under the name in PARIO_HPF_TEAM ('hpf' without it), at the service that PARIO_URL names.
!
! Codes of iostat: iostat_end behind the end of the file, else 10000 and a code of pario.h.
module pario_hpf
    use, intrinsic :: iso_c_binding, only: c_funloc, c_funptr, c_int
    use, intrinsic :: iso_fortran_env, only: iostat_end
    use pario
    implicit none
    private

    ! What a process has of an array in memory: all of it, of which its part is moved, or its part alone.
    integer, parameter, public :: pario_hpf_global = 0, pario_hpf_local = 1

    ! For statements that say where to go after an error, and not where its number goes.
    integer, save, public :: pario_hpf_status = 0

    public :: vipios_connect, vipios_disconnect, vipios_open_binary, vipios_close_binary, vipios_read_binary_array, &
        vipios_write_binary_array
    public :: pario_hpf_open, pario_hpf_close, pario_hpf_rewind, pario_hpf_endfile, pario_hpf_flush, pario_hpf_inquire
    public :: pario_hpf_write, pario_hpf_read, pario_hpf_write_same, pario_hpf_read_same
    public :: pario_hpf_expect, pario_hpf_will_read
    public :: pario_hpf_text, pario_hpf_bounds, pario_hpf_rank, pario_hpf_processes

    ! An integer, or a list of them, as directives have it.
    interface pario_hpf_text
        module procedure text_of_number, long_text, text_of_list
    end interface

    integer, parameter :: wide = pario_offset_kind, failed = 10000, most_text = 512

    ! An open file of an HPF program.
    type :: unit_state
        integer :: number = 0
        logical :: is_open = .false.
        type(pario_file) :: file
        character(:), allocatable :: path
        character(:), allocatable :: action
        integer(wide) :: position = 0   ! in bytes, of the next array
        integer(wide) :: record = 0     ! bytes of a record, for direct access
        logical :: is_stream = .false.  ! what is written ends nothing
        logical :: is_scratch = .false.
    end type

    type(unit_state), allocatable, save :: units(:)
    type(pario_client), save :: client
    type(pario_team), save :: team
    logical, save :: is_connected = .false., is_elsewhere = .false.
    integer, save :: rank = 0, processes = 1, next_unit = -1000, scratch_count = 0

    ! Whether the end of the program will be told to the others.
    logical, save :: is_end_told = .false.

    interface
        integer(c_int) function c_atexit(what) bind(c, name='atexit')
            import :: c_funptr, c_int
            type(c_funptr), value :: what
        end function
    end interface

    ! What the next file that is created holds, and how it is laid out.
    character(:), allocatable, save :: expected_array, expected_layout

contains

    ! --- Processes ---

    ! A number in the environment.
    subroutine number_in(name, value, is_there)
        character(*), intent(in) :: name
        integer, intent(inout) :: value
        logical, intent(out) :: is_there
        character(32) :: text
        integer :: length, code, found
        call get_environment_variable(name, text, length, code)
        is_there = code == 0 .and. length > 0
        if (.not. is_there) return
        read (text, *, iostat=code) found
        is_there = code == 0
        if (is_there) value = found
    end subroutine

    ! Which of how many processes this is.
    subroutine count_processes()
        character(24), parameter :: names(2, 4) = reshape([character(24) :: 'PARIO_HPF_RANK', 'PARIO_HPF_PROCESSES', &
            'OMPI_COMM_WORLD_RANK', 'OMPI_COMM_WORLD_SIZE', 'PMI_RANK', 'PMI_SIZE', 'SLURM_PROCID', 'SLURM_NTASKS'], [2, 4])
        logical :: has_rank, has_count
        integer :: i
        do i = 1, size(names, 2)
            call number_in(trim(names(1, i)), rank, has_rank)
            call number_in(trim(names(2, i)), processes, has_count)
            if (has_rank .and. has_count) return
            rank = 0
            processes = 1
        end do
    end subroutine

    ! Connects once, and meets the other processes.
    subroutine be_connected(ierr, url)
        integer, intent(out) :: ierr
        character(*), intent(in), optional :: url
        character(most_text) :: name
        integer :: code
        ierr = 0
        if (is_connected) return
        call count_processes()
        call pario_connect(client, url, ierr)
        if (ierr /= 0) return
        if (processes > 1) then
            call get_environment_variable('PARIO_HPF_TEAM', name, status=code)
            if (code /= 0) name = 'hpf'
            call pario_team_join(client, trim(name), rank, processes, team, ierr)
        else
            call pario_team_alone(team, ierr)
        end if
        if (ierr /= 0) then
            call pario_disconnect(client, code)
            return
        end if
        is_connected = .true.
        if (.not. allocated(units)) allocate (units(0))
        if (.not. is_end_told) is_end_told = c_atexit(c_funloc(end_of_program)) == 0
    end subroutine

    ! A program that ends leaves its team, as one that says so does: a process that just goes counts as dead, and breaks what others
    ! still wait for, also where it has done its part. Units that are open are closed, as Fortran does.
    subroutine end_of_program() bind(c)
        integer :: code
        if (is_connected) code = vipios_disconnect(1)
    end subroutine

    ! The number of this process, from 0 on.
    integer function pario_hpf_rank()
        if (.not. is_connected) call count_processes()
        pario_hpf_rank = rank
    end function

    ! How many processes there are.
    integer function pario_hpf_processes()
        if (.not. is_connected) call count_processes()
        pario_hpf_processes = processes
    end function

    ! Waits for all processes. What failed in one has failed in all: they go on alike.
    subroutine meet(ierr)
        integer, intent(inout) :: ierr
        integer(wide) :: codes(2)
        integer :: code
        is_elsewhere = .false.
        if (processes == 1) return
        codes = [ierr, -ierr]
        call pario_team_reduce(team, codes, pario_max, code)
        if (ierr /= 0) return
        ierr = code
        if (code /= 0) return
        if (codes(2) > 0) ierr = -int(codes(2))
        if (codes(1) > 0) ierr = int(codes(1))
        is_elsewhere = ierr /= 0
    end subroutine

    ! Why a statement failed, behind a meeting.
    function reason(code) result(text)
        integer, intent(in) :: code
        character(:), allocatable :: text
        if (code == 0) then
            text = ''
        else if (is_elsewhere .and. code > 0) then
            text = 'in another process: ' // pario_strerror(code)
        else
            text = pario_last_error()
        end if
        is_elsewhere = .false.
    end function

    ! --- Texts ---

    function text_of_number(value) result(text)
        integer, intent(in) :: value
        character(:), allocatable :: text
        character(16) :: digits
        write (digits, '(i0)') value
        text = trim(digits)
    end function

    function text_of_list(values) result(text)
        integer, intent(in) :: values(:)
        character(:), allocatable :: text
        integer :: i
        text = '(/'
        do i = 1, size(values)
            if (i > 1) text = text // ','
            text = text // text_of_number(values(i))
        end do
        text = text // '/)'
    end function

    ! Bounds of an array, as directives have them.
    function pario_hpf_bounds(lower, upper) result(text)
        integer, intent(in) :: lower(:), upper(:)
        character(:), allocatable :: text
        integer :: i
        text = ''
        do i = 1, size(lower)
            if (i > 1) text = text // ','
            text = text // text_of_number(lower(i)) // ':' // text_of_number(upper(i))
        end do
    end function

    ! Directives are divided by ';' where a program writes them: lines make better errors.
    function lines_of(text) result(lines)
        character(*), intent(in) :: text
        character(len(text)) :: lines
        integer :: i
        lines = text
        do i = 1, len(text)
            if (text(i:i) == ';') lines(i:i) = new_line('a')
        end do
    end function

    ! A word of a statement, in capitals.
    function capitals(text) result(word)
        character(*), intent(in) :: text
        character(:), allocatable :: word
        integer :: i
        word = trim(adjustl(text))
        do i = 1, len(word)
            if (word(i:i) >= 'a' .and. word(i:i) <= 'z') word(i:i) = achar(iachar(word(i:i)) - 32)
        end do
    end function

    ! Says how a statement went, or ends the program.
    subroutine finish(code, what, iostat, iomsg)
        integer, intent(in) :: code
        character(*), intent(in) :: what
        integer, intent(out), optional :: iostat
        character(*), intent(inout), optional :: iomsg
        character(:), allocatable :: text
        if (code == 0) then
            if (present(iostat)) iostat = 0
            return
        end if
        if (code == iostat_end) then
            text = 'end of file'
        else
            text = what
        end if
        if (present(iomsg)) iomsg = text
        if (present(iostat)) then
            iostat = code
            if (code > 0) iostat = failed + code
        else
            error stop text
        end if
    end subroutine

    ! --- Units ---

    ! Where a unit is; 0 if it is none of ours.
    integer function place_of(unit)
        integer, intent(in) :: unit
        integer :: i
        place_of = 0
        if (.not. allocated(units)) return
        do i = 1, size(units)
            if (units(i)%is_open .and. units(i)%number == unit) place_of = i
        end do
    end function

    ! A free place.
    integer function free_place()
        integer :: i
        type(unit_state), allocatable :: more(:)
        do i = 1, size(units)
            if (.not. units(i)%is_open) then
                free_place = i
                return
            end if
        end do
        allocate (more(2*size(units) + 4))
        more(1:size(units)) = units
        free_place = size(units) + 1
        call move_alloc(more, units)
    end function

    ! A name of Fortran as a path.
    function path_of(name) result(path)
        character(*), intent(in) :: name
        character(:), allocatable :: path
        path = trim(adjustl(name))
        if (len(path) == 0) return
        if (path(1:1) /= '/') path = '/' // path
    end function

    ! Opens a path as Fortran has it.
    subroutine open_path(path, status, action, is_scratch, hints, file, ierr, why)
        character(*), intent(in) :: path, status, action
        logical, intent(in) :: is_scratch
        character(*), intent(in), optional :: hints
        type(pario_file), intent(out) :: file
        integer, intent(out) :: ierr
        character(:), allocatable, intent(inout) :: why
        integer :: flags
        flags = pario_readwrite
        if (action == 'READ') flags = pario_readonly
        if (action == 'WRITE') flags = pario_writeonly
        select case (status)
        case ('OLD')
        case ('NEW')
            flags = flags + pario_create_new + pario_exclusive
        case ('REPLACE', 'SCRATCH')
            flags = ior(flags, pario_writeonly) + pario_create_new + pario_truncating
        case ('UNKNOWN')
            ! Created by those who may write it.
            if (iand(flags, pario_writeonly) /= 0) flags = flags + pario_create_new
        case default
            why = "STATUS='" // status // "' is none of OLD, NEW, UNKNOWN, REPLACE and SCRATCH"
            ierr = pario_err_invalid_argument
            return
        end select
        if (iand(flags, pario_create_new) /= 0 .and. allocated(expected_array)) then
            call pario_open(client, path, file, ierr, flags=flags, array=expected_array, layout=expected_layout, hints=hints, &
                team=team, clients=processes)
            deallocate (expected_array, expected_layout)
        else
            call pario_open(client, path, file, ierr, flags=flags, hints=hints, team=team, clients=processes)
        end if
        ! No process writes before all have opened: each cuts what is replaced.
        if (iand(flags, pario_truncating) /= 0) call meet(ierr)
        if (is_scratch .and. ierr == 0) then
            ! Its bytes go with the last that closes it, however the program ends.
            if (rank == 0) call pario_unlink(client, path, ierr)
            call meet(ierr)
        end if
        why = reason(ierr)
    end subroutine

    ! OPEN.
    subroutine pario_hpf_open(unit, newunit, file, status, action, access, form, position, recl, hints, iostat, iomsg)
        integer, intent(in), optional :: unit, recl
        integer, intent(inout), optional :: newunit
        character(*), intent(in), optional :: file, status, action, access, form, position, hints
        integer, intent(out), optional :: iostat
        character(*), intent(inout), optional :: iomsg
        type(unit_state) :: new
        character(:), allocatable :: how, way, word, why
        integer :: code, at
        integer(wide) :: bytes
        why = ''
        call be_connected(code)
        if (code /= 0) then
            call finish(code, pario_last_error(), iostat, iomsg)
            return
        end if
        how = 'UNKNOWN'
        way = 'READWRITE'
        if (present(status)) how = capitals(status)
        if (present(action)) way = capitals(action)
        if (present(form)) then
            word = capitals(form)
            if (word /= 'UNFORMATTED') why = "FORM='" // word // "' is not offered for distributed arrays; give 'UNFORMATTED'"
        end if
        if (index(' READ WRITE READWRITE ', ' ' // way // ' ') == 0) then
            why = "ACTION='" // way // "' is none of READ, WRITE and READWRITE"
        end if
        if (present(access)) then
            word = capitals(access)
            if (word == 'DIRECT') then
                if (present(recl)) then
                    new%record = recl
                else
                    why = "ACCESS='DIRECT' needs RECL"
                end if
            else if (word == 'STREAM') then
                new%is_stream = .true.
            else if (word /= 'SEQUENTIAL') then
                why = "ACCESS='" // word // "' is none of SEQUENTIAL, STREAM and DIRECT"
            end if
        end if
        new%is_scratch = how == 'SCRATCH'
        if (new%is_scratch) then
            scratch_count = scratch_count + 1
            new%path = scratch_path()
        else if (present(file)) then
            new%path = path_of(file)
        else
            new%path = '/fort.' // text_of_number(unit)
        end if
        new%action = way
        if (present(newunit)) then
            next_unit = next_unit - 1
            newunit = next_unit
            new%number = next_unit
        else if (present(unit)) then
            new%number = unit
            at = place_of(unit)
            if (at > 0 .and. why == '') then
                ! The unit is connected to another file, or to the same again.
                call pario_close(units(at)%file, code)
                units(at)%is_open = .false.
            end if
        end if
        code = 0
        if (why /= '') then
            code = pario_err_invalid_argument
        else
            call open_path(new%path, how, way, new%is_scratch, hints, new%file, code, why)
        end if
        if (code == 0) then
            new%is_open = .true.
            if (present(position)) then
                if (capitals(position) == 'APPEND') then
                    call pario_size(new%file, bytes, code)
                    new%position = bytes
                    call meet(code)
                    why = reason(code)
                end if
            end if
            at = free_place()
            units(at) = new
        end if
        call finish(code, why, iostat, iomsg)
    end subroutine

    ! The same name in all processes of this program, and in no other.
    function scratch_path() result(path)
        character(:), allocatable :: path
        integer :: stamp(1), code
        call system_clock(stamp(1))
        if (processes > 1) call pario_team_broadcast(team, 0, stamp, code)
        path = '/.hpf-scratch-' // text_of_number(abs(stamp(1))) // '-' // text_of_number(scratch_count)
    end function

    ! CLOSE.
    subroutine pario_hpf_close(unit, status, iostat, iomsg)
        integer, intent(in) :: unit
        character(*), intent(in), optional :: status
        integer, intent(out), optional :: iostat
        character(*), intent(inout), optional :: iomsg
        character(:), allocatable :: why
        integer :: at, code
        logical :: is_deleted
        at = place_of(unit)
        code = 0
        why = ''
        if (at > 0) then
            is_deleted = .false.
            if (present(status)) is_deleted = capitals(status) == 'DELETE'
            call pario_close(units(at)%file, code)
            units(at)%is_open = .false.
            call meet(code)
            why = reason(code)
            if (is_deleted .and. code == 0) then
                if (.not. units(at)%is_scratch .and. rank == 0) call pario_unlink(client, units(at)%path, code)
                call meet(code)
                why = reason(code)
            end if
        end if
        ! A unit that is not connected is closed already, as in Fortran.
        call finish(code, why, iostat, iomsg)
    end subroutine

    ! REWIND.
    subroutine pario_hpf_rewind(unit, iostat, iomsg)
        integer, intent(in) :: unit
        integer, intent(out), optional :: iostat
        character(*), intent(inout), optional :: iomsg
        integer :: at
        at = place_of(unit)
        if (at > 0) units(at)%position = 0
        call finish(merge(0, pario_err_bad_handle, at > 0), 'unit ' // text_of_number(unit) // ' is not open', iostat, iomsg)
    end subroutine

    ! ENDFILE: the file ends here.
    subroutine pario_hpf_endfile(unit, iostat, iomsg)
        integer, intent(in) :: unit
        integer, intent(out), optional :: iostat
        character(*), intent(inout), optional :: iomsg
        integer :: at, code
        at = place_of(unit)
        if (at == 0) then
            call finish(pario_err_bad_handle, 'unit ' // text_of_number(unit) // ' is not open', iostat, iomsg)
            return
        end if
        code = 0
        call end_here(units(at), code)
        call meet(code)
        call finish(code, reason(code), iostat, iomsg)
    end subroutine

    ! Cuts what is behind the position; one process does it.
    subroutine end_here(state, ierr)
        type(unit_state), intent(in) :: state
        integer, intent(inout) :: ierr
        integer(wide) :: bytes
        if (rank /= 0 .or. ierr /= 0) return
        call pario_size(state%file, bytes, ierr)
        if (ierr == 0 .and. bytes > state%position) call pario_truncate(state%file, state%position, ierr)
    end subroutine

    ! FLUSH: what was written is on the disks.
    subroutine pario_hpf_flush(unit, iostat, iomsg)
        integer, intent(in) :: unit
        integer, intent(out), optional :: iostat
        character(*), intent(inout), optional :: iomsg
        integer :: at, code
        at = place_of(unit)
        code = 0
        if (at > 0) then
            if (units(at)%action /= 'READ') call pario_sync(units(at)%file, code)
        end if
        call meet(code)
        call finish(code, reason(code), iostat, iomsg)
    end subroutine

    ! INQUIRE, by unit or by file.
    subroutine pario_hpf_inquire(unit, file, exist, opened, number, named, name, access, sequential, direct, stream, form, &
            formatted, unformatted, recl, nextrec, position, pos, action, read, write, readwrite, size, iostat, iomsg)
        integer, intent(in), optional :: unit
        character(*), intent(in), optional :: file
        logical, intent(out), optional :: exist, opened, named
        integer, intent(out), optional :: number, recl, nextrec, pos, size, iostat
        character(*), intent(out), optional :: name, access, sequential, direct, stream, form, formatted, unformatted, position, &
            action, read, write, readwrite
        character(*), intent(inout), optional :: iomsg
        integer :: at, code, i
        integer(wide) :: bytes
        logical :: is_there
        call be_connected(code)
        at = 0
        is_there = .false.
        if (code == 0 .and. present(unit)) then
            at = place_of(unit)
            is_there = unit >= 0 .or. at > 0
        else if (code == 0 .and. present(file)) then
            do i = 1, ubound(units, 1)
                if (.not. units(i)%is_open) cycle
                if (units(i)%path == path_of(file)) at = i
            end do
            call pario_exists(client, path_of(file), is_there, code)
        end if
        if (present(exist)) exist = is_there
        if (present(opened)) opened = at > 0
        if (present(number)) number = -1
        if (present(named)) named = .false.
        if (present(name)) name = ''
        if (present(access)) access = 'UNDEFINED'
        if (present(form)) form = 'UNDEFINED'
        if (present(action)) action = 'UNDEFINED'
        if (present(size)) size = -1
        if (present(recl)) recl = -1
        if (present(nextrec)) nextrec = 0
        if (present(pos)) pos = 0
        if (present(position)) position = 'UNDEFINED'
        ! What such a file can be opened for.
        if (present(sequential)) sequential = merge('YES    ', 'UNKNOWN', is_there)
        if (present(direct)) direct = merge('YES    ', 'UNKNOWN', is_there)
        if (present(stream)) stream = merge('YES    ', 'UNKNOWN', is_there)
        if (present(formatted)) formatted = merge('NO     ', 'UNKNOWN', is_there)
        if (present(unformatted)) unformatted = merge('YES    ', 'UNKNOWN', is_there)
        if (present(read)) read = 'UNKNOWN'
        if (present(write)) write = 'UNKNOWN'
        if (present(readwrite)) readwrite = 'UNKNOWN'
        if (at > 0) then
            if (present(recl) .and. units(at)%record > 0) recl = int(units(at)%record)
            if (present(nextrec) .and. units(at)%record > 0) nextrec = int(units(at)%position/units(at)%record) + 1
            if (present(pos) .and. units(at)%is_stream) pos = int(units(at)%position) + 1
            if (present(read)) read = merge('NO ', 'YES', units(at)%action == 'WRITE')
            if (present(write)) write = merge('NO ', 'YES', units(at)%action == 'READ')
            if (present(readwrite)) readwrite = merge('YES', 'NO ', units(at)%action == 'READWRITE')
            if (present(position) .and. units(at)%record == 0) then
                call pario_size(units(at)%file, bytes, code)
                position = 'ASIS'
                if (units(at)%position == bytes) position = 'APPEND'
                if (units(at)%position == 0) position = 'REWIND'
            end if
            if (present(number)) number = units(at)%number
            if (present(named)) named = .not. units(at)%is_scratch
            if (present(name) .and. .not. units(at)%is_scratch) name = units(at)%path(2:)
            if (present(access)) then
                access = merge('STREAM    ', 'SEQUENTIAL', units(at)%is_stream)
                if (units(at)%record > 0) access = 'DIRECT'
            end if
            if (present(form)) form = 'UNFORMATTED'
            if (present(action)) action = units(at)%action
            if (present(size)) then
                call pario_size(units(at)%file, bytes, code)
                size = int(bytes)
            end if
        end if
        if (code /= 0) then
            call finish(code, pario_last_error(), iostat, iomsg)
        else
            call finish(0, '', iostat, iomsg)
        end if
    end subroutine

    ! --- Arrays ---

    ! The layout of an array, and the element of this process; -1 for all of it, in a process that runs alone.
    subroutine layout_of(extents, name, directives, text, mode, layout, element, ierr, why)
        integer, intent(in) :: extents(:), mode
        character(*), intent(in) :: name, directives, text
        type(pario_layout), intent(out) :: layout
        integer, intent(out) :: element, ierr
        character(:), allocatable, intent(inout) :: why
        integer :: count
        element = -1
        call pario_layout_directives(layout, lines_of(directives), name, int(extents, wide), ierr, processes=processes)
        if (ierr == 0) call pario_layout_elements(layout, text, count, ierr)
        if (ierr /= 0) then
            why = pario_last_error()
            return
        end if
        if (count == processes) then
            element = rank
            if (processes == 1) element = -1
        else if (processes > 1 .or. mode == pario_hpf_local) then
            why = name // ' is distributed over ' // text_of_number(count) // ' processors, and there are ' // &
                text_of_number(processes) // ' processes'
            ierr = pario_err_invalid_argument
        end if
    end subroutine

    ! Moves one array at the position of a unit.
    subroutine move(unit, array, extents, name, directives, mode, is_write, rec, pos, iostat, iomsg)
        integer, intent(in) :: unit, extents(:), mode
        type(*), dimension(..) :: array
        character(*), intent(in) :: name, directives
        logical, intent(in) :: is_write
        integer, intent(in), optional :: rec, pos
        integer, intent(out), optional :: iostat
        character(*), intent(inout), optional :: iomsg
        character(:), allocatable :: text, why
        type(pario_layout) :: layout
        integer :: at, element, code
        integer(wide) :: bytes, entries
        why = ''
        at = place_of(unit)
        if (at == 0) then
            call finish(pario_err_bad_handle, 'unit ' // text_of_number(unit) // ' is not open', iostat, iomsg)
            return
        end if
        text = pario_array_text(array, int(extents, wide))
        call layout_of(extents, name, directives, text, mode, layout, element, code, why)
        entries = product(int(extents, wide))
        bytes = entries*pario_element_bytes(array)
        if (code == 0) then
            call go_to(units(at), bytes, rec, pos, code, why)
            if (code == 0) call move_part(units(at), array, bytes, text, layout, element, mode, is_write, code, why)
            call pario_layout_free(layout, element)
        end if
        call finish(code, why, iostat, iomsg)
    end subroutine

    ! Sets the position of a unit for so many bytes: to a record, or to a byte.
    subroutine go_to(state, bytes, rec, pos, ierr, why)
        type(unit_state), intent(inout) :: state
        integer(wide), intent(in) :: bytes
        integer, intent(in), optional :: rec, pos
        integer, intent(out) :: ierr
        character(:), allocatable, intent(inout) :: why
        ierr = 0
        if (present(rec)) then
            if (state%record < bytes .or. rec < 1) then
                why = 'record ' // text_of_number(rec) // ' is none, or its RECL is less than the array'
                ierr = pario_err_invalid_argument
                return
            end if
            state%position = (rec - 1)*state%record
        end if
        if (present(pos)) then
            if (pos < 1 .or. .not. state%is_stream) then
                why = "POS=" // text_of_number(pos) // " is below 1, or the file was not opened with ACCESS='STREAM'"
                ierr = pario_err_invalid_argument
                return
            end if
            state%position = pos - 1
        end if
    end subroutine

    ! Moves a part at the position of a unit, and the position behind the array.
    subroutine move_part(state, array, bytes, text, layout, element, mode, is_write, ierr, why)
        type(unit_state), intent(inout) :: state
        type(*), dimension(..) :: array
        integer(wide), intent(in) :: bytes
        character(*), intent(in) :: text
        type(pario_layout), intent(in) :: layout
        integer, intent(in) :: element, mode
        logical, intent(in) :: is_write
        integer, intent(out) :: ierr
        character(:), allocatable, intent(inout) :: why
        integer(wide) :: moved, size, part, none(0)
        integer(wide), allocatable :: extents(:)
        integer :: code
        logical :: is_all
        ierr = 0
        if (.not. is_write) then
            call pario_size(state%file, size, ierr)
            if (ierr == 0 .and. state%position + bytes > size) ierr = iostat_end
            if (ierr == iostat_end) return  ! in all processes
        end if
        is_all = element < 0
        part = bytes
        if (.not. is_all .and. ierr == 0) then
            allocate (extents(dimensions_of(text)))
            call pario_layout_extents(layout, element, text, extents, ierr)
            if (ierr == 0) part = product(extents)*pario_element_bytes(array)
        end if
        if (ierr == 0 .and. mode == pario_hpf_local .and. pario_bytes(array) /= part) then
            why = 'the local part has ' // long_text(part) // ' bytes, and the array ' // long_text(pario_bytes(array))
            ierr = pario_err_invalid_argument
        end if
        if (ierr == 0 .and. part > 0) then
            if (is_all) then
                call pario_set_view(state%file, 'whole', ierr, displacement=state%position)
            else
                call pario_set_view(state%file, layout, element, text, ierr, displacement=state%position)
            end if
        end if
        if (ierr /= 0 .and. why == '') why = pario_last_error()
        if (ierr /= 0) then
            ! The others wait for this one.
            code = 0
            call take_part_with_nothing(code)
        else if (part == 0) then
            call take_part_with_nothing(ierr)
        else if (is_all .or. mode == pario_hpf_local) then
            if (is_write) then
                call pario_write_at_all(state%file, team, 0_wide, array, ierr, moved)
            else
                call pario_read_at_all(state%file, team, 0_wide, array, ierr, moved)
            end if
        else if (is_write) then
            call pario_write_part(state%file, 0_wide, array, layout, element, text, ierr, moved, team)
        else
            call pario_read_part(state%file, 0_wide, array, layout, element, text, ierr, moved, team)
        end if
        state%position = state%position + bytes
        ! What is written to a sequential file is the last there.
        if (is_write .and. .not. state%is_stream .and. state%record == 0) call end_here(state, ierr)
        ! What one has written the others read next.
        call meet(ierr)
        if (why == '') why = reason(ierr)
    contains
        subroutine take_part_with_nothing(code)
            integer, intent(inout) :: code
            if (is_write) then
                call pario_write_at_all(state%file, team, 0_wide, none, code)
            else
                call pario_read_at_all(state%file, team, 0_wide, none, code)
            end if
        end subroutine
    end subroutine

    ! Dimensions of an array as the layout language writes it.
    integer function dimensions_of(text)
        character(*), intent(in) :: text
        integer :: i
        dimensions_of = 1
        if (index(text, '[]') > 0) dimensions_of = 0
        do i = index(text, '['), len(text)
            if (text(i:i) == ',') dimensions_of = dimensions_of + 1
        end do
    end function

    function long_text(value) result(text)
        integer(wide), intent(in) :: value
        character(:), allocatable :: text
        character(24) :: digits
        write (digits, '(i0)') value
        text = trim(digits)
    end function

    ! WRITE of a distributed array.
    subroutine pario_hpf_write(unit, array, extents, name, directives, mode, rec, pos, iostat, iomsg)
        integer, intent(in) :: unit, extents(:), mode
        type(*), dimension(..), intent(in) :: array
        character(*), intent(in) :: name, directives
        integer, intent(in), optional :: rec, pos
        integer, intent(out), optional :: iostat
        character(*), intent(inout), optional :: iomsg
        call move(unit, array, extents, name, directives, mode, .true., rec, pos, iostat, iomsg)
    end subroutine

    ! READ of a distributed array.
    subroutine pario_hpf_read(unit, array, extents, name, directives, mode, rec, pos, iostat, iomsg)
        integer, intent(in) :: unit, extents(:), mode
        type(*), dimension(..), intent(inout) :: array
        character(*), intent(in) :: name, directives
        integer, intent(in), optional :: rec, pos
        integer, intent(out), optional :: iostat
        character(*), intent(inout), optional :: iomsg
        call move(unit, array, extents, name, directives, mode, .false., rec, pos, iostat, iomsg)
    end subroutine

    ! WRITE of what all processes have alike: one of them writes it.
    subroutine pario_hpf_write_same(unit, item, rec, pos, iostat, iomsg)
        integer, intent(in) :: unit
        type(*), dimension(..), intent(in) :: item
        integer, intent(in), optional :: rec, pos
        integer, intent(out), optional :: iostat
        character(*), intent(inout), optional :: iomsg
        character(:), allocatable :: why
        integer :: at, code
        at = place_of(unit)
        if (at == 0) then
            call finish(pario_err_bad_handle, 'unit ' // text_of_number(unit) // ' is not open', iostat, iomsg)
            return
        end if
        call go_to(units(at), pario_bytes(item), rec, pos, code, why)
        if (code /= 0) then
            call finish(code, why, iostat, iomsg)
            return
        end if
        if (rank == 0) then
            call pario_set_view(units(at)%file, 'whole', code, displacement=units(at)%position)
            if (code == 0) call pario_write_at(units(at)%file, 0_wide, item, code)
        end if
        units(at)%position = units(at)%position + pario_bytes(item)
        if (.not. units(at)%is_stream .and. units(at)%record == 0) call end_here(units(at), code)
        call meet(code)
        call finish(code, reason(code), iostat, iomsg)
    end subroutine

    ! READ of what all processes have alike.
    subroutine pario_hpf_read_same(unit, item, rec, pos, iostat, iomsg)
        integer, intent(in) :: unit
        type(*), dimension(..), intent(inout) :: item
        integer, intent(in), optional :: rec, pos
        integer, intent(out), optional :: iostat
        character(*), intent(inout), optional :: iomsg
        character(:), allocatable :: why
        integer :: at, code
        integer(wide) :: moved
        at = place_of(unit)
        if (at == 0) then
            call finish(pario_err_bad_handle, 'unit ' // text_of_number(unit) // ' is not open', iostat, iomsg)
            return
        end if
        call go_to(units(at), pario_bytes(item), rec, pos, code, why)
        if (code /= 0) then
            call finish(code, why, iostat, iomsg)
            return
        end if
        call pario_set_view(units(at)%file, 'whole', code, displacement=units(at)%position)
        if (code == 0) call pario_read_at(units(at)%file, 0_wide, item, code, moved)
        if (code == 0 .and. moved < pario_bytes(item)) code = iostat_end
        call meet(code)
        units(at)%position = units(at)%position + pario_bytes(item)
        call finish(code, reason(code), iostat, iomsg)
    end subroutine

    ! --- Hints of the compiler ---

    ! Static: the next file that is created holds such an array, and is laid out as it is distributed.
    subroutine pario_hpf_expect(array, extents, name, directives, mode)
        type(*), dimension(..), intent(in) :: array
        integer, intent(in) :: extents(:), mode
        character(*), intent(in) :: name, directives
        type(pario_layout) :: layout
        character(:), allocatable :: why
        integer :: code, element
        why = ''
        call be_connected(code)
        if (code /= 0) return
        if (allocated(expected_array)) deallocate (expected_array, expected_layout)
        expected_array = pario_array_text(array, int(extents, wide))
        call layout_of(extents, name, directives, expected_array, mode, layout, element, code, why)
        if (code == 0 .and. element >= 0) then
            expected_layout = pario_layout_text(layout)
        else
            ! A hint that does not fit is no error: the statement that needs the array will tell.
            expected_layout = ''
        end if
        if (len(expected_layout) == 0) deallocate (expected_array, expected_layout)
        if (code == 0) call pario_layout_free(layout, code)
    end subroutine

    ! Dynamic: a branch was entered in which the next array of a unit is read.
    subroutine pario_hpf_will_read(unit, array, extents, name, directives, mode)
        integer, intent(in) :: unit, extents(:), mode
        type(*), dimension(..), intent(in) :: array
        character(*), intent(in) :: name, directives
        type(pario_layout) :: layout
        character(:), allocatable :: text, why
        integer :: at, code, element
        integer(wide) :: size
        why = ''
        at = place_of(unit)
        if (at == 0) return
        text = pario_array_text(array, int(extents, wide))
        call layout_of(extents, name, directives, text, mode, layout, element, code, why)
        if (code /= 0) return
        if (element >= 0) then
            call pario_set_view(units(at)%file, layout, element, text, code, displacement=units(at)%position)
        else
            call pario_set_view(units(at)%file, 'whole', code, displacement=units(at)%position)
        end if
        call pario_size(units(at)%file, size, code)
        if (code == 0 .and. size > units(at)%position) then
            call pario_will_read(units(at)%file, 0_wide, product(int(extents, wide))*pario_element_bytes(array), code)
        end if
        call pario_layout_free(layout, code)
    end subroutine

    ! --- The calls of the HPF compiler of ViPIOS: 0 or a descriptor, -1 after a failure ---

    ! Connects to a service; its name is a URL, or empty.
    integer function vipios_connect(system_name, connection)
        character(*), intent(in) :: system_name
        integer, intent(out) :: connection
        integer :: code
        if (len_trim(system_name) > 0 .and. index(system_name, ':') > 0) then
            call be_connected(code, system_name)
        else
            call be_connected(code)
        end if
        connection = merge(1, -1, code == 0)
        vipios_connect = merge(0, -1, code == 0)
    end function

    ! Ends the connection; files that are open are closed.
    integer function vipios_disconnect(connection)
        integer, intent(in) :: connection
        integer :: code, i
        vipios_disconnect = -1
        if (connection /= 1 .or. .not. is_connected) return
        do i = 1, size(units)
            if (units(i)%is_open) call pario_close(units(i)%file, code)
            units(i)%is_open = .false.
        end do
        call pario_team_leave(team, code)
        call pario_disconnect(client, code)
        is_connected = .false.
        vipios_disconnect = merge(0, -1, code == 0)
    end function

    ! Opens a file: status 0 old, 1 new, 2 unknown, 3 replace, 4 scratch; io_stat 0 reads and writes, 1 reads, 2 writes.
    integer function vipios_open_binary(connection, filename, status, io_stat)
        integer, intent(in) :: connection, status, io_stat
        character(*), intent(in) :: filename
        character(8), parameter :: statuses(0:4) = [character(8) :: 'OLD', 'NEW', 'UNKNOWN', 'REPLACE', 'SCRATCH']
        character(9), parameter :: actions(0:2) = [character(9) :: 'READWRITE', 'READ', 'WRITE']
        integer :: unit, code
        vipios_open_binary = -1
        if (connection /= 1 .or. .not. is_connected) return
        if (status < 0 .or. status > 4 .or. io_stat < 0 .or. io_stat > 2) return
        call pario_hpf_open(newunit=unit, file=filename, status=statuses(status), action=actions(io_stat), iostat=code)
        ! Descriptors are not negative.
        if (code == 0) vipios_open_binary = -unit
    end function

    ! Closes a file.
    integer function vipios_close_binary(connection, fd)
        integer, intent(in) :: connection, fd
        integer :: code
        vipios_close_binary = -1
        if (connection /= 1 .or. place_of(-fd) == 0) return
        call pario_hpf_close(-fd, iostat=code)
        vipios_close_binary = merge(0, -1, code == 0)
    end function

    ! Reads the local part of the next array of a file.
    integer function vipios_read_binary_array(connection, fd, data, array_dist)
        integer, intent(in) :: connection, fd, array_dist(:)
        type(*), dimension(..), intent(inout) :: data
        vipios_read_binary_array = move_described(connection, fd, data, array_dist, .false.)
    end function

    ! Writes the local part of the next array of a file.
    integer function vipios_write_binary_array(connection, fd, data, array_dist)
        integer, intent(in) :: connection, fd, array_dist(:)
        type(*), dimension(..), intent(in) :: data
        vipios_write_binary_array = move_described(connection, fd, data, array_dist, .true.)
    end function

    integer function move_described(connection, fd, data, array_dist, is_write)
        integer, intent(in) :: connection, fd, array_dist(:)
        type(*), dimension(..) :: data
        logical, intent(in) :: is_write
        type(pario_layout) :: layout
        character(:), allocatable :: text, why
        integer :: at, code, count, element, grid, dimensions, i
        integer(wide) :: bytes
        move_described = -1
        why = ''
        at = place_of(-fd)
        if (connection /= 1 .or. at == 0) return
        call pario_layout_run_time(layout, array_dist, text, code)
        if (code /= 0) return
        call pario_layout_elements(layout, text, count, code)
        grid = array_dist(1)
        bytes = array_dist(grid + 3)
        dimensions = array_dist(grid + 4)
        do i = 1, dimensions
            bytes = bytes*array_dist(grid + 1 + 4*i)
        end do
        if (code == 0 .and. array_dist(grid + 3) == pario_element_bytes(data) .and. count == processes) then
            element = rank
            if (processes == 1) element = -1
            call move_part(units(at), data, bytes, text, layout, element, pario_hpf_local, is_write, ierr=code, why=why)
            if (code == 0) move_described = 0
        end if
        call pario_layout_free(layout, code)
    end function
end module
