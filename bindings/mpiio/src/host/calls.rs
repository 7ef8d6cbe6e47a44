//! Functions of the host that are used and not taken over, each as a slot and as a method.
//!
//! A method gives what the C function fills in, or the host's error code as a [`Failure`]. Functions that not
//! every MPI has are asked for by `is_there` or tried in order of their age.

use std::ffi::{CStr, CString, c_char, c_int, c_void};

use crate::abi::Family;
use crate::failure::Failure;
use crate::ffi::{Out, StatusOut, Word};

use super::Host;

macro_rules! calls {
    ($($name:ident ( $($kind:ty),* );)*) => {
        /// The slots.
        #[allow(non_snake_case)]
        #[derive(Debug)]
        pub(crate) struct Calls {
            $(pub(crate) $name: Option<unsafe extern "C" fn($($kind),*) -> c_int>,)*
        }

        impl Calls {
            /// Looks all of them up.
            pub(crate) fn load(find: &dyn Fn(&CStr) -> Option<*const c_void>) -> Calls {
                Calls {
                    $($name: {
                        let name = CString::new(concat!("PMPI_", stringify!($name))).expect("has no zero");
                        // SAFETY: the standard gives the function this type; handles are words in registers.
                        find(&name).map(|f| unsafe {
                            std::mem::transmute::<*const c_void, unsafe extern "C" fn($($kind),*) -> c_int>(f)
                        })
                    },)*
                }
            }
        }
    };
}

/// A place for a handle of any width.
type Place = *mut Word;
/// Numbers that are filled in.
type Ints = *mut c_int;
/// 64-bit numbers that are filled in.
type Longs = *mut i64;
/// Memory of any kind.
type Bytes = *mut c_void;
/// A text.
type Chars = *const c_char;

calls! {
    Initialized(Ints);
    Finalized(Ints);
    Comm_rank(Word, Ints);
    Comm_size(Word, Ints);
    Comm_dup(Word, Place);
    Comm_free(Place);
    Comm_group(Word, Place);
    Comm_test_inter(Word, Ints);
    Comm_create_keyval(Word, Word, Ints, Bytes);
    Comm_set_attr(Word, c_int, Bytes);
    Comm_get_attr(Word, c_int, Bytes, Ints);
    Group_free(Place);
    Group_union(Word, Word, Place);
    Bcast(Bytes, c_int, Word, c_int, Word);
    Allgather(Bytes, c_int, Word, Bytes, c_int, Word, Word);
    Alltoallv(Bytes, *const c_int, *const c_int, Word, Bytes, *const c_int, *const c_int, Word, Word);
    Type_size(Word, Ints);
    Type_size_x(Word, Longs);
    Type_size_c(Word, Longs);
    Type_get_extent(Word, Longs, Longs);
    Type_get_envelope(Word, Ints, Ints, Ints, Ints);
    Type_get_contents(Word, c_int, c_int, c_int, Ints, Longs, Bytes);
    Type_get_envelope_c(Word, Longs, Longs, Longs, Longs, Ints);
    Type_get_contents_c(Word, i64, i64, i64, i64, Ints, Longs, Longs, Bytes);
    Type_dup(Word, Place);
    Type_free(Place);
    Type_create_keyval(Word, Word, Ints, Bytes);
    Type_get_attr(Word, c_int, Bytes, Ints);
    Type_set_attr(Word, c_int, Bytes);
    Info_create(Place);
    Info_set(Word, Chars, Chars);
    Info_get(Word, Chars, c_int, *mut c_char, Ints);
    Info_get_nkeys(Word, Ints);
    Info_get_nthkey(Word, c_int, *mut c_char);
    Info_get_valuelen(Word, Chars, Ints, Ints);
    Status_set_elements(StatusOut, Word, c_int);
    Status_set_elements_x(StatusOut, Word, i64);
    Status_set_elements_c(StatusOut, Word, i64);
    Status_set_cancelled(StatusOut, c_int);
    Grequest_start(Word, Word, Word, Bytes, Place);
    Grequest_complete(Word);
    File_call_errhandler(Word, c_int);
    File_get_errhandler(Word, Place);
    Errhandler_free(Place);
}

