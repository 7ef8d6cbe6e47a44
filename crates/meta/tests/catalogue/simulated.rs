//! A disk that forgets: what was written since the last sync may be lost, kept or torn.
//!
//! A crash comes after a chosen number of operations; from then on every operation fails. The image
//! that is found afterwards is the last synced one with some of the later writes, each lost, kept or
//! kept in some of its 512-byte sectors, in any order, and with the old or the new length.
//!
//! A sync can be told to fail. It then forgets what was written since the last one, though readers still see it, as
//! Linux does: only what is written again becomes durable.

use std::io;
use std::sync::{Arc, Mutex};

use meta::catalogue::StorageBackend;
use random::Random;

const SECTOR: usize = 512;

#[derive(Debug, Default)]
struct Image {
    live: Vec<u8>,
    durable: Vec<u8>,
    unsynced: Vec<(usize, Vec<u8>)>,
    /// Operations until everything fails.
    left: Option<u64>,
    crashed: bool,
    /// Syncs until one fails.
    syncs_left: Option<u64>,
}

/// A handle on the disk; clones are the same disk.
#[derive(Clone, Debug, Default)]
pub(crate) struct Disk(Arc<Mutex<Image>>);

impl Disk {
    /// A disk with this content.
    pub(crate) fn with(content: Vec<u8>) -> Self {
        Disk(Arc::new(Mutex::new(Image {
            live: content.clone(),
            durable: content,
            ..Image::default()
        })))
    }

    /// The content as a running program sees it.
    pub(crate) fn content(&self) -> Vec<u8> {
        self.0.lock().unwrap().live.clone()
    }

    /// Fails everything after `operations` more.
    pub(crate) fn crash_after(&self, operations: u64) {
        self.0.lock().unwrap().left = Some(operations);
    }

    /// Lets the sync after `syncs` more fail, once.
    pub(crate) fn fail_sync_after(&self, syncs: u64) {
        self.0.lock().unwrap().syncs_left = Some(syncs);
    }

    /// Whether that sync is still to come.
    pub(crate) fn is_to_fail(&self) -> bool {
        self.0.lock().unwrap().syncs_left.is_some()
    }

    /// What is found after a power cut that takes everything that was not synced.
    pub(crate) fn after_power_cut(&self) -> Disk {
        Disk::with(self.0.lock().unwrap().durable.clone())
    }

    /// Whether the crash has come.
    pub(crate) fn has_crashed(&self) -> bool {
        self.0.lock().unwrap().crashed
    }

    /// What is found after the crash.
    pub(crate) fn after_crash(&self, random: &mut Random) -> Disk {
        let image = self.0.lock().unwrap();
        let mut found = image.durable.clone();
        let grown = image.live.len().max(image.durable.len());
        found.resize(grown, 0);
        // Once in a while everything made it, though nobody was told.
        let all_kept = random.below(8) == 0;
        for (at, data) in &image.unsynced {
            let fate = if all_kept { 1 } else { random.below(3) };
            for (i, sector) in data.chunks(SECTOR).enumerate() {
                if fate == 1 || (fate == 2 && random.below(2) == 0) {
                    let at = at + i * SECTOR;
                    if at + sector.len() <= found.len() {
                        found[at..at + sector.len()].copy_from_slice(sector);
                    }
                }
            }
        }
        let len = *random.pick(&[image.live.len(), image.durable.len()]);
        found.resize(len, 0);
        Disk::with(found)
    }

    fn operation<T>(&self, work: impl FnOnce(&mut Image) -> T) -> io::Result<T> {
        let mut image = self.0.lock().unwrap();
        if image.left == Some(0) {
            image.crashed = true;
        }
        if image.crashed {
            return Err(io::Error::other("the simulated disk has crashed"));
        }
        if let Some(left) = &mut image.left {
            *left -= 1;
        }
        Ok(work(&mut image))
    }
}

impl StorageBackend for Disk {
    fn len(&self) -> io::Result<u64> {
        self.operation(|image| image.live.len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.operation(|image| {
            let at = offset as usize;
            out.copy_from_slice(&image.live[at..at + out.len()]);
        })
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.operation(|image| image.live.resize(len as usize, 0))
    }

    fn sync_data(&self) -> io::Result<()> {
        self.operation(|image| {
            let unsynced = std::mem::take(&mut image.unsynced);
            let fails = image.syncs_left == Some(0);
            image.syncs_left = image.syncs_left.and_then(|n| n.checked_sub(1));
            if fails {
                return Err(io::Error::other("the simulated sync fails"));
            }
            let len = image.live.len();
            image.durable.resize(len, 0);
            for (at, data) in unsynced.into_iter().filter(|(at, _)| *at < len) {
                let end = (at + data.len()).min(len);
                image.durable[at..end].copy_from_slice(&data[..end - at]);
            }
            Ok(())
        })?
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.operation(|image| {
            let at = offset as usize;
            image.live[at..at + data.len()].copy_from_slice(data);
            image.unsynced.push((at, data.to_vec()));
        })
    }
}
