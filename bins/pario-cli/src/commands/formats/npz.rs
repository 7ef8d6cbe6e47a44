//! `.npz`: a ZIP file whose members are `.npy` files, as `numpy.savez` writes them.
//!
//! Members that are not compressed are ranges of bytes, and are read in place. Large ones (ZIP64) are read and written like small ones.

use std::fs::File;
use std::io::{BufWriter, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;

use crate::commands::Error;

const LOCAL: u32 = 0x0403_4b50;
const CENTRAL: u32 = 0x0201_4b50;
const END: u32 = 0x0605_4b50;
const END_64: u32 = 0x0606_4b50;
const LOCATOR_64: u32 = 0x0706_4b50;
/// Stands where a number is in the ZIP64 field.
const ELSEWHERE: u32 = u32::MAX;

/// One file in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Member {
    /// Its name, without `.npy`.
    pub(crate) name: String,
    /// Where its bytes begin in the file, and how many they are.
    pub(crate) start: u64,
    pub(crate) len: u64,
    pub(crate) is_compressed: bool,
}

/// Numbers, one after the other.
struct Fields<'b>(&'b [u8]);

impl Fields<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        let (first, rest) = self.0.split_first_chunk().ok_or("it ends too early")?;
        self.0 = rest;
        Ok(*first)
    }

    fn two(&mut self) -> Result<u16, Error> {
        self.take().map(u16::from_le_bytes)
    }

    fn four(&mut self) -> Result<u32, Error> {
        self.take().map(u32::from_le_bytes)
    }

    fn eight(&mut self) -> Result<u64, Error> {
        self.take().map(u64::from_le_bytes)
    }
}

fn bytes_at(file: &File, at: u64, len: usize) -> Result<Vec<u8>, Error> {
    let mut bytes = vec![0; len];
    let read = file.read_exact_at(&mut bytes, at);
    read.map_err(|e| -> Error { format!("it is no whole ZIP file: {e}").into() })?;
    Ok(bytes)
}

/// Most bytes of a directory of members.
const MOST_DIRECTORY: u64 = 256 << 20;

/// All members.
pub(crate) fn members(file: &File) -> Result<Vec<Member>, Error> {
    let size = file.metadata().map_err(|e| e.to_string())?.len();
    let (count, mut rest) = directory(file, size)?;
    let mut all = Vec::new();
    for _ in 0..count {
        let mut fields = Fields(&rest);
        if fields.four()? != CENTRAL {
            return Err("its directory is damaged".into());
        }
        fields.take::<6>()?; // versions, flags
        let method = fields.two()?;
        fields.take::<8>()?; // time, checksum
        let (packed, len) = (fields.four()?, fields.four()?);
        let (name_len, extra_len, comment_len) = (fields.two()?, fields.two()?, fields.two()?);
        fields.take::<8>()?; // disk, attributes
        let at = fields.four()?;
        let tail = fields.0;
        let (name_len, extra_len) = (usize::from(name_len), usize::from(extra_len));
        let used = name_len + extra_len + usize::from(comment_len);
        let name = tail.get(..name_len).ok_or("its directory is damaged")?;
        let extra = tail
            .get(name_len..name_len + extra_len)
            .ok_or("its directory is damaged")?;
        let [len, _, at] = wide([len, packed, at], extra)?;
        let next = tail.get(used..).ok_or("its directory is damaged")?.to_vec();
        let name = String::from_utf8_lossy(name);
        let name = name.strip_suffix(".npy").unwrap_or(&name).to_owned();
        // The local head has names and fields of its own length.
        let head = bytes_at(file, at, 30)?;
        let mut fields = Fields(&head);
        if fields.four()? != LOCAL {
            return Err("a member is not where its directory says".into());
        }
        fields.take::<22>()?;
        let before = 30 + u64::from(fields.two()?) + u64::from(fields.two()?);
        let start = at.checked_add(before);
        let start =
            start.filter(|s| s.checked_add(len).is_some_and(|end| end <= size) || method != 0);
        all.push(Member {
            name,
            start: start.ok_or("a member reaches behind the end")?,
            len,
            is_compressed: method != 0,
        });
        rest = next;
    }
    Ok(all)
}

