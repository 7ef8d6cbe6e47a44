//! HPF `ALIGN` and `TEMPLATE`: an array follows the distribution of a template.
//!
//! A template is an index space without data that is distributed like an array. Each of its
//! dimensions says where the array lies in it: array index `i` of some dimension at template index
//! `stride * i + offset`, the whole array at one fixed index, or a copy of it at every index
//! (replication). Array dimensions that no template dimension mentions are collapsed.
//!
//! ```text
//! template of 12, block on 3     0 0 0 0|1 1 1 1|2 2 2 2
//! array of 4 at 3*i + 1            0     1     2     3       indices 0 | 1, 2 | 3
//! ```
//!
//! Section 8.1 of the specification: distribute the template, intersect with the image of the
//! array, project on it. Elements of an alignment without replication are disjoint and cover the
//! array; with replication several elements are equal, which only views may be.
//!
//! Cost: nodes in proportion to one common period of stride and distribution, whatever the extents.

use falls::{Falls, FallsSet, Meeting, Periodic, Segment};

use crate::array::{
    ArrayType, Elements, MAX_DIMENSIONS, MAX_ELEMENTS, check_element, check_listable,
};
use crate::error::{LayoutError, LayoutErrorKind};
use crate::hpf::Hpf;

/// Where the array lies along one dimension of the template.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TemplateAxis {
    /// Index `i` of an array dimension at `stride * i + offset`.
    Along {
        /// The dimension of the array.
        dimension: usize,
        /// Distance of neighbouring array indices, at least 1.
        stride: u64,
        /// Where array index 0 lies.
        offset: u64,
    },
    /// The whole array at this index.
    At(u64),
    /// A copy of the array at every index.
    Replicated,
}

/// A distributed template and the place of an array in it.
///
/// ```
/// use layout::{Alignment, Distribution, Grid, Hpf, Order, TemplateAxis};
/// let onto = Hpf::new([Distribution::Block], Grid::new([3], Order::C).unwrap()).unwrap();
/// let axis = TemplateAxis::Along { dimension: 0, stride: 3, offset: 1 };
/// let aligned = Alignment::new([12], onto, [axis]).unwrap();
/// let sets = aligned.on(&"u8[4]".parse().unwrap()).unwrap().elements().unwrap().sets;
/// let text: Vec<String> = sets.iter().map(|s| s.to_string()).collect();
/// assert_eq!(text, ["{(0,0,-,1)}", "{(1,2,-,1)}", "{(3,3,-,1)}"]);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alignment {
    template: Vec<u64>,
    onto: Hpf,
    axes: Vec<TemplateAxis>,
}

impl Alignment {
    /// A template of these extents, distributed by `onto`, with one axis per dimension.
    pub fn new(
        template: impl Into<Vec<u64>>,
        onto: Hpf,
        axes: impl Into<Vec<TemplateAxis>>,
    ) -> Result<Self, LayoutError> {
        let (template, axes) = (template.into(), axes.into());
        for (argument, count) in [
            ("axes", axes.len()),
            ("distributions", onto.distributions().len()),
        ] {
            if count != template.len() {
                return Err(LayoutError::argument(
                    argument,
                    format!(
                        "{count} for the dimensions of a template, which number {}; give one for each",
                        template.len()
                    ),
                ));
            }
        }
        // The template has no bytes of its own; one byte per index checks it like an array.
        onto.on(&ArrayType::new(
            crate::ElementType::U8,
            template.clone(),
            crate::Order::C,
        )?)?;
        let mut seen = [false; MAX_DIMENSIONS];
        for (t, axis) in axes.iter().enumerate() {
            let refuse = |detail: String| Err(LayoutError::argument(format!("axes[{t}]"), detail));
            match *axis {
                TemplateAxis::Along { stride: 0, .. } => {
                    return refuse("a stride of 0; give 1 or more".into());
                }
                TemplateAxis::Along { dimension, .. } => match seen.get_mut(dimension) {
                    None => {
                        return refuse(format!(
                            "array dimension {dimension}; there are at most {MAX_DIMENSIONS}"
                        ));
                    }
                    Some(seen) if *seen => {
                        return refuse(format!(
                            "array dimension {dimension} is aligned twice; give it one dimension of the template"
                        ));
                    }
                    Some(seen) => *seen = true,
                },
                TemplateAxis::At(index) if index >= template[t] => {
                    return refuse(format!(
                        "index {index} is outside the template's extent of {}",
                        template[t]
                    ));
                }
                _ => {}
            }
        }
        Ok(Alignment {
            template,
            onto,
            axes,
        })
    }

