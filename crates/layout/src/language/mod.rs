//! The layout language: one notation for layouts and views, in commands, hints and bindings.
//!
//! ```text
//! layout = form [ "at" "[" server { "," server } "]" ] [ "[" element "]" ]
//!                              the server of every element; one element of it, for a view
//! form   = "(" dist { "," dist } ")" [ "onto" grid ]    HPF; the grid has the dims that are not "*"
//!        | "align" "(" axis { "," axis } ")" "template" "(" extent { "," extent } ")" HPF-form
//!        | "striped" "(" size ")" "over" servers
//!        | "chunks" "(" cut { "," cut } ")" [ "over" servers ]      each chunk an element, or dealt
//!        | "blocks" "(" size ":" owner { "," owner } ")" [ "over" count ]
//!        | "vesta" "(" size "," cells [ ":" Vbs "," Vn "," Hbs "," Hn ] ")"
//!        | "slice" "[" part { "," part } "]"
//!        | "strided" "(" start "," quantity [ ":" level { "," level } ] ")" [ "period" size ]
//!        | "falls" "{" set { ";" set } "}" [ "period" size ]        sets without their braces
//!        | "whole"
//! dist   = "*" | "block" [ "(" n ")" ] | "cyclic" [ "(" n ")" ]
//!        | "gen_block" "(" n { "," n } ")" | "indirect" "(" owner { "," owner } ")"
//! grid   = n { "x" n } [ ":fortran" | ":c" ]
//! axis   = [ stride "*" ] name [ "+" offset ] | index | "*"         names of dims: i j k l m n, i6 ...
//! servers= ( count | "[" n { "," n } "]" ) [ "from" index ]
//! cut    = n | "[" n { "," n } "]"
//! owner  = n | times "*" n
//! part   = ":" | index | start ":" [ stop ] [ ":" step ] | "[" index { "," index } "]"
//! level  = count "x" stride                                         innermost first
//! size   = n [ "B" | "KiB" | "MiB" | "GiB" | "TiB" ]
//! ```
//!
//! Words are read in any case, blanks anywhere between tokens. `start:stop:step` is half open as in
//! Python. `*` as an axis of a template is replication.
//!
//! A [`Layout`] is read without an array and prints back as its canonical text, which reads as an
//! equal layout. [`Layout::on_array`] and [`Layout::on_bytes`] apply it. What can be refused without
//! the array is refused by the parser, at the character; the parser takes time and memory in
//! proportion to the text.

mod array_type;
mod parse;
mod print;
mod scanner;

use std::sync::Arc;

use falls::FallsSet;

pub use scanner::{ByteSize, LayoutParseError, MAX_TEXT};

use crate::align::{AlignedElements, Alignment};
use crate::array::{ArrayType, Elements, check_element};
use crate::block_map::BlockMap;
use crate::chunks::{ChunkGrid, Chunks, DealtChunks};
use crate::error::LayoutError;
use crate::galley::StridedRequest;
use crate::hpf::{Hpf, HpfElements};
use crate::slice::Slice;
use crate::stripe::{Servers, Stripe};
use crate::vesta::{VestaCut, VestaFile, VestaGroups};

/// What a layout is made from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LayoutForm {
    /// `(block, *) onto 4`
    Hpf(Hpf),
    /// `align(2*i+1) template(100) (block) onto 4`
    Aligned(Alignment),
    /// `striped(1MiB) over 4 from 2`
    Striped(Stripe),
    /// `chunks(256,256)`, dealt over servers if there are any.
    Chunks(ChunkGrid, Option<Servers>),
    /// `blocks(4KiB: 0,0,1,2,1)`
    Blocks(BlockMap),
    /// `vesta(4KiB, 8: 2,2,1,4)`, the cells themselves without a cut.
    Vesta(VestaFile, Option<VestaCut>),
    /// `slice[0:10:2, 3:7]`
    Slice(Slice),
    /// `strided(0, 8: 4x32) period 1KiB`: a request and the length after which it recurs.
    Strided(StridedRequest, u64),
    /// `falls{(0,1); (2,5)} period 6`
    Falls {
        /// Bytes of one repetition.
        period: u64,
        /// What each element owns of it.
        sets: Arc<[FallsSet]>,
    },
    /// `whole`: one element has all.
    Whole,
}