/// What a function of the host came to.
pub(crate) type Answer<T = ()> = Result<T, Failure>;

/// The result of a call: nothing if the host lacks the function.
fn checked(name: &'static str, code: Option<c_int>) -> Answer {
    match code {
        Some(0) => Ok(()),
        Some(code) => Err(Failure::host(name, code)),
        None => Err(Failure::host_lacks(name)),
    }
}

/// Calls a slot: `call!(self, Comm_rank(comm, out))`.
macro_rules! call {
    ($host:expr, $name:ident ( $($argument:expr),* )) => {
        // SAFETY: the slot has the type that the standard gives the function; pointers are to live locals or come
        // from the program, which vouches for them.
        checked(stringify!($name), $host.calls.$name.map(|f| unsafe { f($($argument),*) }))
    };
}

impl Host {
    /// Whether MPI can be called: initialised and not finalised.
    pub(crate) fn is_running(&self) -> bool {
        let (mut begun, mut ended) = (0, 0);
        call!(self, Initialized(&raw mut begun)).is_ok()
            && call!(self, Finalized(&raw mut ended)).is_ok()
            && begun != 0
            && ended == 0
    }

    /// A handle that the host stored into a word that was 0 before.
    fn stored(&self, word: Word) -> Word {
        match self.abi.is_narrow() {
            true => Word(word.0 & 0xffff_ffff),
            false => word,
        }
    }

    /// Rank of this process.
    pub(crate) fn comm_rank(&self, comm: Word) -> Answer<usize> {
        let mut rank = 0;
        call!(self, Comm_rank(comm, &raw mut rank))?;
        Ok(rank as usize)
    }

    /// Processes in all.
    pub(crate) fn comm_size(&self, comm: Word) -> Answer<usize> {
        let mut size = 0;
        call!(self, Comm_size(comm, &raw mut size))?;
        Ok(size as usize)
    }

    /// A private communicator with the same processes.
    pub(crate) fn comm_dup(&self, comm: Word) -> Answer<Word> {
        let mut new = Word(0);
        call!(self, Comm_dup(comm, &raw mut new))?;
        Ok(self.stored(new))
    }

    /// Gives a communicator back.
    pub(crate) fn comm_free(&self, comm: Word) -> Answer {
        let mut comm = comm;
        call!(self, Comm_free(&raw mut comm))
    }

    /// The processes of a communicator.
    pub(crate) fn comm_group(&self, comm: Word) -> Answer<Word> {
        let mut group = Word(0);
        call!(self, Comm_group(comm, &raw mut group))?;
        Ok(self.stored(group))
    }

    /// Whether it connects two groups.
    pub(crate) fn is_inter(&self, comm: Word) -> Answer<bool> {
        let mut flag = 0;
        call!(self, Comm_test_inter(comm, &raw mut flag))?;
        Ok(flag != 0)
    }

    /// Another handle of the same group.
    pub(crate) fn group_copy(&self, group: Word) -> Answer<Word> {
        let mut new = Word(0);
        call!(self, Group_union(group, group, &raw mut new))?;
        Ok(self.stored(new))
    }

    /// Gives a group back.
    pub(crate) fn group_free(&self, group: Word) -> Answer {
        let mut group = group;
        call!(self, Group_free(&raw mut group))
    }

    /// Bytes of rank 0 for all; all give the same length.
    pub(crate) fn broadcast(&self, bytes: &mut [u8], comm: Word) -> Answer {
        let count = bytes.len() as c_int;
        call!(
            self,
            Bcast(bytes.as_mut_ptr().cast(), count, self.abi.byte, 0, comm)
        )
    }

