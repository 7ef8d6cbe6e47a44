//! [`Channel`]: an array that goes from one program to another, turn after turn, each with its own distribution.
//!
//! No file is stored. Both programs open the channel by the same name at the same service, and plan once; then
//! [`ChannelSource::put`] and [`ChannelTarget::get`] move what each member gives and wants.

use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

use client::{
    ChannelArray, ChannelMode, ChannelOptions, Client, Error, Result, SharedBytes, SharedBytesMut,
    Team, View,
};
use layout::{ArrayType, FileOffset, Layout, Order};

use crate::element::Element;

/// A channel to be opened.
///
/// ```
/// # fn main() -> pario::Result<()> {
/// # let dir = std::env::temp_dir().join(format!("pario-doc-channel-{}", std::process::id()));
/// # let url = format!("dir:{}", dir.display());
/// // Two programs; here each is a thread, and has one member.
/// std::thread::scope(|scope| {
///     let simulation = scope.spawn(|| -> pario::Result<()> {
///         let pario = pario::connect(&url)?;
///         let out = pario.channel::<f64>("heat", &[4, 6]).double_buffered();
///         let out = out.source(&pario::Team::alone(), "(block, *) onto 1")?;
///         for step in 0..3 {
///             out.put(&[f64::from(step); 24])?;
///         }
///         out.close()
///     });
///     let pario = pario::connect(&url)?;
///     let channel = pario.channel::<f64>("heat", &[4, 6]);
///     let picture = channel.target(&pario::Team::alone(), "(*, block) onto 1")?;
///     let mut sum = 0.0;
///     while let Some(values) = picture.get()? {
///         sum += values[5];
///     }
///     assert_eq!(sum, 3.0);
///     simulation.join().unwrap()
/// })?;
/// # std::fs::remove_dir_all(&dir).ok();
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use = "nothing is opened before `source` or `target`"]
pub struct Channel<'a, T> {
    client: &'a Client,
    name: String,
    shape: Vec<u64>,
    order: Order,
    buffering: ChannelMode,
    options: ChannelOptions,
    of: PhantomData<fn() -> T>,
}

impl<'a, T: Element> Channel<'a, T> {
    pub(crate) fn new(client: &'a Client, name: &str, shape: &[u64]) -> Self {
        Channel {
            client,
            name: name.into(),
            shape: shape.to_vec(),
            order: Order::C,
            buffering: ChannelMode::Blocking,
            options: ChannelOptions::default(),
            of: PhantomData,
        }
    }

    /// In which order entries lie in the array; the last index fastest if not said. Both programs say the same.
    pub fn order(self, order: Order) -> Self {
        Channel { order, ..self }
    }

    /// A `put` returns when its values are in one of two buffers, while the other program may still read the turn before;
    /// else it returns when the other program has taken them. The program that gives says so.
    pub fn double_buffered(self) -> Self {
        Channel {
            buffering: ChannelMode::Double,
            ..self
        }
    }

    /// How long to wait for the other program: a minute if not said, without a limit if there is none.
    pub fn patience(self, patience: impl Into<Option<Duration>>) -> Self {
        Channel {
            options: self.options.with_patience(patience),
            ..self
        }
    }

    /// Opens the side that gives. All members of the program call it, and it returns when the other program has come. The
    /// part of a member is the element of the layout by its rank, or the one that the layout picks.
    pub fn source(self, team: &Team, layout: &str) -> Result<ChannelSource<T>> {
        let mine = self.array(team, layout);
        let (client, name) = (self.client, &self.name);
        let channel =
            client::ChannelSource::open(client, team, name, mine, self.buffering, &self.options)?;
        Ok(ChannelSource {
            channel,
            of: PhantomData,
        })
    }

    /// Opens the side that takes. All members of the program call it, and it returns when the other program has come. The
    /// part of a member is the element of the layout by its rank, or the one that the layout picks.
    pub fn target(self, team: &Team, layout: &str) -> Result<ChannelTarget<T>> {
        let mine = self.array(team, layout);
        let channel =
            client::ChannelTarget::open(self.client, team, &self.name, mine, &self.options)?;
        Ok(ChannelTarget {
            channel,
            of: PhantomData,
        })
    }

