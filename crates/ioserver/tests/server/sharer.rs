//! A client of direct access, played by hand: page, table, segments, and copies inside claims.
//!
//! It does what it is told, also what a client must not do.

use std::collections::HashMap;
use std::ops::Range;
use std::os::fd::AsFd;

use ::direct::{Claim, ClientPage, ClientTable, MappedSegment};
use kernels::{SharedBytes, SharedBytesMut};
use wire::ask::AskError;
use wire::link::Link;
use wire::message::Bytes;
use wire::message::direct::{Attach, Map, MapAnswer, MappedExtent, READ_ONLY, SubfileRange};

use crate::rig::{Client, File};

/// A connection that shares memory with one server.
pub(crate) struct Sharer {
    pub(crate) link: Link,
    pub(crate) table: ClientTable,
    pub(crate) page: ClientPage,
    pub(crate) segments: HashMap<u64, MappedSegment>,
}

impl Sharer {
    pub(crate) fn attach(client: &mut Client, server: u64) -> Result<Sharer, AskError> {
        let role = client.role();
        let (mut link, _) = client.connect(server, role)?;
        link.expect_descriptors();
        let attached = link.ask(20, &Attach {}, &mut Vec::new())?;
        let descriptors = link.take_descriptors();
        let [table, page] = &descriptors[..] else {
            panic!("two descriptors, not {}", descriptors.len());
        };
        Ok(Sharer {
            link,
            table: ClientTable::map(table.as_fd(), attached.table_bytes).unwrap(),
            page: ClientPage::map(page.as_fd(), attached.page_bytes).unwrap(),
            segments: HashMap::new(),
        })
    }

    pub(crate) fn map(
        &mut self,
        file: &File,
        view: u64,
        writes: bool,
        ranges: &[(u32, u64, u64)],
    ) -> Result<MapAnswer, AskError> {
        let mut version = Vec::new();
        file.state.version().put(&mut version);
        let request = Map {
            view,
            version: Bytes(version),
            epoch: file.epoch,
            writes,
            ranges: ranges
                .iter()
                .map(|&(subfile, start, end)| SubfileRange {
                    store: file.state.pieces[0].generation,
                    subfile,
                    start,
                    end,
                })
                .collect(),
        };
        self.ask(&request)
    }

    pub(crate) fn ask(&mut self, request: &Map) -> Result<MapAnswer, AskError> {
        let mapped = self.link.ask(21, request, &mut Vec::new())?;
        let descriptors = self.link.take_descriptors();
        assert_eq!(descriptors.len(), mapped.segments.len());
        for (segment, file) in mapped.segments.iter().zip(&descriptors) {
            let is_writable = segment.is_writable;
            let mapping = MappedSegment::map(file.as_fd(), segment.bytes, is_writable).unwrap();
            // A descriptor for reading is good for nothing else.
            let other = MappedSegment::map(file.as_fd(), segment.bytes, true);
            assert_eq!(other.is_ok(), is_writable);
            self.segments.insert(segment.segment, mapping);
        }
        for gone in &mapped.gone {
            self.segments.remove(gone);
        }
        Ok(mapped)
    }

    pub(crate) fn claim(&self, mapped: &MapAnswer, writes: bool) -> Claim<'_> {
        let claim = self.page.claim(mapped.entry, mapped.epoch, writes);
        claim.expect("a free slot")
    }

    pub(crate) fn is_current(&self, mapped: &MapAnswer) -> bool {
        self.table
            .is_current(mapped.entry, mapped.epoch, mapped.step)
    }

    /// The extents of a range: each with the place in its segment and the part of the range it has.
    fn find(
        mapped: &MapAnswer,
        subfile: u32,
        range: Range<u64>,
    ) -> Vec<(&MappedExtent, u64, Range<usize>)> {
        let mut found = Vec::new();
        let mut at = range.start;
        while at < range.end {
            let holds =
                |e: &&MappedExtent| e.subfile == subfile && e.offset <= at && at < e.offset + e.len;
            let extent = mapped.extents.iter().find(holds).expect("mapped");
            let end = range.end.min(extent.offset + extent.len);
            let part = (at - range.start) as usize..(end - range.start) as usize;
            found.push((extent, extent.at + at - extent.offset, part));
            at = end;
        }
        found
    }

    /// Sets the marks of extents, if they have any.
    pub(crate) fn mark(&self, mapped: &MapAnswer, subfile: u32, range: Range<u64>) {
        for (extent, ..) in Sharer::find(mapped, subfile, range) {
            assert_ne!(extent.mark, READ_ONLY);
            if let Some(mark) = extent.mark.checked_sub(1) {
                self.page.mark(mark);
            }
        }
    }

    /// Says how far a subfile is about to be stored into.
    pub(crate) fn raise_end(&self, mapped: &MapAnswer, subfile: u32, to: u64) {
        let end = mapped.ends.iter().find(|end| end.subfile == subfile);
        self.page
            .raise_end(end.expect("may be stored into").end, to);
    }

    /// Stores into extents without asking or telling anybody.
    pub(crate) fn store(&self, mapped: &MapAnswer, subfile: u32, offset: u64, data: &[u8]) {
        let range = offset..offset + data.len() as u64;
        for (extent, at, part) in Sharer::find(mapped, subfile, range) {
            let target = self.segments[&extent.segment].bytes_mut(at, part.len() as u64);
            target.copy_from(SharedBytes::from_slice(&data[part]));
        }
    }

    /// Loads from extents without asking anybody.
    pub(crate) fn load(&self, mapped: &MapAnswer, subfile: u32, offset: u64, len: u64) -> Vec<u8> {
        let mut data = vec![0; len as usize];
        for (extent, at, part) in Sharer::find(mapped, subfile, offset..offset + len) {
            let source = self.segments[&extent.segment].bytes(at, part.len() as u64);
            SharedBytesMut::from_slice(&mut data[part]).copy_from(source);
        }
        data
    }

    /// A write as a client does it; whether it counts.
    pub(crate) fn write(&self, mapped: &MapAnswer, subfile: u32, offset: u64, data: &[u8]) -> bool {
        let claim = self.claim(mapped, true);
        if !self.is_current(mapped) {
            return false;
        }
        self.mark(mapped, subfile, offset..offset + data.len() as u64);
        self.raise_end(mapped, subfile, offset + data.len() as u64);
        self.store(mapped, subfile, offset, data);
        claim.end()
    }

    /// A read as a client does it.
    pub(crate) fn read(
        &self,
        mapped: &MapAnswer,
        subfile: u32,
        offset: u64,
        len: u64,
    ) -> Option<Vec<u8>> {
        let claim = self.claim(mapped, false);
        if !self.is_current(mapped) {
            return None;
        }
        let data = self.load(mapped, subfile, offset, len);
        claim.end().then_some(data)
    }
}