    /// Bytes of all by rank; all give the same length.
    pub(crate) fn allgather(&self, bytes: &[u8], comm: Word) -> Answer<Vec<Vec<u8>>> {
        let len = bytes.len();
        let mut all = vec![0u8; len * self.comm_size(comm)?];
        let (mine, count) = (bytes.as_ptr().cast_mut().cast(), len as c_int);
        let byte = self.abi.byte;
        call!(
            self,
            Allgather(
                mine,
                count,
                byte,
                all.as_mut_ptr().cast(),
                count,
                byte,
                comm
            )
        )?;
        Ok(all.chunks(len.max(1)).map(<[u8]>::to_vec).collect())
    }

    /// Each process its part, and what each has for this one; all processes of the communicator call it.
    pub(crate) fn exchange(&self, parts: &[&[u8]], comm: Word) -> Answer<Vec<Vec<u8>>> {
        let mut lens = Vec::new();
        for part in parts {
            lens.extend((part.len() as u64).to_ne_bytes());
        }
        let all = self.allgather(&lens, comm)?;
        let mine = self.comm_rank(comm)? * 8;
        let lens: Vec<usize> = all
            .iter()
            .map(|lens| {
                u64::from_ne_bytes(lens[mine..mine + 8].try_into().expect("8 bytes")) as usize
            })
            .collect();
        let most = all.iter().flat_map(|lens| lens.chunks_exact(8));
        let most = most
            .map(|n| u64::from_ne_bytes(n.try_into().expect("8 bytes")))
            .max();
        let mut came: Vec<Vec<u8>> = lens.iter().map(|len| Vec::with_capacity(*len)).collect();
        // Counts and displacements of MPI are 32 bits wide, so what is longer goes in rounds, as many at all processes.
        let round = (i32::MAX as usize) / parts.len().max(1);
        let rounds = (most.unwrap_or(0) as usize).div_ceil(round.max(1));
        for number in 0..rounds {
            let cut = |len: usize| len.saturating_sub(number * round).min(round);
            let counts = |lens: &mut dyn Iterator<Item = usize>| {
                let counts: Vec<c_int> = lens.map(|len| cut(len) as c_int).collect();
                let places = counts.iter().scan(0, |at, count| {
                    *at += count;
                    Some(*at - count)
                });
                let places: Vec<c_int> = places.collect();
                (counts, places)
            };
            let (out_counts, out_at) = counts(&mut parts.iter().map(|part| part.len()));
            let (in_counts, in_at) = counts(&mut lens.iter().copied());
            let out: Vec<u8> = parts
                .iter()
                .flat_map(|part| &part[part.len().min(number * round)..][..cut(part.len())])
                .copied()
                .collect();
            let total: c_int = in_counts.iter().sum();
            let mut bytes = vec![0u8; total as usize];
            let byte = self.abi.byte;
            call!(
                self,
                Alltoallv(
                    out.as_ptr().cast_mut().cast(),
                    out_counts.as_ptr(),
                    out_at.as_ptr(),
                    byte,
                    bytes.as_mut_ptr().cast(),
                    in_counts.as_ptr(),
                    in_at.as_ptr(),
                    byte,
                    comm
                )
            )?;
            for (whole, (at, count)) in came.iter_mut().zip(in_at.iter().zip(&in_counts)) {
                whole.extend(&bytes[*at as usize..(*at + *count) as usize]);
            }
        }
        Ok(came)
    }

    /// An attribute key for communicators; `delete` is called when the attribute goes.
    pub(crate) fn comm_keyval(&self, delete: DeleteComm) -> Answer<c_int> {
        let mut key = 0;
        let delete = Word(delete as usize);
        let copy = Word(never_copied as *const () as usize);
        call!(
            self,
            Comm_create_keyval(copy, delete, &raw mut key, std::ptr::null_mut())
        )?;
        Ok(key)
    }

