//! Waiting and testing: the calls that complete requests, ours among them.
//!
//! While nothing of ours is pending, the entry points call the host's own functions after one load, and nothing
//! here is called (`ends` in the table of prototypes). Otherwise the host is told first of all that is done; a
//! wait for requests of ours that are not done alternates the host's own test, which moves the others of the list
//! on, with rests; from then on it is the host's own wait.
//!
//! Errors. An operation that failed is reported by the call that completes its request, to the handler of its file
//! (the default of files is to return): calls for one request return its code; calls for lists return
//! MPI_ERR_IN_STATUS, with the code in the MPI_ERROR of its status and MPI_SUCCESS in those of the others, and
//! the handler gets the code of the first that failed.

use std::ffi::c_int;
use std::sync::Arc;

use crate::entry;
use crate::ffi::{HandleOut, Out, StatusOut, Word};
use crate::host::{self, Host};
use crate::progress::WaitLoop;
use crate::requests::{self, Request};

/// Requests of ours in a list, with their places.
type Ours = Vec<(usize, Arc<Request>)>;

/// What a wait waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Until {
    All,
    Any,
}

/// A list of the program.
#[derive(Clone, Copy, Debug)]
struct List {
    requests: HandleOut,
    count: c_int,
}

impl List {
    fn one(requests: HandleOut) -> List {
        List { requests, count: 1 }
    }

    /// Those of ours in it that a completion call has to know. A null list is for the host to refuse.
    fn ours(self) -> Ours {
        match usize::try_from(self.count) {
            Ok(count) if !self.requests.0.is_null() => requests::among(self.requests, count),
            _ => Vec::new(),
        }
    }
}

/// Waits with requests of ours pending: `wait` is the host's own wait, `test` its test, which says whether it did it.
fn waiting(
    host: &Host,
    list: List,
    until: Until,
    wait: impl FnOnce() -> Option<c_int>,
    mut test: impl FnMut() -> Option<(c_int, bool)>,
) -> (Option<c_int>, Ours) {
    requests::finish(host);
    let ours = list.ours();
    let mut rests = WaitLoop::new();
    loop {
        rests.look();
        requests::finish(host);
        let is_ready = match until {
            Until::All => ours.iter().all(|(_, request)| request.is_complete()),
            Until::Any => ours.is_empty() || ours.iter().any(|(_, request)| request.is_complete()),
        };
        if is_ready {
            return (wait(), ours);
        }
        match test() {
            None => return (None, ours),
            Some((code, is_done)) if code != 0 || is_done => return (Some(code), ours),
            Some(_) => rests.rest(),
        }
    }
}

/// Tests with requests of ours pending.
fn testing(host: &Host, list: List, test: impl FnOnce() -> Option<c_int>) -> (Option<c_int>, Ours) {
    requests::finish(host);
    let ours = list.ours();
    (test(), ours)
}

/// What a call for one request of a list returns.
fn report_one(host: &Host, code: c_int, ours: &Ours, index: c_int) -> c_int {
    let found = ours
        .iter()
        .find(|(place, _)| *place as i64 == i64::from(index));
    match found.and_then(|(_, request)| Some((request, request.failure()?))) {
        Some((request, failure)) if code == 0 => request.raise(host, failure),
        _ => code,
    }
}

/// What a call for many requests of a list returns. `places` are those of the requests that it completed, in the
/// order of the statuses.
fn report_many(
    host: &Host,
    code: c_int,
    ours: &Ours,
    statuses: StatusOut,
    places: impl Iterator<Item = usize> + Clone,
) -> c_int {
    let in_status = host.abi.err_in_status as c_int;
    if (code != 0 && code != in_status) || ours.iter().all(|(_, r)| r.failure().is_none()) {
        return code;
    }
    if code == 0 {
        for at in 0..places.clone().count() {
            host.set_status_error(statuses, at, 0);
        }
    }
    let mut first = None;
    for (at, place) in places.enumerate() {
        let found = ours.iter().find(|(index, _)| *index == place);
        if let Some((request, failure)) = found.and_then(|(_, r)| Some((r, r.failure()?))) {
            host.set_status_error(statuses, at, failure.number(host));
            first.get_or_insert((request, failure));
        }
    }
    if let Some((request, failure)) = first {
        request.raise(host, failure);
    }
    in_status
}

/// A number that a call of the host filled in, unless it refused the place.
fn filled(place: Out<c_int>) -> c_int {
    match place.0.is_null() {
        true => -1,
        false => place.get(),
    }
}

