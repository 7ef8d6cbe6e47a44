//! Bytes, lines and formatted text of all active VPs in one call (A-09 to A-12).
//!
//! The source prints and scans by elemental calls, which leads to IB. Here texts are made first, and written as bytes: where
//! those of all VPs have the same length the call stays in the fast modes (X-14). Reading takes a piece of the same length for
//! all, and goes back to behind what each VP wanted of it.
//!
//! Left to others: text of one VP inside an elemental function (`elemental`).

use std::io;

use client::{Error, Result};

use crate::agreement::{ANY, Regularity};
use crate::context::Context;
use crate::stream::{At, Stream, Use};
use crate::transfer::{Counts, Sizes};
use crate::variable::Strides;

impl Stream {
    /// Writes one byte of every active VP (`fputc`).
    pub fn putc(&mut self, context: &Context, bytes: &[u8]) -> Result<()> {
        self.write(context, bytes, 1)
    }

    /// Reads one byte for every active VP (`fgetc`); a count of 0 is the end.
    pub fn getc(&mut self, context: &Context, bytes: &mut [u8]) -> Result<Counts> {
        self.read(context, bytes, 1)
    }

    /// Writes what a function prints for every active VP, whose place at this member it is told (`fprintf`).
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let dir = std::env::temp_dir().join(format!("pario-doc-print-{}", std::process::id()));
    /// # let url = format!("dir:{}", dir.display()).parse()?;
    /// # let client = embedded::connect(&url, client::ConnectOptions::default(), &embedded::Options::default())?;
    /// use std::io::Write;
    /// use streams::{Access, Context, Emulation, Shape, Stream, StreamOptions};
    /// let team = client::Team::alone();
    /// let emulation = Emulation::block(&Shape::new(&[3])?, &team)?;
    /// let all = Context::everywhere();
    /// let mut log = Stream::open(&client, &team, "/log", &emulation, &StreamOptions::new(Access::WriteUpdate))?;
    /// log.print(&all, |vp, text| writeln!(text, "VP {vp}"))?;
    /// log.rewind()?;
    /// assert_eq!(log.gets(&all, 80)?[2].as_deref(), Some(&b"VP 2\n"[..]));
    /// log.close()?;
    /// # drop(client);
    /// # std::fs::remove_dir_all(&dir).ok();
    /// # Ok(())
    /// # }
    /// ```
    pub fn print(
        &mut self,
        context: &Context,
        mut function: impl FnMut(usize, &mut Vec<u8>) -> io::Result<()>,
    ) -> Result<()> {
        let checked = self.check(Use::Write).and(self.check_context(context));
        let count = self.emulation.count();
        let (mut texts, mut sizes) = (Vec::new(), vec![0; count]);
        let made = checked.and_then(|()| {
            context.active(count).try_for_each(|local| {
                let before = texts.len();
                function(local, &mut texts).map_err(|error| Error::Argument {
                    name: "function",
                    text: format!("the text of VP {}: {error}", self.emulation.vp(local)),
                })?;
                sizes[local] = texts.len().saturating_sub(before);
                Ok(())
            })
        });
        let together = self.decide(context, Sizes::Each(&sizes), made)?;
        let done = match together {
            Some(bytes) => {
                let place = Strides {
                    first: 0,
                    stride: bytes,
                };
                self.write_together((&texts, place), bytes)
            }
            None => self.write_texts(context, &texts, &sizes),
        };
        self.keep_failure(done)
    }

    /// Writes texts that lie one after the other, each VP for itself.
    fn write_texts(&mut self, context: &Context, mut rest: &[u8], sizes: &[usize]) -> Result<()> {
        self.become_each()?;
        self.begin_independent(self.independent_block(0))?;
        self.statistics.ib += 1;
        for local in context.active(sizes.len()) {
            let (text, behind) = rest.split_at(sizes[local]);
            self.write_vp(self.who(local), text)?;
            rest = behind;
        }
        Ok(())
    }

    /// Gives a function up to `most` bytes of every active VP, from where it is. The function says how many it took, and the VP
    /// goes on behind those (`fscanf`). How many each took.
    pub fn scan(
        &mut self,
        context: &Context,
        most: usize,
        mut function: impl FnMut(usize, &[u8]) -> usize,
    ) -> Result<Counts> {
        let count = self.emulation.count();
        let room = most.checked_mul(count).ok_or_else(|| Error::Argument {
            name: "most",
            text: format!("{most} bytes for each of {count} VPs are too many"),
        });
        let mut memory = vec![0; room?];
        let came = self.read(context, &mut memory, most)?;
        let mut taken = vec![0; count];
        for local in context.active(count) {
            let piece = &memory[local * most..][..came.of(local) as usize];
            taken[local] = function(local, piece).min(piece.len()) as u64;
        }
        if let At::Uniform { position, .. } = self.at {
            // The read came as far for all, and so begin all behind it.
            let all = came.of(0);
            let is_same = taken.windows(2).all(|pair| pair[0] == pair[1]);
            let regularity = match is_same {
                true => Regularity::Regular,
                false => Regularity::Independent,
            };
            let bytes = taken.first().copied().unwrap_or(ANY);
            let verdict = self.agree(Ok((regularity, bytes)))?;
            if verdict.is_regular == Regularity::Regular {
                self.at = At::Uniform {
                    position: position - all + verdict.bytes,
                    is_ended: all < most as u64 && verdict.bytes == all,
                };
                return Ok(Counts::Uniform(verdict.bytes));
            }
        }
        for local in context.active(count) {
            let (all, taken) = (came.of(local), taken[local]);
            let position = self.vps[local].position - all + taken;
            self.set_vp_position(local, position);
            self.vps[local].flags.is_ended = all < most as u64 && taken == all;
        }
        Ok(Counts::Each(taken))
    }

    /// Reads a line of every active VP, with its newline if there is one (`fgets`): at most `most` bytes; `None` at the end, and
    /// for VPs that are not active.
    pub fn gets(&mut self, context: &Context, most: usize) -> Result<Vec<Option<Vec<u8>>>> {
        let mut lines = vec![None; self.emulation.count()];
        self.scan(context, most, |local, bytes| {
            let newline = bytes.iter().position(|byte| *byte == b'\n');
            let len = newline.map_or(bytes.len(), |at| at + 1);
            lines[local] = (len > 0).then(|| bytes[..len].to_vec());
            len
        })?;
        Ok(lines)
    }
}