    /// The attribute of a communicator, if it has one.
    pub(crate) fn comm_attribute(&self, comm: Word, key: c_int) -> Answer<Option<usize>> {
        let (mut value, mut flag) = (0usize, 0);
        call!(
            self,
            Comm_get_attr(comm, key, (&raw mut value).cast(), &raw mut flag)
        )?;
        Ok((flag != 0).then_some(value))
    }

    /// Gives a communicator an attribute.
    pub(crate) fn set_comm_attribute(&self, comm: Word, key: c_int, value: usize) -> Answer {
        call!(self, Comm_set_attr(comm, key, value as *mut c_void))
    }

    /// Tells a status how many bytes were moved; nothing if it is to be ignored.
    pub(crate) fn set_status(&self, status: StatusOut, bytes: u64) -> Answer {
        if status.0 as i64 == self.abi.status_ignore || status.0.is_null() {
            return Ok(());
        }
        let (byte, count) = (self.abi.byte, bytes as i64);
        if self.calls.Status_set_elements_x.is_some() {
            call!(self, Status_set_elements_x(status, byte, count))?;
        } else if self.calls.Status_set_elements_c.is_some() {
            call!(self, Status_set_elements_c(status, byte, count))?;
        } else {
            let count = c_int::try_from(count).unwrap_or(c_int::MAX);
            call!(self, Status_set_elements(status, byte, count))?;
        }
        call!(self, Status_set_cancelled(status, 0))
    }

    /// Bytes of the type map of a datatype.
    pub(crate) fn type_size(&self, datatype: Word) -> Answer<u64> {
        let mut size = 0i64;
        if self.calls.Type_size_x.is_some() {
            call!(self, Type_size_x(datatype, &raw mut size))?;
        } else if self.calls.Type_size_c.is_some() {
            call!(self, Type_size_c(datatype, &raw mut size))?;
        } else {
            let mut narrow = 0;
            call!(self, Type_size(datatype, &raw mut narrow))?;
            size = i64::from(narrow);
        }
        u64::try_from(size).map_err(|_| Failure::host_lacks("Type_size_x"))
    }

    /// Lower bound and extent of a datatype.
    pub(crate) fn type_extent(&self, datatype: Word) -> Answer<(i64, i64)> {
        let (mut lb, mut extent) = (0i64, 0i64);
        call!(
            self,
            Type_get_extent(datatype, &raw mut lb, &raw mut extent)
        )?;
        Ok((lb, extent))
    }

    /// Another handle of the same datatype.
    pub(crate) fn type_dup(&self, datatype: Word) -> Answer<Word> {
        let mut new = Word(0);
        call!(self, Type_dup(datatype, &raw mut new))?;
        Ok(self.stored(new))
    }

    /// Gives a datatype back.
    pub(crate) fn type_free(&self, datatype: Word) -> Answer {
        let mut datatype = datatype;
        call!(self, Type_free(&raw mut datatype))
    }

    /// An attribute key for datatypes; `delete` is called when the attribute goes.
    pub(crate) fn type_keyval(&self, delete: DeleteType) -> Answer<c_int> {
        let mut key = 0;
        let delete = Word(delete as usize);
        // A null copy function is "never copied" in MPICH and Open MPI, but not everywhere in the standard ABI, so it
        // is spelled out.
        let copy = Word(never_copied as *const () as usize);
        call!(
            self,
            Type_create_keyval(copy, delete, &raw mut key, std::ptr::null_mut())
        )?;
        Ok(key)
    }

    /// The attribute of a datatype, if it has one.
    pub(crate) fn type_attribute(&self, datatype: Word, key: c_int) -> Answer<Option<usize>> {
        let (mut value, mut flag) = (0usize, 0);
        call!(
            self,
            Type_get_attr(datatype, key, (&raw mut value).cast(), &raw mut flag)
        )?;
        Ok((flag != 0).then_some(value))
    }

    /// Gives a datatype an attribute.
    pub(crate) fn set_type_attribute(&self, datatype: Word, key: c_int, value: usize) -> Answer {
        call!(self, Type_set_attr(datatype, key, value as *mut c_void))
    }