impl LayoutForm {
    /// Number of elements, where that does not depend on the array.
    fn count(&self) -> Option<u64> {
        match self {
            LayoutForm::Hpf(hpf) => Some(hpf.grid().count()),
            LayoutForm::Aligned(alignment) => Some(alignment.onto().grid().count()),
            LayoutForm::Striped(stripe) => Some(stripe.count()),
            LayoutForm::Chunks(_, servers) => servers.as_ref().map(Servers::count),
            LayoutForm::Blocks(map) => Some(map.count()),
            LayoutForm::Vesta(file, None) => Some(file.cell_count()),
            LayoutForm::Vesta(_, Some(cut)) => {
                cut.vertical_groups.checked_mul(cut.horizontal_groups)
            }
            LayoutForm::Falls { sets, .. } => Some(sets.len() as u64),
            LayoutForm::Slice(_) | LayoutForm::Strided(..) | LayoutForm::Whole => Some(1),
        }
    }
}

/// A layout as written: what it is made from, and which element is meant if only one is.
///
/// ```
/// use layout::Layout;
/// let layout: Layout = "( BLOCK, cyclic(1) ) onto 2x2".parse().unwrap();
/// assert_eq!(layout.to_string(), "(block, cyclic(1)) onto 2x2");
/// let applied = layout.on_array(&"u8[4,4]".parse().unwrap()).unwrap();
/// assert_eq!(applied.count(), 4);
/// assert_eq!(applied.element(3).unwrap().to_string(), "{(9,9,2,4)}");
///
/// let error = "(block, cyclc) onto 2x2".parse::<Layout>().unwrap_err();
/// assert_eq!(error.to_string(), "expected a distribution: *, block, cyclic, gen_block or indirect, found 'cyclc' (character 9)
///   (block, cyclc) onto 2x2
///           ^");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    form: LayoutForm,
    /// The server of each element.
    places: Option<Arc<[u64]>>,
    picked: Option<u64>,
}

impl From<LayoutForm> for Layout {
    fn from(form: LayoutForm) -> Self {
        Layout {
            form,
            places: None,
            picked: None,
        }
    }
}

impl Layout {
    /// This layout with one element picked, for a view.
    pub fn pick(mut self, element: u64) -> Result<Self, LayoutError> {
        if let Some(count) = self.form.count() {
            check_element(element, count)?;
        }
        self.picked = Some(element);
        Ok(self)
    }

    /// This layout with a server for each element; several may share one.
    ///
    /// ```
    /// use layout::Layout;
    /// let layout: Layout = "(block, *) onto 3".parse().unwrap();
    /// let placed = layout.with_places([4, 0, 4]).unwrap();
    /// assert_eq!(placed.to_string(), "(block, *) onto 3 at [4,0,4]");
    /// assert_eq!(placed.places(), Some(&[4, 0, 4][..]));
    /// ```
    pub fn with_places(self, servers: impl Into<Vec<u64>>) -> Result<Self, LayoutError> {
        let servers = servers.into();
        let given = servers.len() as u64;
        let count = self.form.count().unwrap_or(given);
        if given == 0 || given != count {
            return Err(LayoutError::argument(
                "at",
                format!("{given} servers for {count} elements; give one for each"),
            ));
        }
        Ok(Layout {
            places: Some(servers.into()),
            ..self
        })
    }

    /// This layout without servers.
    pub fn without_places(self) -> Self {
        Layout {
            places: None,
            ..self
        }
    }

    /// What it is made from.
    pub fn form(&self) -> &LayoutForm {
        &self.form
    }

    /// The element that is meant, if one is.
    pub fn picked(&self) -> Option<u64> {
        self.picked
    }

