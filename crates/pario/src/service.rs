//! [`Pario`]: a connection, and everything that goes by path names.
//!
//! Paths are any UTF-8 with `/` between names, from the root of the service on. What is not here has [`Pario::client`].

use client::{
    Client, FileLayout, JointTeam, Kind, Listing, Metadata, MoveOptions, OpenOptions, Relayout,
    Result, Status, Team,
};

use crate::array::Array;
use crate::channel::Channel;
use crate::create_array::CreateArray;
use crate::element::Element;
use crate::open_file::OpenFile;

/// A connection to a service, a directory or the servers of a job. Clones are the same connection, threads may share it, and
/// it ends with the last clone and the last open file.
#[derive(Clone, Debug)]
pub struct Pario {
    client: Client,
}

impl Pario {
    pub(crate) fn of(client: Client) -> Pario {
        Pario { client }
    }

    /// The client below, for servers, profiles, hints that are kept, and whatever else has no place here.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Describes a new array; [`CreateArray::create`] creates it.
    pub fn create_array<T: Element>(&self, path: &str, shape: &[u64]) -> CreateArray<'_, T> {
        CreateArray::new(&self.client, path, shape)
    }

    /// Opens an array for reading and writing.
    pub fn open_array<T: Element>(&self, path: &str) -> Result<Array<T>> {
        Array::open(&self.client, path, OpenOptions::new().read().write())
    }

    /// Opens an array for reading only.
    pub fn read_array<T: Element>(&self, path: &str) -> Result<Array<T>> {
        Array::open(&self.client, path, OpenOptions::new().read())
    }

    /// Describes how a file is opened; [`OpenFile::open`] opens it.
    ///
    /// ```no_run
    /// # fn main() -> pario::Result<()> {
    /// # let pario = pario::connect_default()?;
    /// let log = pario.file("/run/log").write().create().open()?;
    /// log.append(b"step 1\n")?;
    /// log.close()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn file(&self, path: &str) -> OpenFile<'_> {
        OpenFile::new(&self.client, path)
    }

    /// The names in a directory, ascending, fetched in parts while they are consumed.
    pub fn list(&self, path: &str) -> Result<Listing> {
        self.client.list(path)
    }

    /// Makes a directory and those above it; one that exists is fine.
    pub fn make_directory(&self, path: &str) -> Result<()> {
        self.client.mkdir_all(path, None)
    }

    /// Removes a file or an empty directory. The bytes of a file go when nobody has it open any more.
    pub fn remove(&self, path: &str) -> Result<()> {
        match self.client.attributes(path)?.kind {
            Kind::Directory => self.client.rmdir(path),
            _ => self.client.unlink(path),
        }
    }

    /// Gives a file or directory another name. What has that name is replaced, in one step.
    pub fn rename(&self, from: &str, to: &str) -> Result<()> {
        self.client.rename(from, to)
    }

    /// Kind, size, owner, permissions and times.
    pub fn stat(&self, path: &str) -> Result<Metadata> {
        self.client.stat(path)
    }

    /// Whether there is a file or directory of this name.
    pub fn exists(&self, path: &str) -> Result<bool> {
        match self.client.attributes(path) {
            Ok(_) => Ok(true),
            Err(e) if e.status() == Status::NotFound => Ok(false),
            Err(e) => Err(e),
        }
    }

    /// How a file is laid out, which servers have it, and why.
    pub fn layout(&self, path: &str) -> Result<FileLayout> {
        self.client.layout(path)
    }

    /// Begins to move a file into another layout; it is used as ever meanwhile. [`Relayout::wait`] waits for the end,
    /// [`Relayout::progress`] tells how far it is.
    pub fn relayout(&self, path: &str, layout: &str) -> Result<Relayout> {
        self.relayout_with(path, layout, &MoveOptions::default())
    }

    /// Begins to move a file, no faster than the options say, or in little space.
    pub fn relayout_with(
        &self,
        path: &str,
        layout: &str,
        options: &MoveOptions,
    ) -> Result<Relayout> {
        self.client.relayout_with(path, layout, options)
    }

    /// Joins a team of processes of one user: all give the same name and size, each a rank of its own, counted from 0.
    /// Returns when all are there. Threads of one process have [`Team::threads`].
    pub fn team(&self, name: &str, rank: usize, size: usize) -> Result<Team> {
        Team::processes(&self.client, name, rank, size)
    }

    /// Joins a team of any processes or threads of one user that come with this name and size; ranks are given in the order in
    /// which they come. Returns when all are there. Members send each other messages and do things together:
    ///
    /// ```
    /// # fn main() -> pario::Result<()> {
    /// # let dir = std::env::temp_dir().join(format!("pario-doc-team-{}", std::process::id()));
    /// # let url = format!("dir:{}", dir.display());
    /// use pario::Reduction;
    /// let member = || -> pario::Result<u64> {
    ///     let team = pario::connect(&url)?.join_team("workers", 3)?;
    ///     let sum = team.all_reduce(&[team.rank() as u64], Reduction::Sum)?;
    ///     match team.rank() {
    ///         0 => assert_eq!(team.receive(None, 7)?.bytes, b"done"),
    ///         1 => team.send(0, 7, b"done")?,
    ///         _ => {}
    ///     }
    ///     Ok(sum[0])
    /// };
    /// // Here in threads; processes on any hosts do the same.
    /// std::thread::scope(|scope| {
    ///     let all = [(); 3].map(|()| scope.spawn(member));
    ///     all.map(|thread| assert_eq!(thread.join().unwrap().unwrap(), 3));
    /// });
    /// # std::fs::remove_dir_all(&dir).ok();
    /// # Ok(())
    /// # }
    /// ```
    pub fn join_team(&self, name: &str, size: usize) -> Result<Team> {
        Team::join(&self.client, name, size)
    }

    /// Lets a team meet another that gives the same name; all members of both call it. Members of the one then exchange
    /// messages with members of the other.
    pub fn meet_team(&self, team: &Team, name: &str) -> Result<JointTeam> {
        team.meet_team(&self.client, name)
    }

    /// Describes a channel, through which an array goes from one program to another without a file; [`Channel::source`] and
    /// [`Channel::target`] open its sides. Both programs give the same name, entries and shape.
    pub fn channel<T: Element>(&self, name: &str, shape: &[u64]) -> Channel<'_, T> {
        Channel::new(&self.client, name, shape)
    }
}
