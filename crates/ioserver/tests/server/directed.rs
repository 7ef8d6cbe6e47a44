//! Collective accesses that a server directs, frame by frame: ranks that go away, do not come, or are not who they
//! say they are.

use layout::View;
use wire::message::directed::{Directed, Follow, Lead, Packet, Portion, RankRange, WANT};
use wire::message::{self, Bytes, Request};
use wire::{ClientId, Status};

use crate::rig::{Client, File, Rig, header, pattern, refusal};

/// Two clients with one file at one server, and a view of it each.
fn two(rig: &Rig) -> (Client, Client, File, u64) {
    let (mut first, mut second) = (rig.client(), rig.client());
    let file = first.open("/f", None, Some("striped(4096) over 1"));
    let same = second.open("/f", None, None);
    let view = View::whole_file();
    first.set_view(&file, 1, &view);
    second.set_view(&same, 1, &view);
    let server = file.servers()[0];
    (first, second, file, server)
}

fn lead(file: &File, ranks: [ClientId; 2], operation: u64) -> Lead {
    let mut version = Vec::new();
    file.state.version().put(&mut version);
    let rank = |client, lo| RankRange {
        client,
        view: 0,
        lo,
        hi: lo + 1000,
    };
    Lead {
        view: 1,
        operation,
        writes: true,
        by_record: false,
        block_bytes: 4096,
        blocks: 1,
        epoch: 0,
        version: Bytes(version),
        ranks: vec![rank(ranks[0], 0), rank(ranks[1], 1000)],
        views: vec![View::whole_file()],
    }
}

fn send<R: Request>(client: &mut Client, server: u64, request: &R, payload: &[u8]) {
    let mut control = Vec::new();
    message::encode(request, &mut control);
    let link = client.lane(server);
    link.send(header(R::KIND, 0), &control, &[payload]).unwrap();
}

/// The next frame: a portion that is wanted, or the answer.
fn next(client: &mut Client, server: u64) -> Result<Option<Portion>, (Status, String)> {
    let (answer, said) = client.lane(server).receive().unwrap();
    if !answer.status.is_ok() {
        return Err(refusal(answer.status, said));
    }
    if answer.flags & WANT != 0 {
        return Ok(Some(message::decode(said).unwrap()));
    }
    let _: Directed = message::decode(said).unwrap();
    Ok(None)
}

#[test]
fn a_rank_that_goes_away_ends_the_operation_for_all() {
    let rig = Rig::new(1);
    let (mut first, mut second, file, server) = two(&rig);
    let ids = [first.welcome.client, second.welcome.client];
    send(&mut first, server, &lead(&file, ids, 1), &[]);
    let follow = Follow {
        view: 1,
        leader: ids[0],
        operation: 1,
        rank: 1,
    };
    send(&mut second, server, &follow, &[]);
    assert_eq!(
        next(&mut first, server).unwrap().unwrap().parts[0].bytes,
        1000
    );
    assert_eq!(
        next(&mut second, server).unwrap().unwrap().parts[0].start,
        1000
    );
    // One sends what was wanted, the other goes instead.
    drop(second);
    send(&mut first, server, &Packet { number: 0 }, &pattern(1000, 1));
    let (status, text) = next(&mut first, server).unwrap_err();
    assert_eq!(status, Status::Unreachable, "{text}");
    // The connection is as good as before, and so is the file.
    let view = View::whole_file();
    first.write(&file, 1, &view, 0, &pattern(2000, 2)).unwrap();
    let (back, _) = first.read(&file, 1, &view, 0, 2000).unwrap();
    assert!(back == pattern(2000, 2));
    assert!(rig.count(0, "directed_failed") > 0);
}

#[test]
fn late_ranks_hear_of_a_failure_and_strangers_are_refused() {
    let rig = Rig::new(1);
    let (mut first, mut second, file, server) = two(&rig);
    let ids = [first.welcome.client, second.welcome.client];
    // A distribution that makes no sense ends the operation before anybody else has come.
    let mut wrong = lead(&file, ids, 5);
    wrong.ranks[1].view = 7;
    send(&mut first, server, &wrong, &[]);
    assert_eq!(
        next(&mut first, server).unwrap_err().0,
        Status::InvalidArgument
    );
    let follow = |operation, rank| Follow {
        view: 1,
        leader: ids[0],
        operation,
        rank,
    };
    send(&mut second, server, &follow(5, 1), &[]);
    assert_eq!(
        next(&mut second, server).unwrap_err().0,
        Status::InvalidArgument
    );
    // Whoever says that he is another rank ends it too: nobody knows what the others would write.
    send(&mut first, server, &lead(&file, ids, 6), &[]);
    assert!(next(&mut first, server).unwrap().is_some());
    send(&mut second, server, &follow(6, 0), &[]);
    assert_eq!(
        next(&mut second, server).unwrap_err().0,
        Status::PermissionDenied
    );
    send(&mut first, server, &Packet { number: 0 }, &pattern(1000, 1));
    assert_eq!(
        next(&mut first, server).unwrap_err().0,
        Status::PermissionDenied
    );
    // And the next one goes well.
    send(&mut first, server, &lead(&file, ids, 7), &[]);
    send(&mut second, server, &follow(7, 1), &[]);
    for (client, salt) in [(&mut first, 3), (&mut second, 4)] {
        assert!(next(client, server).unwrap().is_some());
        send(client, server, &Packet { number: 0 }, &pattern(1000, salt));
    }
    assert_eq!(next(&mut first, server), Ok(None));
    assert_eq!(next(&mut second, server), Ok(None));
}