    /// Extents of the template.
    pub fn template(&self) -> &[u64] {
        &self.template
    }

    /// How the template is distributed.
    pub fn onto(&self) -> &Hpf {
        &self.onto
    }

    /// Where the array lies along every dimension of the template.
    pub fn axes(&self) -> &[TemplateAxis] {
        &self.axes
    }

    /// Whether several elements are copies of each other, so that they are views only.
    pub fn is_replicated(&self) -> bool {
        let onto = self.onto.distributions().iter();
        self.axes
            .iter()
            .zip(onto)
            .any(|(axis, d)| *axis == TemplateAxis::Replicated && d.is_distributed())
    }

    /// Applies it to an array, which must fit into the template.
    pub fn on(&self, array: &ArrayType) -> Result<AlignedElements, LayoutError> {
        for (t, axis) in self.axes.iter().enumerate() {
            let TemplateAxis::Along {
                dimension,
                stride,
                offset,
            } = *axis
            else {
                continue;
            };
            let refuse = |detail: String| Err(LayoutError::argument(format!("axes[{t}]"), detail));
            let Some(&extent) = array.extents().get(dimension) else {
                return refuse(format!(
                    "array dimension {dimension}, but the dimensions of the array number {}",
                    array.dimensions()
                ));
            };
            let last =
                u128::from(extent.saturating_sub(1)) * u128::from(stride) + u128::from(offset);
            if extent > 0 && last >= u128::from(self.template[t]) {
                return refuse(format!(
                    "array index {} lies at {last}, outside the template's extent of {}",
                    extent - 1,
                    self.template[t]
                ));
            }
        }
        Ok(AlignedElements {
            alignment: self.clone(),
            array: array.clone(),
        })
    }
}

/// The elements of an aligned array, each computed when it is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AlignedElements {
    alignment: Alignment,
    array: ArrayType,
}

impl AlignedElements {
    /// Bytes of the array.
    pub fn period(&self) -> u64 {
        self.array.bytes()
    }

    /// Number of processors.
    pub fn count(&self) -> u64 {
        self.alignment.onto.grid().count()
    }

    /// What processor `rank` owns of the array.
    pub fn element(&self, rank: u64) -> Result<FallsSet, LayoutError> {
        self.cross(&self.shares(rank)?)
    }

    /// How many indices processor `rank` owns of every dimension; `None` where it owns nothing of an array without dimensions.
    ///
    /// ```
    /// use layout::{Alignment, Distribution, Grid, Hpf, Order, TemplateAxis};
    /// let onto = Hpf::new([Distribution::Block], Grid::new([3], Order::C).unwrap()).unwrap();
    /// let axis = TemplateAxis::Along { dimension: 0, stride: 3, offset: 1 };
    /// let aligned = Alignment::new([12], onto, [axis]).unwrap();
    /// let elements = aligned.on(&"u8[4]".parse().unwrap()).unwrap();
    /// assert_eq!(elements.extents(1).unwrap(), Some(vec![2]));
    /// ```
    pub fn extents(&self, rank: u64) -> Result<Option<Vec<u64>>, LayoutError> {
        let sizes = |sets: Vec<FallsSet>| sets.iter().map(FallsSet::size).collect();
        let none = match self.array.dimensions() {
            0 => None,
            dimensions => Some(vec![0; dimensions]),
        };
        Ok(self.indices(&self.shares(rank)?)?.map(sizes).or(none))
    }

    /// What processor `rank` leaves of the array along each dimension of the template.
    fn shares(&self, rank: u64) -> Result<Vec<Share>, LayoutError> {
        check_element(rank, self.count())?;
        let Alignment { template, onto, .. } = &self.alignment;
        let owned = onto.owned(template, &onto.grid().coordinates(rank))?;
        let all = owned.iter().enumerate();
        all.map(|(t, owned)| self.share(t, owned)).collect()
    }

