//! Samples of getting acquainted.
//!
//! Every role says hello, with groups and without, known to its host and unknown.

use wire::message::Bytes;
use wire::message::session::*;
use wire::{ClientId, ServerId};

use super::Samples;

fn hello(role: Role) -> Hello {
    Hello {
        role,
        process: Process {
            pid: 4_194_303,
            host: "6b1f2c7e-0000-4000-8000-5d2f0c1a9b3e pid:[4026531836]".into(),
        },
        credentials: Credentials {
            user: 1000,
            group: u32::MAX,
            groups: vec![4, 27, 1_000_000],
        },
        nonce: Bytes((200..232).collect()),
    }
}

fn welcome(client: u64) -> Welcome {
    Welcome {
        client: ClientId(client),
        session: Bytes((0..40).map(|i| i * 6).collect()),
        server: ServerId(0),
        incarnation: 12,
        rendezvous_bytes: 64 << 10,
        message_bytes: 4 << 20,
        proof: Bytes((0..client.min(32) as u8).collect()),
    }
}

pub(super) fn add(list: &mut Samples) {
    list.pair("new-client", hello(Role::NewClient), welcome(77));
    let known = Role::Client {
        client: ClientId(77),
        session: Bytes(vec![0xff; 40]),
    };
    list.pair("client", hello(known), welcome(77));
    let unknown = Hello {
        role: Role::NewServer,
        process: Process {
            pid: 0,
            host: String::new(),
        },
        credentials: Credentials::ROOT,
        nonce: Bytes::default(),
    };
    list.pair("new-server", unknown, welcome(0));
    let server = Role::Server {
        server: ServerId(3),
        seal: Bytes(vec![0x5a; 32]),
    };
    list.pair("server", hello(server), welcome(0));
    let proof = Bytes((100..132).collect());
    list.pair("", Prove { proof }, welcome(u64::MAX));
    list.pair("", Ping {}, ());
    list.pair("", Beat {}, 5000);
    list.pair("", Goodbye {}, ());
    let counters = [
        ("reads", 0),
        ("bytes_read", u64::MAX),
        ("größte_anfrage", 1),
    ];
    let counters = counters.map(|(name, value)| Counter {
        name: name.into(),
        value,
    });
    list.pair("", Statistics {}, counters.into());
    list.pair("", Shutdown {}, ());
    list.pair("", GetSupervisor {}, Some("{}".into()));
    list.pair("alone", GetSupervisor {}, None);
}