    /// Whether it can only be a view: a picked element, a slice, a request, or copies of an array.
    /// (The sets of `falls{...}` may turn out to be no partition, too.)
    pub fn is_view(&self) -> bool {
        self.picked.is_some()
            || match &self.form {
                LayoutForm::Slice(_) | LayoutForm::Strided(..) => true,
                LayoutForm::Aligned(alignment) => alignment.is_replicated(),
                _ => false,
            }
    }

    /// The server of each element, where the text says it: `at [...]`, or a list of servers behind
    /// `over`.
    pub fn places(&self) -> Option<&[u64]> {
        match &self.places {
            Some(places) => Some(places),
            None => self.servers()?.list(),
        }
    }

    /// The servers it names; element `j` belongs to the one at index `j`.
    pub fn servers(&self) -> Option<&Servers> {
        match &self.form {
            LayoutForm::Striped(stripe) => Some(stripe.servers()),
            LayoutForm::Chunks(_, servers) => servers.as_ref(),
            _ => None,
        }
    }

    /// Applies it to a file that holds an array.
    pub fn on_array(&self, array: &ArrayType) -> Result<AppliedLayout, LayoutError> {
        let source = match &self.form {
            LayoutForm::Hpf(hpf) => Source::Hpf(hpf.on(array)?),
            LayoutForm::Aligned(alignment) => Source::Aligned(alignment.on(array)?),
            LayoutForm::Chunks(grid, None) => Source::Chunks(grid.on(array)?),
            LayoutForm::Chunks(grid, Some(servers)) => Source::Dealt(grid.over(servers, array)?),
            LayoutForm::Slice(slice) => Source::One {
                period: array.bytes(),
                set: slice.on(array)?,
                extents: slice.extents(array)?,
            },
            LayoutForm::Whole => Source::One {
                period: array.bytes(),
                set: array.whole(),
                extents: array.extents().to_vec(),
            },
            _ => return self.on_bytes(),
        };
        self.applied(source)
    }

    /// Applies it to a file of plain bytes.
    pub fn on_bytes(&self) -> Result<AppliedLayout, LayoutError> {
        let source = match &self.form {
            LayoutForm::Striped(stripe) => Source::Striped(stripe.clone()),
            LayoutForm::Blocks(map) => Source::Blocks(map.clone()),
            LayoutForm::Vesta(file, None) => Source::Striped(file.cells()?),
            LayoutForm::Vesta(file, Some(cut)) => Source::Vesta(file.cut(*cut)?),
            LayoutForm::Strided(request, period) => Source::Sets {
                period: *period,
                sets: [request.set().clone()].into(),
            },
            LayoutForm::Falls { period, sets } => Source::Sets {
                period: *period,
                sets: sets.clone(),
            },
            LayoutForm::Whole => Source::Sets {
                period: 1,
                sets: [FallsSet::segment(0, 1)?].into(),
            },
            LayoutForm::Hpf(_)
            | LayoutForm::Aligned(_)
            | LayoutForm::Chunks(..)
            | LayoutForm::Slice(_) => {
                return Err(LayoutError::argument(
                    "array",
                    format!("`{self}` cuts an array; say which, as in f64[4096,4096]"),
                ));
            }
        };
        self.applied(source)
    }

    fn applied(&self, source: Source) -> Result<AppliedLayout, LayoutError> {
        if let Some(element) = self.picked {
            check_element(element, source.count())?;
        }
        let (count, given) = (source.count(), self.places.as_ref().map(|p| p.len() as u64));
        if let Some(given) = given.filter(|given| *given != count) {
            return Err(LayoutError::argument(
                "at",
                format!("{given} servers for {count} elements; give one for each"),
            ));
        }
        Ok(AppliedLayout {
            source,
            picked: self.picked,
        })
    }
}

/// A layout applied to an array or to plain bytes: its elements, each computed when asked for.
#[derive(Clone, Debug)]
pub struct AppliedLayout {
    source: Source,
    picked: Option<u64>,
}