/// Numbers that do not fit stand in the field of ZIP64, in this order.
fn wide(narrow: [u32; 3], extra: &[u8]) -> Result<[u64; 3], Error> {
    let mut found = narrow.map(u64::from);
    let mut fields = Fields(extra);
    while fields.0.len() >= 4 {
        let (id, len) = (fields.two()?, usize::from(fields.two()?));
        let inside = fields.0.get(..len).ok_or("its directory is damaged")?;
        if id == 1 {
            let mut inside = Fields(inside);
            for (narrow, found) in narrow.iter().zip(&mut found) {
                if *narrow == ELSEWHERE {
                    *found = inside.eight()?;
                }
            }
        }
        fields.0 = &fields.0[len..];
    }
    Ok(found)
}

/// How many members the directory has, and its bytes.
fn directory(file: &File, size: u64) -> Result<(u64, Vec<u8>), Error> {
    // The end has a comment of up to 64 KiB behind it.
    let span = size.min(22 + (64 << 10));
    let tail = bytes_at(file, size - span, span as usize)?;
    let at = (0..tail.len().saturating_sub(21))
        .rev()
        .find(|&at| tail[at..].starts_with(&END.to_le_bytes()))
        .ok_or("it is no ZIP file")?;
    let mut fields = Fields(&tail[at + 10..]);
    let (count, len, start) = (fields.two()?, fields.four()?, fields.four()?);
    let (mut count, mut len, mut start) = (u64::from(count), u64::from(len), u64::from(start));
    let locator = at.checked_sub(20).map(|at| &tail[at..]);
    if let Some(locator) = locator.filter(|l| l.starts_with(&LOCATOR_64.to_le_bytes())) {
        let end = bytes_at(file, Fields(&locator[8..]).eight()?, 56)?;
        let mut fields = Fields(&end);
        if fields.four()? != END_64 {
            return Err("its end is damaged".into());
        }
        fields.take::<28>()?;
        (count, len, start) = (fields.eight()?, fields.eight()?, fields.eight()?);
    }
    if len > MOST_DIRECTORY {
        return Err("its directory is damaged".into());
    }
    Ok((count, bytes_at(file, start, len as usize)?))
}

/// Writes members, one after the other.
pub(crate) struct Writer {
    file: BufWriter<File>,
    members: Vec<DirectoryEntry>,
}

struct DirectoryEntry {
    name: String,
    at: u64,
    len: u64,
    checksum: u32,
}

impl Writer {
    pub(crate) fn new(file: File) -> Writer {
        Writer {
            file: BufWriter::with_capacity(1 << 20, file),
            members: Vec::new(),
        }
    }

    /// A member, whose bytes `fill` writes.
    pub(crate) fn member<E: From<std::io::Error>>(
        &mut self,
        name: &str,
        fill: impl FnOnce(&mut dyn Write) -> Result<(), E>,
    ) -> Result<(), E> {
        let at = self.file.stream_position()?;
        let name = format!("{name}.npy");
        self.file.write_all(&local_head(&name, 0, 0))?;
        let mut summed = ChecksumWriter {
            inner: &mut self.file,
            len: 0,
            checksum: !0,
        };
        fill(&mut summed)?;
        let (len, checksum) = (summed.len, !summed.checksum);
        let end = self.file.stream_position()?;
        self.file.seek(SeekFrom::Start(at))?;
        self.file.write_all(&local_head(&name, len, checksum))?;
        self.file.seek(SeekFrom::Start(end))?;
        self.members.push(DirectoryEntry {
            name,
            at,
            len,
            checksum,
        });
        Ok(())
    }