    /// What every processor owns of the array.
    pub fn elements(&self) -> Result<Elements, LayoutError> {
        check_listable(self.count())?;
        let Alignment { template, onto, .. } = &self.alignment;
        // Along every dimension of the template, what each coordinate has of the array.
        let mut shares = Vec::with_capacity(template.len());
        for (t, owned) in onto.owned_by_all(template)?.iter().enumerate() {
            let all = owned.iter().map(|set| self.share(t, set));
            shares.push(all.collect::<Result<Vec<_>, _>>()?);
        }
        Elements::collect(self.period(), self.count(), |rank| {
            let coordinates = onto.coordinates(rank);
            let own: Vec<Share> = coordinates
                .zip(&shares)
                .map(|(c, all)| all[c].clone())
                .collect();
            self.cross(&own)
        })
    }

    /// What the owner of `owned`, a set on dimension `t` of the template, has of the array.
    fn share(&self, t: usize, owned: &FallsSet) -> Result<Share, LayoutError> {
        Ok(match self.alignment.axes[t] {
            TemplateAxis::Replicated if owned.is_empty() => Share::Nothing,
            TemplateAxis::At(index) if !owned.contains(index) => Share::Nothing,
            TemplateAxis::Replicated | TemplateAxis::At(_) => Share::All,
            TemplateAxis::Along {
                dimension,
                stride,
                offset,
            } => {
                let count = self.array.extents()[dimension];
                let extent = self.alignment.template[t];
                Share::Indices(dimension, preimage(owned, extent, stride, offset, count)?)
            }
        })
    }

    /// The bytes of the array that all shares leave.
    fn cross(&self, shares: &[Share]) -> Result<FallsSet, LayoutError> {
        match self.indices(shares)? {
            Some(indices) => self.array.cross(&indices),
            None => Ok(FallsSet::empty()),
        }
    }

    /// The indices of every dimension that all shares leave; `None` for nothing at all.
    fn indices(&self, shares: &[Share]) -> Result<Option<Vec<FallsSet>>, LayoutError> {
        let mut indices: Vec<FallsSet> = Vec::with_capacity(self.array.dimensions());
        for &extent in self.array.extents() {
            indices.push(match extent {
                0 => FallsSet::empty(),
                n => FallsSet::segment(0, n)?,
            });
        }
        for share in shares {
            match share {
                Share::Nothing => return Ok(None),
                Share::All => {}
                Share::Indices(dimension, set) => indices[*dimension] = set.clone(),
            }
        }
        Ok(Some(indices))
    }
}

/// What a coordinate of one template dimension leaves of the array.
#[derive(Clone)]
enum Share {
    Nothing,
    All,
    /// These indices of this array dimension.
    Indices(usize, FallsSet),
}

/// The `i < count` for which `stride * i + offset` is in `owned`, a set on `0..extent`.
fn preimage(
    owned: &FallsSet,
    extent: u64,
    stride: u64,
    offset: u64,
    count: u64,
) -> Result<FallsSet, LayoutError> {
    if count == 0 || owned.is_empty() {
        return Ok(FallsSet::empty());
    }
    if stride == 1 {
        return Ok(owned.cut(offset..offset + count));
    }
    if !owned.is_segment_list() {
        let image = FallsSet::new(vec![Falls::family(offset, 1, stride, count)?])?;
        let image = Periodic::new(0, extent, image)?;
        let meeting = Meeting::new(&image, &Periodic::new(0, extent, owned.clone())?);
        if let Some(on_image) = meeting.on_left() {
            return Ok(on_image.set().simplify());
        }
    }
    // An irregular map, or no common period that is worth writing down: go by segments.
    let index_of = |x: u64| x.saturating_sub(offset).div_ceil(stride).min(count);
    let mut segments: Vec<Segment> = Vec::new();
    for segment in owned.segments(0..extent) {
        let (lo, hi) = (index_of(segment.start()), index_of(segment.end()));
        if lo >= hi {
            continue;
        }
        if let Some(last) = segments.last_mut().filter(|last| last.end() == lo) {
            *last = Segment::new(last.start(), hi - last.start())?;
            continue;
        }
        if segments.len() as u64 == MAX_ELEMENTS {
            return Err(LayoutError::new(
                LayoutErrorKind::TooComplex,
                "axes",
                format!(
                    "a stride of {stride} against this distribution has no short common period; choose one that divides its blocks"
                ),
            ));
        }
        segments.push(Segment::new(lo, hi - lo)?);
    }
    Ok(FallsSet::from_segments(&segments)?)
}