#[derive(Clone, Debug)]
enum Source {
    Hpf(HpfElements),
    Aligned(AlignedElements),
    Striped(Stripe),
    Chunks(Chunks),
    Dealt(DealtChunks),
    Blocks(BlockMap),
    Vesta(VestaGroups),
    /// A choice of indices of an array.
    One {
        period: u64,
        set: FallsSet,
        extents: Vec<u64>,
    },
    Sets {
        period: u64,
        sets: Arc<[FallsSet]>,
    },
}

impl Source {
    fn count(&self) -> u64 {
        match self {
            Source::Hpf(e) => e.count(),
            Source::Aligned(e) => e.count(),
            Source::Striped(e) => e.count(),
            Source::Chunks(e) => e.count(),
            Source::Dealt(e) => e.count(),
            Source::Blocks(e) => e.count(),
            Source::Vesta(e) => e.count(),
            Source::One { .. } => 1,
            Source::Sets { sets, .. } => sets.len() as u64,
        }
    }

    fn element(&self, index: u64) -> Result<FallsSet, LayoutError> {
        match self {
            Source::Hpf(e) => e.element(index),
            Source::Aligned(e) => e.element(index),
            Source::Striped(e) => e.element(index),
            Source::Chunks(e) => e.element(index),
            Source::Dealt(e) => e.element(index),
            Source::Blocks(e) => e.element(index),
            Source::Vesta(e) => e.element(index),
            Source::One { set, .. } => {
                check_element(index, 1)?;
                Ok(set.clone())
            }
            Source::Sets { sets, .. } => {
                check_element(index, sets.len() as u64)?;
                Ok(sets[index as usize].clone())
            }
        }
    }
}

impl AppliedLayout {
    /// Bytes of one repetition; 0 for an array without bytes.
    pub fn period(&self) -> u64 {
        match &self.source {
            Source::Hpf(e) => e.period(),
            Source::Aligned(e) => e.period(),
            Source::Striped(e) => e.period(),
            Source::Chunks(e) => e.period(),
            Source::Dealt(e) => e.period(),
            Source::Blocks(e) => e.period(),
            Source::Vesta(e) => e.period(),
            Source::One { period, .. } | Source::Sets { period, .. } => *period,
        }
    }

    /// Number of elements; 1 when one is picked.
    pub fn count(&self) -> u64 {
        match self.picked {
            Some(_) => 1,
            None => self.source.count(),
        }
    }

    /// What element `index` owns of one period. When one is picked it is element 0.
    pub fn element(&self, index: u64) -> Result<FallsSet, LayoutError> {
        check_element(index, self.count())?;
        self.source.element(self.picked.unwrap_or(index))
    }

    /// How many indices of every dimension element `index` has, where it is a choice of indices in each: distributions, alignments,
    /// chunks, slices and the whole array. Other elements have no shape.
    ///
    /// ```
    /// let rows: layout::Layout = "(block, cyclic) onto 2x3 [1]".parse().unwrap();
    /// let applied = rows.on_array(&"f64[5,7]".parse().unwrap()).unwrap();
    /// assert_eq!(applied.extents(0).unwrap(), Some(vec![3, 2]));
    /// ```
    pub fn extents(&self, index: u64) -> Result<Option<Vec<u64>>, LayoutError> {
        check_element(index, self.count())?;
        let index = self.picked.unwrap_or(index);
        match &self.source {
            Source::Hpf(e) => e.extents(index).map(Some),
            Source::Aligned(e) => e.extents(index),
            Source::Chunks(e) => e.extents(index).map(Some),
            Source::One { extents, .. } => Ok(Some(extents.clone())),
            _ => Ok(None),
        }
    }

    /// What every element owns.
    pub fn elements(&self) -> Result<Elements, LayoutError> {
        if let (Source::Dealt(dealt), None) = (&self.source, self.picked) {
            return dealt.elements(); // shares work between servers
        }
        Elements::collect(self.period(), self.count(), |i| self.element(i))
    }
}