    /// Has `delete` called first thing in MPI_Finalize.
    pub(crate) fn at_finalize(&self, delete: DeleteComm) -> Answer {
        let key = self.comm_keyval(delete)?;
        self.set_comm_attribute(self.abi.comm_self, key, 0)
    }

    /// How a datatype was made.
    pub(crate) fn envelope(&self, datatype: Word) -> Answer<Envelope> {
        if self.calls.Type_get_envelope_c.is_some() {
            let (mut ints, mut addresses, mut counts, mut types) = (0i64, 0i64, 0i64, 0i64);
            let mut combiner = 0;
            let (a, b, c, d) = (
                &raw mut ints,
                &raw mut addresses,
                &raw mut counts,
                &raw mut types,
            );
            call!(
                self,
                Type_get_envelope_c(datatype, a, b, c, d, &raw mut combiner)
            )?;
            return Ok(Envelope {
                ints: ints as usize,
                addresses: addresses as usize,
                counts: counts as usize,
                types: types as usize,
                combiner,
            });
        }
        let (mut ints, mut addresses, mut types, mut combiner) = (0, 0, 0, 0);
        let (a, b, c) = (&raw mut ints, &raw mut addresses, &raw mut types);
        call!(
            self,
            Type_get_envelope(datatype, a, b, c, &raw mut combiner)
        )?;
        Ok(Envelope {
            ints: ints as usize,
            addresses: addresses as usize,
            counts: 0,
            types: types as usize,
            combiner,
        })
    }

    /// The arguments it was made with. Datatypes among them have to be given back unless they are predefined.
    pub(crate) fn contents(&self, datatype: Word, envelope: &Envelope) -> Answer<Contents> {
        let mut ints = vec![0 as c_int; envelope.ints];
        let mut addresses = vec![0i64; envelope.addresses];
        let mut counts = vec![0i64; envelope.counts];
        let mut raw = vec![0u8; envelope.types * self.abi.handle_bytes()];
        let (i, a, c) = (
            ints.as_mut_ptr(),
            addresses.as_mut_ptr(),
            counts.as_mut_ptr(),
        );
        let t = raw.as_mut_ptr().cast();
        let n = (
            envelope.ints,
            envelope.addresses,
            envelope.counts,
            envelope.types,
        );
        if self.calls.Type_get_contents_c.is_some() {
            let n = (n.0 as i64, n.1 as i64, n.2 as i64, n.3 as i64);
            call!(
                self,
                Type_get_contents_c(datatype, n.0, n.1, n.2, n.3, i, a, c, t)
            )?;
        } else {
            let n = (n.0 as c_int, n.1 as c_int, n.3 as c_int);
            call!(self, Type_get_contents(datatype, n.0, n.1, n.2, i, a, t))?;
        }
        let types = raw
            .chunks(self.abi.handle_bytes())
            .map(|bytes| {
                let mut word = [0; 8];
                word[..bytes.len()].copy_from_slice(bytes);
                Word(usize::from_ne_bytes(word))
            })
            .collect();
        Ok(Contents {
            ints,
            addresses,
            counts,
            types,
        })
    }

    /// Hints of an info object, in its order.
    pub(crate) fn info(&self, info: Word) -> Answer<Vec<(String, String)>> {
        if info == self.abi.info_null {
            return Ok(Vec::new());
        }
        let mut keys = 0;
        call!(self, Info_get_nkeys(info, &raw mut keys))?;
        let mut pairs = Vec::new();
        for n in 0..keys {
            let mut key = vec![0u8; self.abi.max_info_key as usize + 1];
            call!(self, Info_get_nthkey(info, n, key.as_mut_ptr().cast()))?;
            let (mut len, mut flag) = (0, 0);
            let name = key.as_ptr().cast();
            call!(
                self,
                Info_get_valuelen(info, name, &raw mut len, &raw mut flag)
            )?;
            let mut value = vec![0u8; len as usize + 1];
            let at = value.as_mut_ptr().cast();
            call!(self, Info_get(info, name, len, at, &raw mut flag))?;
            if flag != 0 {
                pairs.push((text_of(&key), text_of(&value)));
            }
        }
        Ok(pairs)
    }