/// Places that a call filled in.
fn places(outcount: Out<c_int>, indices: Out<c_int>) -> impl Iterator<Item = usize> + Clone {
    let count = usize::try_from(filled(outcount)).unwrap_or(0);
    (0..count).map(move |at| indices.get_at(at) as usize)
}

/// Calls the host's own function.
macro_rules! own {
    ($host:expr, $slot:ident($($argument:expr),*)) => {
        // SAFETY: the arguments are the caller's.
        $host.files.$slot.map(|f| unsafe { f($($argument),*) })
    };
}

/// Does something with the host; the code of a function that it lacks.
fn known(name: &'static str, call: impl FnOnce(&Host) -> Option<c_int>) -> c_int {
    match host::get().and_then(call) {
        Some(code) => code,
        None => entry::theirs(name, |_| None),
    }
}

/// `MPI_Wait`.
pub(crate) fn wait(request: HandleOut, status: StatusOut) -> c_int {
    known("MPI_Wait", |host| {
        let mut flag = 0;
        let place = Out(&raw mut flag);
        let (code, ours) = waiting(
            host,
            List::one(request),
            Until::All,
            || own!(host, Wait(request, status)),
            || Some((own!(host, Test(request, place, status))?, place.get() != 0)),
        );
        Some(report_one(host, code?, &ours, 0))
    })
}

/// `MPI_Waitany`.
pub(crate) fn waitany(
    count: c_int,
    requests: HandleOut,
    index: Out<c_int>,
    status: StatusOut,
) -> c_int {
    known("MPI_Waitany", |host| {
        let mut flag = 0;
        let place = Out(&raw mut flag);
        let (code, ours) = waiting(
            host,
            List { requests, count },
            Until::Any,
            || own!(host, Waitany(count, requests, index, status)),
            || {
                let code = own!(host, Testany(count, requests, index, place, status))?;
                Some((code, place.get() != 0))
            },
        );
        Some(report_one(host, code?, &ours, filled(index)))
    })
}

