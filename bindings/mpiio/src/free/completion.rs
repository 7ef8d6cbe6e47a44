//! Waiting and testing: the calls that complete requests, ours among them.
//!
//! While nothing of ours is pending, each is the host's own after one load.

use std::ffi::c_int;

use crate::entry;
use crate::ffi::{HandleOut, Out, StatusOut, Word};

/// `MPI_Wait`.
pub(crate) fn wait(request: HandleOut, status: StatusOut) -> c_int {
    // SAFETY: the arguments are the caller's.
    entry::theirs("MPI_Wait", |host| {
        host.files.Wait.map(|f| unsafe { f(request, status) })
    })
}

/// `MPI_Waitany`.
pub(crate) fn waitany(
    count: c_int,
    requests: HandleOut,
    index: Out<c_int>,
    status: StatusOut,
) -> c_int {
    // SAFETY: the arguments are the caller's.
    entry::theirs("MPI_Waitany", |host| {
        host.files
            .Waitany
            .map(|f| unsafe { f(count, requests, index, status) })
    })
}

/// `MPI_Waitall`.
pub(crate) fn waitall(count: c_int, requests: HandleOut, statuses: StatusOut) -> c_int {
    // SAFETY: the arguments are the caller's.
    entry::theirs("MPI_Waitall", |host| {
        host.files
            .Waitall
            .map(|f| unsafe { f(count, requests, statuses) })
    })
}

/// `MPI_Waitsome`.
pub(crate) fn waitsome(
    incount: c_int,
    requests: HandleOut,
    outcount: Out<c_int>,
    indices: Out<c_int>,
    statuses: StatusOut,
) -> c_int {
    // SAFETY: the arguments are the caller's.
    entry::theirs("MPI_Waitsome", |host| {
        host.files
            .Waitsome
            .map(|f| unsafe { f(incount, requests, outcount, indices, statuses) })
    })
}

/// `MPI_Test`.
pub(crate) fn test(request: HandleOut, flag: Out<c_int>, status: StatusOut) -> c_int {
    // SAFETY: the arguments are the caller's.
    entry::theirs("MPI_Test", |host| {
        host.files.Test.map(|f| unsafe { f(request, flag, status) })
    })
}

/// `MPI_Testany`.
pub(crate) fn testany(
    count: c_int,
    requests: HandleOut,
    index: Out<c_int>,
    flag: Out<c_int>,
    status: StatusOut,
) -> c_int {
    // SAFETY: the arguments are the caller's.
    entry::theirs("MPI_Testany", |host| {
        host.files
            .Testany
            .map(|f| unsafe { f(count, requests, index, flag, status) })
    })
}

/// `MPI_Testall`.
pub(crate) fn testall(
    count: c_int,
    requests: HandleOut,
    flag: Out<c_int>,
    statuses: StatusOut,
) -> c_int {
    // SAFETY: the arguments are the caller's.
    entry::theirs("MPI_Testall", |host| {
        host.files
            .Testall
            .map(|f| unsafe { f(count, requests, flag, statuses) })
    })
}

/// `MPI_Testsome`.
pub(crate) fn testsome(
    incount: c_int,
    requests: HandleOut,
    outcount: Out<c_int>,
    indices: Out<c_int>,
    statuses: StatusOut,
) -> c_int {
    // SAFETY: the arguments are the caller's.
    entry::theirs("MPI_Testsome", |host| {
        host.files
            .Testsome
            .map(|f| unsafe { f(incount, requests, outcount, indices, statuses) })
    })
}

/// `MPI_Request_get_status`.
pub(crate) fn request_get_status(request: Word, flag: Out<c_int>, status: StatusOut) -> c_int {
    // SAFETY: the arguments are the caller's.
    entry::theirs("MPI_Request_get_status", |host| {
        host.files
            .Request_get_status
            .map(|f| unsafe { f(request, flag, status) })
    })
}

/// `MPI_Request_get_status_any`.
pub(crate) fn request_get_status_any(
    count: c_int,
    requests: HandleOut,
    index: Out<c_int>,
    flag: Out<c_int>,
    status: StatusOut,
) -> c_int {
    // SAFETY: the arguments are the caller's.
    entry::theirs("MPI_Request_get_status_any", |host| {
        host.files
            .Request_get_status_any
            .map(|f| unsafe { f(count, requests, index, flag, status) })
    })
}

/// `MPI_Request_get_status_all`.
pub(crate) fn request_get_status_all(
    count: c_int,
    requests: HandleOut,
    flag: Out<c_int>,
    statuses: StatusOut,
) -> c_int {
    // SAFETY: the arguments are the caller's.
    entry::theirs("MPI_Request_get_status_all", |host| {
        host.files
            .Request_get_status_all
            .map(|f| unsafe { f(count, requests, flag, statuses) })
    })
}

/// `MPI_Request_get_status_some`.
pub(crate) fn request_get_status_some(
    incount: c_int,
    requests: HandleOut,
    outcount: Out<c_int>,
    indices: Out<c_int>,
    statuses: StatusOut,
) -> c_int {
    // SAFETY: the arguments are the caller's.
    entry::theirs("MPI_Request_get_status_some", |host| {
        host.files
            .Request_get_status_some
            .map(|f| unsafe { f(incount, requests, outcount, indices, statuses) })
    })
}

/// `MPI_Request_free`.
pub(crate) fn request_free(request: HandleOut) -> c_int {
    // SAFETY: the arguments are the caller's.
    entry::theirs("MPI_Request_free", |host| {
        host.files.Request_free.map(|f| unsafe { f(request) })
    })
}

/// `MPI_Cancel`.
pub(crate) fn cancel(request: HandleOut) -> c_int {
    // SAFETY: the arguments are the caller's.
    entry::theirs("MPI_Cancel", |host| {
        host.files.Cancel.map(|f| unsafe { f(request) })
    })
}
