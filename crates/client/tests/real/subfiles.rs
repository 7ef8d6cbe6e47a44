//! Subfiles opened as files, while the file is read, written and moved; and who may open them.
//!
//! Programs of another user are processes: the test program starts a copy of itself.

use std::io::SeekFrom;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;

use client::{Client, OpenOptions, Rights, Status};

use crate::host_teams::{all_good, start, told};
use crate::service::{Service, connect_at};

const LEN: usize = 90_000;

fn bytes() -> Vec<u8> {
    (0..LEN as u32).map(|i| (i * 13 % 251) as u8).collect()
}

/// What striping by 1000 bytes over three gives to one.
fn share(bytes: &[u8], index: usize) -> Vec<u8> {
    let stripes = bytes.chunks(1000).enumerate();
    let mine = stripes.filter(|(n, _)| n % 3 == index);
    mine.flat_map(|(_, stripe)| stripe.to_vec()).collect()
}

fn both() -> OpenOptions {
    OpenOptions::new().read().write()
}

fn make(client: &Client) -> Vec<u8> {
    let bytes = bytes();
    let options = both().create().layout("striped(1000) over 3");
    let file = client.open("/f", &options).unwrap();
    file.write_at(0, &bytes).unwrap();
    file.close().unwrap();
    bytes
}

#[test]
fn a_subfile_is_a_file_with_a_local_pointer() {
    for is_direct in [true, false] {
        let service = Service::start_how(3, is_direct);
        let client = service.connect_how(is_direct);
        let mut wanted = make(&client);
        let file = client.open("/f", &both()).unwrap();
        for index in 0..3 {
            let one = client.open_subfile("/f", index as u64, &both()).unwrap();
            let told = one.subfile().unwrap();
            assert_eq!(
                (told.index, told.count, told.generation),
                (index as u64, 3, 1)
            );
            assert_eq!(told.places.len(), 1);
            assert_eq!(one.view_len().unwrap(), LEN as u64 / 3);
            let mut got = vec![0; LEN];
            let mine = share(&wanted, index);
            assert_eq!(one.read_at(0, &mut got).unwrap(), mine.len());
            assert!(got[..mine.len()] == mine[..], "subfile {index}");
            // By the pointer, which counts bytes of the subfile.
            one.seek(SeekFrom::Start(1500)).unwrap();
            let text = [index as u8; 600];
            assert_eq!(one.write(&text).unwrap(), 600);
            assert_eq!(one.position(), 2100);
            for at in 1500..2100 {
                wanted[(at / 1000 * 3 + index) * 1000 + at % 1000] = index as u8;
            }
            // The file has it at once, and what others write is read here.
            assert_eq!(file.read_at(0, &mut got).unwrap(), LEN);
            assert!(got == wanted, "subfile {index}");
            file.write_at(index as u64 * 1000, b"others").unwrap();
            wanted[index * 1000..][..6].copy_from_slice(b"others");
            one.read_at(0, &mut got[..6]).unwrap();
            assert_eq!(&got[..6], b"others");
            one.close().unwrap();
        }
        assert!(file.subfile().is_none());
        assert_eq!(file.view_len().unwrap(), LEN as u64);
    }
}