/// `MPI_Waitall`.
pub(crate) fn waitall(count: c_int, requests: HandleOut, statuses: StatusOut) -> c_int {
    known("MPI_Waitall", |host| {
        let mut flag = 0;
        let place = Out(&raw mut flag);
        let (code, ours) = waiting(
            host,
            List { requests, count },
            Until::All,
            || own!(host, Waitall(count, requests, statuses)),
            || {
                let code = own!(host, Testall(count, requests, place, statuses))?;
                Some((code, place.get() != 0))
            },
        );
        let all = 0..usize::try_from(count).unwrap_or(0);
        Some(report_many(host, code?, &ours, statuses, all))
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
    known("MPI_Waitsome", |host| {
        let list = List {
            requests,
            count: incount,
        };
        let (code, ours) = waiting(
            host,
            list,
            Until::Any,
            || {
                own!(
                    host,
                    Waitsome(incount, requests, outcount, indices, statuses)
                )
            },
            || {
                let code = own!(
                    host,
                    Testsome(incount, requests, outcount, indices, statuses)
                )?;
                Some((code, filled(outcount) != 0))
            },
        );
        let done = places(outcount, indices);
        Some(report_many(host, code?, &ours, statuses, done))
    })
}

/// `MPI_Test`.
pub(crate) fn test(request: HandleOut, flag: Out<c_int>, status: StatusOut) -> c_int {
    known("MPI_Test", |host| {
        let (code, ours) = testing(host, List::one(request), || {
            own!(host, Test(request, flag, status))
        });
        Some(report_one(host, code?, &ours, 0))
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
    known("MPI_Testany", |host| {
        let (code, ours) = testing(host, List { requests, count }, || {
            own!(host, Testany(count, requests, index, flag, status))
        });
        Some(report_one(host, code?, &ours, filled(index)))
    })
}

/// `MPI_Testall`.
pub(crate) fn testall(
    count: c_int,
    requests: HandleOut,
    flag: Out<c_int>,
    statuses: StatusOut,
) -> c_int {
    known("MPI_Testall", |host| {
        let (code, ours) = testing(host, List { requests, count }, || {
            own!(host, Testall(count, requests, flag, statuses))
        });
        let all = 0..usize::try_from(count).unwrap_or(0);
        Some(report_many(host, code?, &ours, statuses, all))
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
    known("MPI_Testsome", |host| {
        let list = List {
            requests,
            count: incount,
        };
        let (code, ours) = testing(host, list, || {
            own!(
                host,
                Testsome(incount, requests, outcount, indices, statuses)
            )
        });
        let done = places(outcount, indices);
        Some(report_many(host, code?, &ours, statuses, done))
    })
}

/// `MPI_Request_get_status`. A request that failed keeps its failure for the call that completes it.
pub(crate) fn request_get_status(request: Word, flag: Out<c_int>, status: StatusOut) -> c_int {
    known("MPI_Request_get_status", |host| {
        requests::finish(host);
        own!(host, Request_get_status(request, flag, status))
    })
}

/// Looks at requests one by one, in a library that has no call for many. Programs ask at run time whether there is
/// one (mpi4py does), and find ours.
fn look(
    host: &Host,
    list: List,
    statuses: impl Fn(usize) -> StatusOut,
    mut seen: impl FnMut(usize, bool) -> bool,
) -> Option<c_int> {
    for index in 0..usize::try_from(list.count).unwrap_or(0) {
        let request = list.requests.at(index);
        if request == host.abi.request_null {
            continue;
        }
        let mut flag = 0;
        let place = Out(&raw mut flag);
        let code = own!(host, Request_get_status(request, place, statuses(index)))?;
        if code != 0 || !seen(index, place.get() != 0) {
            return Some(code);
        }
    }
    Some(0)
}

/// Whether a list holds nothing but null requests.
fn is_null(host: &Host, list: List) -> bool {
    let count = usize::try_from(list.count).unwrap_or(0);
    (0..count).all(|index| list.requests.at(index) == host.abi.request_null)
}

/// `MPI_Request_get_status_any`.
pub(crate) fn request_get_status_any(
    count: c_int,
    requests: HandleOut,
    index: Out<c_int>,
    flag: Out<c_int>,
    status: StatusOut,
) -> c_int {
    known("MPI_Request_get_status_any", |host| {
        requests::finish(host);
        if host.files.Request_get_status_any.is_some() {
            return own!(
                host,
                Request_get_status_any(count, requests, index, flag, status)
            );
        }
        let list = List { requests, count };
        index.set(host.abi.undefined as c_int);
        if is_null(host, list) {
            // The empty status has no error; hosts leave it alone in a call for one request.
            host.set_status_error(status, 0, 0);
            return own!(
                host,
                Request_get_status(host.abi.request_null, flag, status)
            );
        }
        flag.set(0);
        look(
            host,
            list,
            |_| status,
            |place, is_done| {
                if is_done {
                    index.set(place as c_int);
                    flag.set(1);
                }
                !is_done
            },
        )
    })
}

/// `MPI_Request_get_status_all`.
pub(crate) fn request_get_status_all(
    count: c_int,
    requests: HandleOut,
    flag: Out<c_int>,
    statuses: StatusOut,
) -> c_int {
    known("MPI_Request_get_status_all", |host| {
        requests::finish(host);
        if host.files.Request_get_status_all.is_some() {
            return own!(
                host,
                Request_get_status_all(count, requests, flag, statuses)
            );
        }
        let mut all = true;
        for index in 0..usize::try_from(count).unwrap_or(0) {
            let place = host.status_at(statuses, index);
            let code = own!(host, Request_get_status(requests.at(index), flag, place))?;
            if code != 0 {
                return Some(code);
            }
            all &= flag.get() != 0;
        }
        flag.set(c_int::from(all));
        Some(0)
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
    known("MPI_Request_get_status_some", |host| {
        requests::finish(host);
        if host.files.Request_get_status_some.is_some() {
            return own!(
                host,
                Request_get_status_some(incount, requests, outcount, indices, statuses)
            );
        }
        let list = List {
            requests,
            count: incount,
        };
        if is_null(host, list) {
            outcount.set(host.abi.undefined as c_int);
            return Some(0);
        }
        let done = std::cell::Cell::new(0);
        let code = look(
            host,
            list,
            |_| host.status_at(statuses, done.get()),
            |place, is_done| {
                if is_done {
                    indices.set_at(done.get(), place as c_int);
                    done.set(done.get() + 1);
                }
                true
            },
        );
        outcount.set(done.get() as c_int);
        code
    })
}

/// `MPI_Request_free`. The operation goes on; its failure is heard by nobody.
pub(crate) fn request_free(request: HandleOut) -> c_int {
    known("MPI_Request_free", |host| {
        requests::finish(host);
        if !request.0.is_null() && requests::abandon(request.at(0)) {
            request.set(host.abi.request_null);
            return Some(0);
        }
        own!(host, Request_free(request))
    })
}

/// `MPI_Cancel`. An operation of ours goes on to its end.
pub(crate) fn cancel(request: HandleOut) -> c_int {
    known("MPI_Cancel", |host| {
        requests::finish(host);
        own!(host, Cancel(request))
    })
}