    /// Writes the directory.
    pub(crate) fn end(mut self) -> std::io::Result<()> {
        let start = self.file.stream_position()?;
        for member in &self.members {
            let mut head = CENTRAL.to_le_bytes().to_vec();
            head.extend(45u16.to_le_bytes());
            head.extend(common(&member.name, member.checksum, 28));
            head.extend([0; 10]); // comment, disk, attributes
            head.extend(ELSEWHERE.to_le_bytes());
            head.extend(member.name.as_bytes());
            head.extend(1u16.to_le_bytes());
            head.extend(24u16.to_le_bytes());
            for number in [member.len, member.len, member.at] {
                head.extend(number.to_le_bytes());
            }
            self.file.write_all(&head)?;
        }
        let end = self.file.stream_position()?;
        let count = self.members.len() as u64;
        let mut tail = END_64.to_le_bytes().to_vec();
        tail.extend(44u64.to_le_bytes());
        tail.extend([45, 0, 45, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        for number in [count, count, end - start, start] {
            tail.extend(number.to_le_bytes());
        }
        tail.extend(LOCATOR_64.to_le_bytes());
        tail.extend(0u32.to_le_bytes());
        tail.extend(end.to_le_bytes());
        tail.extend(1u32.to_le_bytes());
        tail.extend(END.to_le_bytes());
        tail.extend([0, 0, 0, 0]);
        tail.extend([0xff; 12]);
        tail.extend([0, 0]);
        self.file.write_all(&tail)?;
        self.file.flush()
    }
}

/// What the head of a member and its entry in the directory share, from the version that is needed on.
fn common(name: &str, checksum: u32, extra: u16) -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.extend(45u16.to_le_bytes());
    bytes.extend(0x0800u16.to_le_bytes()); // names are UTF-8
    bytes.extend(0u16.to_le_bytes()); // not compressed
    bytes.extend([0, 0, 0x21, 0]); // the first day that there is
    bytes.extend(checksum.to_le_bytes());
    bytes.extend(ELSEWHERE.to_le_bytes());
    bytes.extend(ELSEWHERE.to_le_bytes());
    bytes.extend((name.len() as u16).to_le_bytes());
    bytes.extend(extra.to_le_bytes());
    bytes
}

fn local_head(name: &str, len: u64, checksum: u32) -> Vec<u8> {
    let mut head = LOCAL.to_le_bytes().to_vec();
    head.extend(common(name, checksum, 20));
    head.extend(name.as_bytes());
    head.extend(1u16.to_le_bytes());
    head.extend(16u16.to_le_bytes());
    head.extend(len.to_le_bytes());
    head.extend(len.to_le_bytes());
    head
}

struct ChecksumWriter<'f> {
    inner: &'f mut BufWriter<File>,
    len: u64,
    checksum: u32,
}

impl Write for ChecksumWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let written = self.inner.write(bytes)?;
        for &byte in &bytes[..written] {
            let index = (self.checksum ^ u32::from(byte)) & 0xff;
            self.checksum = TABLE[index as usize] ^ (self.checksum >> 8);
        }
        self.len += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.inner.flush()
    }
}

/// The checksum of ZIP, byte by byte.
static TABLE: [u32; 256] = table();

const fn table() -> [u32; 256] {
    let mut table = [0; 256];
    let mut n = 0;
    while n < 256 {
        let (mut value, mut bit) = (n as u32, 0);
        while bit < 8 {
            value = if value & 1 == 1 {
                0xedb8_8320 ^ (value >> 1)
            } else {
                value >> 1
            };
            bit += 1;
        }
        table[n] = value;
        n += 1;
    }
    table
}

/// The bytes of a member.
pub(crate) fn opened(file: &File, member: &Member) -> Result<impl Read + Send + 'static, Error> {
    let mut own = file.try_clone().map_err(|e| e.to_string())?;
    own.seek(SeekFrom::Start(member.start))
        .map_err(|e| e.to_string())?;
    Ok(own.take(member.len))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_come_back() {
        let path = std::env::temp_dir().join(format!("pario-npz-{}", std::process::id()));
        let mut writer = Writer::new(File::create(&path).expect("a file"));
        let long = vec![7; 100_000];
        for (name, bytes) in [("a", &b"123456789"[..]), ("größe", &long), ("none", b"")] {
            let written = writer.member(name, |to| to.write_all(bytes));
            written.expect("written");
        }
        let sums: Vec<u32> = writer.members.iter().map(|m| m.checksum).collect();
        assert_eq!(
            (sums[0], sums[2]),
            (0xcbf4_3926, 0),
            "as known for these digits"
        );
        writer.end().expect("ended");
        let file = File::open(&path).expect("the file");
        let found = members(&file).expect("members");
        let names: Vec<&str> = found.iter().map(|m| m.name.as_str()).collect();
        assert_eq!(names, ["a", "größe", "none"]);
        let mut bytes = Vec::new();
        let read = opened(&file, &found[1])
            .expect("open")
            .read_to_end(&mut bytes);
        assert_eq!((read.expect("read"), bytes), (100_000, long));

        // Cut anywhere it is refused, not misread.
        let whole = std::fs::read(&path).expect("the file");
        for cut in [0, 10, 22, 100, whole.len() - 60, whole.len() - 1] {
            std::fs::write(&path, &whole[..cut]).expect("written");
            members(&File::open(&path).expect("the file")).expect_err("cut");
        }
        std::fs::remove_file(&path).expect("removed");
    }
}
