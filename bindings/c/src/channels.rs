//! Channels: an array goes from one program to another, turn after turn, each in its own distribution, without a file.
//!
//! Both programs open the channel by one name, and plan once. Parts are packed in memory, in the order of the array. A channel
//! holds its client, and is closed with it.

use std::ffi::c_int;
use std::time::Duration;

use client::{ChannelArray, ChannelMode, ChannelOptions, ChannelSource, ChannelTarget};
use layout::ArrayType;
use parking_lot::Mutex;

use crate::connect::Connection;
use crate::entry::{Failure, Outcome, answer};
use crate::ffi::{Address, ConstAddress, In, Out, Text};
use crate::structs::*;
use crate::table::Handle;
use crate::teams::Member;
use crate::views::ViewValue;

/// A side of a channel.
#[derive(Debug)]
enum Side {
    Source(Box<ChannelSource>),
    Target(Box<ChannelTarget>),
}

/// A channel of the program; nothing once it is closed.
#[derive(Debug)]
pub(crate) struct Channel(Mutex<Option<Side>>);

impl Channel {
    fn new(side: Side) -> Channel {
        Channel(Mutex::new(Some(side)))
    }

    /// Runs something with the side; calls of several threads go one after the other.
    fn with<T>(&self, work: impl FnOnce(&Side) -> Outcome<T>) -> Outcome<T> {
        let side = self.0.lock();
        let closed = || Failure::new(client::Status::BadHandle, "channel: is closed");
        work(side.as_ref().ok_or_else(closed)?)
    }
}

/// What a member says when it opens a side.
struct SideRequest {
    name: String,
    buffering: ChannelMode,
    how: ChannelOptions,
    mine: client::Result<ChannelArray>,
}

impl SideRequest {
    /// What is wrong here is told to the other members, who would wait.
    fn new(
        name: Text,
        array: Text,
        part: Handle<ViewValue>,
        options: In<pario_channel_options>,
    ) -> SideRequest {
        let mut asked = SideRequest {
            name: String::new(),
            buffering: ChannelMode::Blocking,
            how: ChannelOptions::default(),
            mine: Err(client::Error::Closed),
        };
        let mine = (|| {
            asked.name = name.required("name")?;
            let given = options.get("options")?;
            if given.timeout_ms > 0 {
                let patience = Duration::from_millis(given.timeout_ms);
                asked.how = asked.how.with_patience(patience);
            }
            asked.buffering = match given.buffering {
                PARIO_BLOCKING => ChannelMode::Blocking,
                PARIO_DOUBLE_BUFFERED => ChannelMode::Double,
                other => {
                    let text = format!("is {other}; give PARIO_BLOCKING or PARIO_DOUBLE_BUFFERED");
                    return Err(Failure::argument("buffering", text));
                }
            };
            let array = array.required("array")?.parse::<ArrayType>();
            let array = array.map_err(|e| Failure::argument("array", e.to_string()))?;
            Ok(ChannelArray::new(array, part.get()?.0.clone())?)
        })();
        asked.mine = mine.map_err(|why| client::Error::Refused {
            status: why.status,
            text: why.text,
            server: None,
        });
        asked
    }
}

/// Opens the side of a channel that gives; all members of both programs call theirs.
#[unsafe(no_mangle)]
extern "C" fn pario_channel_source(
    client: Handle<Connection>,
    team: Handle<Member>,
    name: Text,
    array: Text,
    part: Handle<ViewValue>,
    options: In<pario_channel_options>,
    channel: Out<Handle<Channel>>,
) -> c_int {
    answer("pario_channel_source", || {
        channel.required("channel")?.set(Handle::NULL);
        let (connection, member) = (client.get()?, team.get()?);
        member.wait();
        let SideRequest {
            name,
            buffering,
            how,
            mine,
        } = SideRequest::new(name, array, part, options);
        let (connection, team) = (&connection.0, &member.team);
        let side = ChannelSource::open(connection, team, &name, mine, buffering, &how)?;
        channel.set(Handle::enter(
            Channel::new(Side::Source(Box::new(side))),
            client,
        )?);
        Ok(())
    })
}

/// Opens the side of a channel that takes; all members of both programs call theirs.
#[unsafe(no_mangle)]
extern "C" fn pario_channel_target(
    client: Handle<Connection>,
    team: Handle<Member>,
    name: Text,
    array: Text,
    part: Handle<ViewValue>,
    options: In<pario_channel_options>,
    channel: Out<Handle<Channel>>,
) -> c_int {
    answer("pario_channel_target", || {
        channel.required("channel")?.set(Handle::NULL);
        let (connection, member) = (client.get()?, team.get()?);
        member.wait();
        let mut asked = SideRequest::new(name, array, part, options);
        if asked.buffering != ChannelMode::Blocking {
            asked.mine = Err(client::Error::Argument {
                name: "buffering",
                text: "is said by the program that gives; leave it 0 here".into(),
            });
        }
        let (connection, team) = (&connection.0, &member.team);
        let SideRequest {
            name, how, mine, ..
        } = asked;
        let side = ChannelTarget::open(connection, team, &name, mine, &how)?;
        channel.set(Handle::enter(
            Channel::new(Side::Target(Box::new(side))),
            client,
        )?);
        Ok(())
    })
}

/// Bytes of this member's part, members of the other program, and turns given or taken so far.
#[unsafe(no_mangle)]
extern "C" fn pario_channel_about(
    channel: Handle<Channel>,
    part_bytes: Out<u64>,
    other_size: Out<c_int>,
    turns: Out<u64>,
) -> c_int {
    answer("pario_channel_about", || {
        channel.get()?.with(|side| {
            let (bytes, others, so_far) = match side {
                Side::Source(side) => (side.part_bytes(), side.other_size(), side.turns()),
                Side::Target(side) => (side.part_bytes(), side.other_size(), side.turns()),
            };
            part_bytes.set(bytes);
            other_size.set(others as c_int);
            turns.set(so_far);
            Ok(())
        })
    })
}

/// Gives this member's part of the next turn.
#[unsafe(no_mangle)]
extern "C" fn pario_channel_put(
    channel: Handle<Channel>,
    from: ConstAddress,
    bytes: usize,
) -> c_int {
    answer("pario_channel_put", || {
        let from = from.source("from", bytes)?;
        channel.get()?.with(|side| match side {
            Side::Source(source) => Ok(source.put(from)?),
            Side::Target(_) => Err(Failure::argument(
                "channel",
                "takes; put in the other program",
            )),
        })
    })
}

/// Takes this member's part of the next turn, if the other program has not closed the channel.
#[unsafe(no_mangle)]
extern "C" fn pario_channel_get(
    channel: Handle<Channel>,
    to: Address,
    bytes: usize,
    has_come: Out<c_int>,
) -> c_int {
    answer("pario_channel_get", || {
        has_come.required("has_come")?.set(0);
        let to = to.target("to", bytes)?;
        channel.get()?.with(|side| match side {
            Side::Target(target) => {
                has_come.set(c_int::from(target.get(to)?.is_some()));
                Ok(())
            }
            Side::Source(_) => Err(Failure::argument(
                "channel",
                "gives; get in the other program",
            )),
        })
    })
}

/// Closes a side of a channel; one that gives waits until the other has taken everything.
#[unsafe(no_mangle)]
extern "C" fn pario_channel_close(channel: Handle<Channel>) -> c_int {
    answer("pario_channel_close", || {
        let side = channel.close()?.0.lock().take();
        match side {
            Some(Side::Source(source)) => Ok(source.close()?),
            Some(Side::Target(target)) => Ok(target.close()?),
            None => Ok(()),
        }
    })
}