    /// The array with this member's part.
    fn array(&self, team: &Team, layout: &str) -> Result<ChannelArray> {
        let array = ArrayType::new(T::TYPE, self.shape.clone(), self.order)?;
        let layout: Layout = layout.parse()?;
        let picked = match layout.picked() {
            Some(_) => layout,
            None => layout.pick(team.rank() as u64)?,
        };
        let applied = picked.on_array(&array)?;
        let set = applied.element(0)?;
        let view = View::new(FileOffset(0), applied.period().max(1), set)?;
        ChannelArray::new(array, view)
    }
}

/// Entries of so many bytes.
fn entries<T: Element>(bytes: u64) -> usize {
    (bytes / T::TYPE.size()) as usize
}

fn check_length<T: Element>(given: usize, bytes: u64) -> Result<()> {
    if given == entries::<T>(bytes) {
        return Ok(());
    }
    Err(Error::Argument {
        name: "values",
        text: format!(
            "{given}, but this member's part has {} entries; give as many",
            entries::<T>(bytes)
        ),
    })
}

/// The side of a channel that gives. Dropped without [`ChannelSource::close`] it ends the waits of the other program with an
/// error.
pub struct ChannelSource<T> {
    channel: client::ChannelSource,
    of: PhantomData<fn() -> T>,
}

impl<T> fmt::Debug for ChannelSource<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.channel.fmt(f)
    }
}

impl<T: Element> ChannelSource<T> {
    /// Number of entries of this member's part.
    pub fn len(&self) -> usize {
        entries::<T>(self.channel.part_bytes())
    }

    /// Whether this member has nothing to give. It takes part all the same.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Turns given so far.
    pub fn turns(&self) -> u64 {
        self.channel.turns()
    }

    /// Gives the values of the next turn, in the order of the array. A call that is refused for their number gives none.
    pub fn put(&self, values: &[T]) -> Result<()> {
        check_length::<T>(values.len(), self.channel.part_bytes())?;
        self.channel.put(SharedBytes::from_slice(T::bytes(values)))
    }

    /// Waits until the other program has taken everything, and lets it know that there is no more.
    pub fn close(self) -> Result<()> {
        self.channel.close()
    }
}

/// The side of a channel that takes. Dropped without [`ChannelTarget::close`] it ends the waits of the other program with an
/// error.
pub struct ChannelTarget<T> {
    channel: client::ChannelTarget,
    of: PhantomData<fn() -> T>,
}

impl<T> fmt::Debug for ChannelTarget<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.channel.fmt(f)
    }
}

impl<T: Element> ChannelTarget<T> {
    /// Number of entries of this member's part.
    pub fn len(&self) -> usize {
        entries::<T>(self.channel.part_bytes())
    }

    /// Whether this member wants nothing. It takes part all the same.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Turns taken so far.
    pub fn turns(&self) -> u64 {
        self.channel.turns()
    }

    /// Takes the next turn, in the order of the array; nothing when the other program has closed the channel. Entries that
    /// nobody gives are 0.
    pub fn get(&self) -> Result<Option<Vec<T>>> {
        let mut values = vec![T::ZERO; self.len()];
        let turn = self.get_into(&mut values)?;
        Ok(turn.map(|_| values))
    }

    /// Takes the next turn into memory that the program has: its number, from 0 on. At the end the memory is left alone.
    pub fn get_into(&self, values: &mut [T]) -> Result<Option<u64>> {
        check_length::<T>(values.len(), self.channel.part_bytes())?;
        let mut turn = Ok(None);
        let filled = T::fill(values, |bytes| {
            turn = self.channel.get(SharedBytesMut::from_slice(bytes));
            match &turn {
                Ok(Some(_)) => Ok(bytes.len()),
                // The values stay as they are.
                Ok(None) => Err(Error::Closed),
                Err(error) => Err(error.clone()),
            }
        });
        let turn = turn?;
        match turn {
            Some(_) => filled.map(|()| turn),
            None => Ok(None),
        }
    }

    /// Takes no more; a program that goes on giving is told.
    pub fn close(self) -> Result<()> {
        self.channel.close()
    }
}