#[test]
fn a_subfile_has_only_its_view_and_its_own_layout() {
    for is_direct in [true, false] {
        let service = Service::start_how(3, is_direct);
        let client = service.connect_how(is_direct);
        let wanted = make(&client);
        let one = client.open_subfile("/f", 2, &both()).unwrap();
        let mut got = [0; 100];
        // Used before, so that every short way is known.
        for _ in 0..3 {
            one.read_at(0, &mut got).unwrap();
            one.write_at(0, &share(&wanted, 2)[..100]).unwrap();
        }
        assert!(one.set_view_text("whole").is_err());
        assert!(one.resize(1).is_err() && one.preallocate(1).is_err());
        for options in [both().append(), both().create(), both().delete_on_close()] {
            let error = client.open_subfile("/f", 0, &options).unwrap_err();
            assert_eq!(error.status(), Status::InvalidArgument);
        }
        let error = client.open_subfile("/f", 3, &both()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "subfile: 3, but the file has 3; they count from 0"
        );
        // Only the servers change: it is the same subfile, and followed.
        let places = "striped(1000) over [2,0,1]";
        client.relayout("/f", places).unwrap().wait().unwrap();
        one.read_at(0, &mut got).unwrap();
        assert!(got[..] == share(&wanted, 2)[..100]);
        // Another partition: it is none of its subfiles any more.
        client
            .relayout("/f", "striped(700) over 2")
            .unwrap()
            .wait()
            .unwrap();
        for _ in 0..2 {
            let read = one.read_at(0, &mut got).unwrap_err();
            assert_eq!(read.status(), Status::StaleLayout, "{read}");
            assert!(
                read.to_string()
                    .contains("subfile 2 of /f belongs to generation"),
                "{read}"
            );
            let written = one.write_at(0, &[99; 100]).unwrap_err();
            assert_eq!(written.status(), Status::StaleLayout, "{written}");
        }
        // Nothing was written.
        let file = client.open("/f", &both()).unwrap();
        let mut all = vec![0; LEN];
        assert_eq!(file.read_at(0, &mut all).unwrap(), LEN);
        assert!(all == wanted, "the file is as it was");
        let again = client
            .open_subfile("/f", 1, &OpenOptions::new().read())
            .unwrap();
        assert!(again.rights().allow(Rights::READ));
        assert!(again.write_at(0, &[1]).is_err());
    }
}

/// A user who owns nothing.
const NOBODY: u32 = 65534;

const OTHERS: &str = "subfiles::seed004_s12_only_operators_are_told_where_bytes_lie";

/// Programs of another user use files, and are told nothing of disks, data files and subfiles.
#[test]
fn seed004_s12_only_operators_are_told_where_bytes_lie() {
    if let Some(words) = told() {
        return is_told_nothing(&connect_at(words[0].as_ref(), true));
    }
    if !rustix::process::geteuid().is_root() {
        return testkit::skipped("only root can become another user");
    }
    let mut service = Service::start(2);
    let open_to_all = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(&service.dir, open_to_all).unwrap();
    let operator = service.connect();
    make(&operator);
    operator.chmod("/f", 0o666).unwrap();
    operator.chmod("/", 0o777).unwrap();
    // Where anybody may run it, wherever this was built.
    let program = service.dir.join("program");
    std::fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    let child = start(&program, OTHERS, &service.dir.display().to_string(), |c| {
        c.uid(NOBODY).gid(NOBODY);
    });
    all_good(vec![child]);
    for path in ["/f", "/own"] {
        assert!(operator.open_subfile(path, 0, &both()).is_ok());
    }
    for member in operator.members().unwrap() {
        assert!(operator.subfiles(member.server).is_ok() && operator.disks(member.server).is_ok());
    }
    // What an operator says to the manager reaches every server.
    operator.shutdown().unwrap();
    for server in service.servers.drain(..) {
        server.wait();
    }
}

fn is_told_nothing(program: &Client) {
    let options = both().create().layout("striped(1000) over 2");
    let own = program.open("/own", &options).unwrap();
    own.write_at(0, &[1; 3000]).unwrap();
    program.open("/f", &both()).unwrap();
    for path in ["/f", "/own"] {
        let error = program.open_subfile(path, 0, &both()).unwrap_err();
        assert_eq!(error.status(), Status::PermissionDenied, "{error}");
        assert!(error.to_string().contains("only root and user"), "{error}");
    }
    for member in program.members().unwrap() {
        let told = [
            program.subfiles(member.server).map(drop),
            program.disks(member.server).map(drop),
        ];
        for refused in told {
            let error = refused.unwrap_err();
            assert_eq!(error.status(), Status::PermissionDenied, "{error}");
        }
    }
}