    /// A new info object with these hints; those that are too long for the host are left out.
    pub(crate) fn new_info(&self, pairs: &[(String, String)]) -> Answer<Word> {
        let mut info = Word(0);
        call!(self, Info_create(&raw mut info))?;
        let info = self.stored(info);
        for (name, value) in pairs {
            let fits = name.len() < self.abi.max_info_key as usize
                && value.len() < self.abi.max_info_val as usize
                && !name.is_empty();
            if let (true, Ok(name), Ok(value)) = (
                fits,
                CString::new(name.as_str()),
                CString::new(value.as_str()),
            ) {
                call!(self, Info_set(info, name.as_ptr(), value.as_ptr()))?;
            }
        }
        Ok(info)
    }

    /// A handle of the host on nothing, for this process alone.
    pub(crate) fn open_nothing(&self) -> Answer<Word> {
        let mut handle = Word(0);
        let mode = self.abi.mode_rdwr as c_int;
        let place = crate::ffi::HandleOut((&raw mut handle).cast());
        let name = crate::ffi::Text(c"/dev/null".as_ptr());
        let (comm, info) = (self.abi.comm_self, self.abi.info_null);
        // SAFETY: the slot has the type of the standard; name and place outlive the call.
        let code = self
            .files
            .File_open
            .map(|f| unsafe { f(comm, name, mode, info, place) });
        checked("File_open", code)?;
        Ok(handle)
    }

    /// Gives a handle of the host back.
    pub(crate) fn close_nothing(&self, handle: Word) -> Answer {
        let mut handle = handle;
        let place = crate::ffi::HandleOut((&raw mut handle).cast());
        // SAFETY: as above.
        checked(
            "File_close",
            self.files.File_close.map(|f| unsafe { f(place) }),
        )
    }

    /// Has the handler of a file called with an error code; that of no file where the handle is null.
    pub(crate) fn call_handler(&self, handle: Word, code: c_int) {
        if handle != self.abi.file_null || self.abi.family != Family::OpenMpi {
            let _ = call!(self, File_call_errhandler(handle, code));
            return;
        }
        // Open MPI takes a null handle for a mistake of the caller. A file that is opened has the handler of no file.
        if self.handler_of(handle) != Some(self.abi.errors_return)
            && let Ok(handle) = self.open_nothing()
        {
            let _ = call!(self, File_call_errhandler(handle, code));
            let _ = self.close_nothing(handle);
        }
    }

    /// The handler of a file; only to be compared.
    fn handler_of(&self, handle: Word) -> Option<Word> {
        let mut handler = Word(0);
        call!(self, File_get_errhandler(handle, &raw mut handler)).ok()?;
        let handler = self.stored(handler);
        let mut given = handler;
        let _ = call!(self, Errhandler_free(&raw mut given));
        Some(handler)
    }

    /// Whether the handler of a file ends the program.
    pub(crate) fn is_fatal(&self, handle: Word) -> bool {
        self.handler_of(handle) == Some(self.abi.errors_are_fatal)
    }

    /// A request that completes when it is told to.
    pub(crate) fn start_request(
        &self,
        query: QueryRequest,
        free: FreeRequest,
        cancel: CancelRequest,
        state: *mut c_void,
    ) -> Answer<Word> {
        let mut request = Word(0);
        let (query, free, cancel) = (query as usize, free as usize, cancel as usize);
        call!(
            self,
            Grequest_start(
                Word(query),
                Word(free),
                Word(cancel),
                state,
                &raw mut request
            )
        )?;
        Ok(self.stored(request))
    }

