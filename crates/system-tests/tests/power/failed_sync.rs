//! One sync fails with an I/O error, the servers are started again on the same boot of their host, and the power goes
//! later: what a sync says after that is true.

use client::Status;
use lossyfs::Loss;
use system_tests::files::{create, open, read, whole};

use crate::Host;

const LEN: usize = 50_000;

#[test]
fn sync_after_a_failed_sync_and_a_restart_vouches_for_what_is_there_only() {
    for loss in [Loss::Nothing, Loss::Evicted] {
        // What is written behind is in the memory of a keeper as well.
        let Some(mut host) = Host::start_through(1) else {
            return;
        };
        let client = host.service.client();
        let file = create(&client, "/f", "striped(4KiB) over 1");
        file.write_at(0, &whole(0, LEN, 1)).unwrap();
        assert!(file.sync().unwrap().is_durable);
        file.write_at(0, &whole(0, LEN, 2)).unwrap();
        // Another client's sync is the one that fails.
        let other = host.service.client();
        let same = open(&other, "/f");
        host.disk.fail_sync(1, ".sub");
        let error = same.sync().expect_err("the disk could not write");
        assert_eq!(error.status(), Status::Io, "{error}");
        host.lose_processes(loss);
        // What the disk could not write is found in the page cache, or is not.
        let found = read(&file, 0, LEN);
        let (old, new) = (whole(0, LEN, 1), whole(0, LEN, 2));
        assert!(found == if loss == Loss::Nothing { new } else { old });
        let error = file.sync().expect_err("bytes may be gone that it wrote");
        assert_eq!(error.status(), Status::Lost, "{error}");
        // Said once; whoever syncs now is told the truth about what there is.
        assert!(file.sync().unwrap().is_durable);
        assert!(open(&host.client(), "/f").sync().unwrap().is_durable);
        host.lose_power(Loss::Everything);
        assert!(read(&open(&host.client(), "/f"), 0, LEN) == found);
        host.assert_well();
    }
}

/// The memory of the server outlives its process, but what it had given to the page cache is in that memory no more: bytes of
/// before are not better kept than those of a server that writes through.
#[test]
fn sync_after_a_failed_sync_and_an_adoption_vouches_for_what_is_there_only() {
    for loss in [Loss::Nothing, Loss::Evicted] {
        let Some(mut host) = Host::start_behind() else {
            return;
        };
        let mut options = host.service.connect_options();
        options.direct = false;
        let client = client::Client::connect(&host.service.url(), options).unwrap();
        let file = create(&client, "/f", "striped(4KiB) over 1");
        file.write_at(0, &whole(0, LEN, 1)).unwrap();
        assert!(file.sync().unwrap().is_durable);
        file.write_at(0, &whole(0, LEN, 2)).unwrap();
        let other = host.service.client();
        let same = open(&other, "/f");
        host.disk.fail_sync(1, ".sub");
        let error = same.sync().expect_err("the disk could not write");
        assert_eq!(error.status(), Status::Io, "{error}");
        host.lose_processes(loss);
        let found = read(&file, 0, LEN);
        let (old, new) = (whole(0, LEN, 1), whole(0, LEN, 2));
        assert!(found == if loss == Loss::Nothing { new } else { old });
        assert_eq!(host.service.counter(&client, 0, "memory_is_kept"), 1);
        let error = file.sync().expect_err("bytes may be gone that it wrote");
        assert_eq!(error.status(), Status::Lost, "{error}");
        assert!(file.sync().unwrap().is_durable);
        // From then on the memory outlives the process again.
        file.write_at(0, &whole(0, LEN, 3)).unwrap();
        host.lose_processes(Loss::Nothing);
        assert!(file.sync().unwrap().is_durable);
        host.lose_power(Loss::Everything);
        assert!(read(&open(&host.client(), "/f"), 0, LEN) == whole(0, LEN, 3));
        host.assert_well();
    }
}
