//! Views, ranges and collectives that would keep a server busy for years if it counted what they describe.
//!
//! Each is a few bytes on the wire and well formed. The server answers or refuses after work that the bytes of the
//! request pay for, others are served meanwhile, and a peer that goes away takes its work with it.

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use layout::{FileOffset, View};
use wire::Status;
use wire::message::access::READ;

use crate::rig::{Client, File, Rig, header, pattern, refusal};

/// Far longer than anything here takes; what is not over by then never is.
const WATCHDOG: Duration = Duration::from_secs(60);

/// Runs something that might never end; the test ends all the same.
fn watched<T: Send + 'static>(what: &str, run: impl FnOnce() -> T + Send + 'static) -> T {
    let (told, heard) = mpsc::channel();
    let thread = thread::spawn(move || {
        let _ = told.send(run());
    });
    match heard.recv_timeout(WATCHDOG) {
        Ok(done) => {
            thread.join().unwrap();
            done
        }
        Err(mpsc::RecvTimeoutError::Disconnected) => {
            std::panic::resume_unwind(thread.join().unwrap_err())
        }
        Err(mpsc::RecvTimeoutError::Timeout) => {
            panic!("{what}: no answer within {} s", WATCHDOG.as_secs())
        }
    }
}

fn view(displacement: u64, period: u64, set: &str) -> View {
    View::new(FileOffset(displacement), period, set.parse().unwrap()).unwrap()
}

/// Asks for a part of a file by message.
fn read_part(
    client: &mut Client,
    server: u64,
    file: &File,
    number: u64,
    (lo, hi): (u64, u64),
    bytes: u64,
) -> Result<Vec<u8>, (Status, String)> {
    let mut control = Vec::new();
    file.access(number, lo, hi, bytes).encode(&mut control);
    let link = client.lane(server);
    link.send(header(READ, 0), &control, &[]).unwrap();
    let (answer, said) = link.receive().unwrap();
    if !answer.status.is_ok() {
        return Err(refusal(answer.status, said));
    }
    let mut payload = vec![0; answer.payload_bytes as usize];
    link.receive_payload(&mut payload).unwrap();
    Ok(payload)
}

#[test]
fn a_view_of_years_is_refused_and_holds_nobody_up() {
    let (rig, refused) = watched("a view of 2^59 bytes", || {
        let rig = Rig::new(1);
        let server = rig.number(0);
        let mut client = rig.client();
        let file = client.open("/f", None, Some("striped(64KiB) over 2"));
        let years = view(0, (1 << 61) - 1, &format!("{{(0,0,2,{})}}", 1u64 << 59));
        client.set_view(&file, 1, &years);
        let refused = read_part(&mut client, server, &file, 1, (0, 1 << 59), 4096).unwrap_err();
        (rig, refused)
    });
    assert_eq!(refused.0, Status::InvalidArgument, "{}", refused.1);
    assert!(refused.1.contains("4096"), "{}", refused.1);
    let mut other = rig.client();
    let file = other.open("/f", None, None);
    other.set_view(&file, 1, &View::whole_file());
    let data = pattern(200_000, 1);
    other
        .write(&file, 1, &View::whole_file(), 0, &data)
        .unwrap();
    let (read, _) = other.read(&file, 1, &View::whole_file(), 0, 200_000).unwrap();
    assert_eq!(read, data);
}
