//! [`ScalarFile`]: a file of the front end, which is on all members (A-14, L-20): one member does what is asked, and all have the
//! result.
//!
//! All members call the same operations with the same arguments, as scalar code does.

use std::io::SeekFrom;

use client::{Client, Error, File, OpenOptions, Result, Team};

use crate::agreement::{self, another_call};

/// A file of the front end, open at all members.
#[derive(Debug)]
pub struct ScalarFile {
    team: Team,
    /// At rank 0.
    file: Option<File>,
}

impl ScalarFile {
    /// Opens a file, once.
    pub fn open(
        client: &Client,
        team: &Team,
        path: &str,
        options: &OpenOptions,
    ) -> Result<ScalarFile> {
        let opened = match team.rank() {
            0 => client.open(path, options).map(Some),
            _ => Ok(None),
        };
        let failed = opened.as_ref().err().cloned();
        agreement::tell(team, failed.map_or(Ok(Vec::new()), Err))?;
        Ok(ScalarFile {
            team: team.clone(),
            file: opened?,
        })
    }

    /// Has rank 0 do something, and all know what came of it.
    fn once(&self, act: impl FnOnce(&File) -> Result<Vec<u8>>) -> Result<Vec<u8>> {
        let mine = self.file.as_ref().map_or(Ok(Vec::new()), act);
        let mut told = agreement::tell(&self.team, mine)?;
        Ok(told.swap_remove(0))
    }

    fn number(told: &[u8]) -> Result<u64> {
        let bytes = told.try_into().map_err(|_| another_call())?;
        Ok(u64::from_le_bytes(bytes))
    }

    /// Writes at the position, once.
    pub fn write(&self, bytes: &[u8]) -> Result<usize> {
        let told = self.once(|file| Ok((file.write(bytes)? as u64).to_le_bytes().to_vec()))?;
        Ok(Self::number(&told)? as usize)
    }

    /// Reads up to so many bytes at the position; all members get them.
    pub fn read(&self, most: usize) -> Result<Vec<u8>> {
        if most > self.team.most_bytes() {
            return Err(Error::Argument {
                name: "most",
                text: format!("{most}; this team gives at most {}", self.team.most_bytes()),
            });
        }
        self.once(|file| {
            let mut bytes = vec![0; most];
            let read = file.read(&mut bytes)?;
            bytes.truncate(read);
            Ok(bytes)
        })
    }

    /// Moves the position; where it is then.
    pub fn seek(&self, to: SeekFrom) -> Result<u64> {
        let told = self.once(|file| Ok(file.seek(to)?.to_le_bytes().to_vec()))?;
        Self::number(&told)
    }

    /// Closes it.
    pub fn close(self) -> Result<()> {
        self.once(|file| {
            file.sync()?;
            file.close()?;
            Ok(Vec::new())
        })
        .map(drop)
    }
}