    /// Tells a request of ours that it is complete.
    pub(crate) fn complete_request(&self, request: Word) -> Answer {
        call!(self, Grequest_complete(request))
    }

    /// Gives a request back.
    pub(crate) fn free_request(&self, request: Word) -> Answer {
        let mut request = request;
        let place = crate::ffi::HandleOut((&raw mut request).cast());
        // SAFETY: the slot has the type of the standard; the place outlives the call.
        let code = self.files.Request_free.map(|f| unsafe { f(place) });
        checked("Request_free", code)
    }

    /// Asks for the state of a request, which lets the host make progress; whether it is complete.
    pub(crate) fn ask_request(&self, request: Word) -> bool {
        let mut flag = 0;
        let ignore = StatusOut(self.abi.status_ignore as *mut c_void);
        let place = Out(&raw mut flag);
        // SAFETY: the slot has the type of the standard; the place outlives the call.
        let code = self
            .files
            .Request_get_status
            .map(|f| unsafe { f(request, place, ignore) });
        code == Some(0) && flag != 0
    }

    /// The status at a place of a list, to be ignored if the list is.
    pub(crate) fn status_at(&self, statuses: StatusOut, index: usize) -> StatusOut {
        if statuses.0 as i64 == self.abi.statuses_ignore || statuses.0.is_null() {
            return StatusOut(self.abi.status_ignore as *mut c_void);
        }
        StatusOut(
            statuses
                .0
                .wrapping_byte_add(index * self.abi.status_bytes()),
        )
    }

    /// Stores the error code of a status in a list; nothing if statuses are to be ignored.
    pub(crate) fn set_status_error(&self, statuses: StatusOut, index: usize, code: c_int) {
        if statuses.0 as i64 == self.abi.statuses_ignore || statuses.0.is_null() {
            return;
        }
        let at = index * self.abi.status_bytes() + self.abi.status_error_offset();
        Out(statuses.0.wrapping_byte_add(at).cast::<c_int>()).set(code);
    }
}

/// How a datatype was made: the lengths of the lists of its arguments, and by what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Envelope {
    pub(crate) ints: usize,
    pub(crate) addresses: usize,
    /// Large counts, of constructors in the large form.
    pub(crate) counts: usize,
    pub(crate) types: usize,
    pub(crate) combiner: c_int,
}

/// Arguments of a datatype's constructor.
#[derive(Clone, Debug)]
pub(crate) struct Contents {
    pub(crate) ints: Vec<c_int>,
    pub(crate) addresses: Vec<i64>,
    pub(crate) counts: Vec<i64>,
    pub(crate) types: Vec<Word>,
}

/// Called when an attribute of a datatype goes: handle, key, value, extra state.
pub(crate) type DeleteType = extern "C" fn(Word, c_int, *mut c_void, *mut c_void) -> c_int;
/// Called when an attribute of a communicator is deleted.
pub(crate) type DeleteComm = extern "C" fn(Word, c_int, *mut c_void, *mut c_void) -> c_int;
/// Asked for the status of a complete request.
pub(crate) type QueryRequest = extern "C" fn(*mut c_void, StatusOut) -> c_int;
/// Called when a request is given back.
pub(crate) type FreeRequest = extern "C" fn(*mut c_void) -> c_int;
/// Called when a request is cancelled; whether it is complete.
pub(crate) type CancelRequest = extern "C" fn(*mut c_void, c_int) -> c_int;

/// An attribute stays with the object it was given to.
extern "C" fn never_copied(
    _old: Word,
    _key: c_int,
    _extra: *mut c_void,
    _value: *mut c_void,
    _new: *mut c_void,
    flag: *mut c_int,
) -> c_int {
    Out(flag).set(0);
    0
}

/// A terminated text in a buffer.
fn text_of(buffer: &[u8]) -> String {
    let end = buffer.iter().position(|b| *b == 0).unwrap_or(buffer.len());
    String::from_utf8_lossy(&buffer[..end]).into_owned()
}
