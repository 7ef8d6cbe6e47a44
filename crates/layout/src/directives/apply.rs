//! Directives applied to an array: its layout.
//! Every rule of HPF about shapes and alignments is checked here; the text is checked before.

use super::{Align, Bounds, DirectiveError, Directives, Distribute, Place, Subscript};
use crate::align::{Alignment, TemplateAxis};
use crate::array::{ArrayType, ElementType, Order};
use crate::error::LayoutError;
use crate::hpf::{Grid, Hpf};
use crate::language::{Layout, LayoutForm};

type Outcome<T> = Result<T, DirectiveError>;

/// Longest chain of arrays that are aligned with each other.
const MAX_CHAIN: usize = 16;

/// An array, and where it lies in what is distributed.
struct TemplatePlace {
    /// The name that has a `DISTRIBUTE`.
    root: String,
    bounds: Vec<Bounds>,
    /// One for each dimension of the root.
    axes: Vec<TemplateAxis>,
}

/// The layout of an array, whose name is in capitals.
pub(super) fn layout(
    all: &Directives,
    name: &str,
    extents: &[u64],
    processes: Option<u64>,
) -> Outcome<Layout> {
    let start = Place {
        line: 0,
        character: 0,
    };
    if let Some(distribute) = all.distributions.get(name) {
        bounds_of(all, name, Some(extents), distribute.place)?;
        let hpf = distributed(all, name, distribute, extents, processes)?;
        return Ok(Layout::from(LayoutForm::Hpf(hpf)));
    }
    let Some(align) = all.alignments.get(name) else {
        let mut known: Vec<&str> = all.arrays().collect();
        known.truncate(10);
        let known = match known.is_empty() {
            true => "no array is".to_owned(),
            false => format!("these are: {}", known.join(", ")),
        };
        return Err(all.error(
            start,
            format!("{name} is not distributed by these directives; {known}"),
        ));
    };
    let bounds = bounds_of(all, name, Some(extents), align.place)?;
    let located = locate(all, name, bounds, align, &mut Vec::new())?;
    let root = &all.distributions[&located.root];
    let template: Vec<u64> = located.bounds.iter().map(|b| b.extent).collect();
    let hpf = distributed(all, &located.root, root, &template, processes)?;
    let refuse = |e: LayoutError| all.error(align.place, e.detail());
    let alignment = Alignment::new(template, hpf, located.axes).map_err(refuse)?;
    // Whether it fits; the bytes of an entry do not matter to that.
    let array = ArrayType::new(ElementType::U8, extents, Order::Fortran).map_err(refuse)?;
    alignment.on(&array).map_err(refuse)?;
    Ok(Layout::from(LayoutForm::Aligned(alignment)))
}

/// The bounds of an array: those of its `DIMENSION`, else from 1 on.
fn bounds_of(
    all: &Directives,
    name: &str,
    extents: Option<&[u64]>,
    place: Place,
) -> Outcome<Vec<Bounds>> {
    match (all.arrays.get(name), extents) {
        (Some(shape), None) => Ok(shape.bounds.clone()),
        (Some(shape), Some(extents)) => {
            let declared = shape.bounds.iter().map(|b| b.extent);
            if !declared.clone().eq(extents.iter().copied()) {
                let declared: Vec<u64> = declared.collect();
                return Err(all.error(
                    shape.place,
                    format!("{name} has extents {declared:?} here and {extents:?} in the program"),
                ));
            }
            Ok(shape.bounds.clone())
        }
        (None, Some(extents)) => {
            let bounds = |extent: &u64| Bounds {
                lower: 1,
                extent: *extent,
            };
            Ok(extents.iter().map(bounds).collect())
        }
        (None, None) => Err(all.error(
            place,
            format!("the bounds of {name} are not known; say them: DIMENSION {name}(...)"),
        )),
    }
}

/// The distribution of an array or template of these extents.
fn distributed(
    all: &Directives,
    name: &str,
    of: &Distribute,
    extents: &[u64],
    processes: Option<u64>,
) -> Outcome<Hpf> {
    let place = of
        .formats
        .get(extents.len())
        .map_or(of.place, |format| format.place);
    if of.formats.len() != extents.len() {
        let text = format!(
            "{} distributions for the dimensions of {name}, which number {}; give one for each",
            of.formats.len(),
            extents.len()
        );
        return Err(all.error(place, text));
    }
    let count = of
        .formats
        .iter()
        .filter(|f| f.distribution.is_distributed())
        .count();
    let (grid, at) = match &of.onto {
        None => (free_grid(all, of, count, processes)?, of.place),
        Some(onto) => {
            let declared = all.processors.get(&onto.name);
            let declared =
                declared.map(|shape| shape.bounds.iter().map(|b| b.extent).collect::<Vec<_>>());
            let grid = match (&onto.extents, declared) {
                (Some(extents), Some(declared)) if *extents != declared => {
                    let text = format!(
                        "{} was declared with extents {declared:?}; sections of processors are not offered",
                        onto.name
                    );
                    return Err(all.error(onto.place, text));
                }
                (Some(extents), _) => extents.clone(),
                (None, Some(declared)) => declared,
                (None, None) => {
                    let text = format!(
                        "processors {} are not declared; write PROCESSORS {}(extents)",
                        onto.name, onto.name
                    );
                    return Err(all.error(onto.place, text));
                }
            };
            (grid, onto.place)
        }
    };
    let grid = match count {
        0 if grid.iter().all(|n| *n == 1) => Vec::new(),
        _ => grid,
    };
    if grid.len() != count {
        let text = format!(
            "the dimensions of the processors number {}, those distributed {count}; give one for each that is not *",
            grid.len()
        );
        return Err(all.error(at, text));
    }
    let mut processors = grid.iter();
    for (format, &extent) in of.formats.iter().zip(extents) {
        let along = match format.distribution.is_distributed() {
            true => processors.next().copied().unwrap_or(1),
            false => 1,
        };
        let fits = format.distribution.check(extent, along);
        fits.map_err(|e| all.error(format.place, e.detail()))?;
    }
    let refuse = |e: LayoutError| all.error(at, e.detail());
    let grid = Grid::new(grid.clone(), Order::Fortran).map_err(refuse)?;
    let distributions: Vec<_> = of.formats.iter().map(|f| f.distribution.clone()).collect();
    Hpf::new(distributions, grid).map_err(refuse)
}

/// A grid of so many processes with so many dimensions, as square as it gets, larger extents first.
fn free_grid(
    all: &Directives,
    of: &Distribute,
    dimensions: usize,
    processes: Option<u64>,
) -> Outcome<Vec<u64>> {
    let none = || {
        all.error(
            of.place,
            "has no ONTO, and the number of processes is not known; write ONTO P(extents)",
        )
    };
    let mut rest = match dimensions {
        0 => return Ok(Vec::new()),
        _ => processes.filter(|n| *n > 0).ok_or_else(none)?,
    };
    let mut factors = Vec::new();
    let mut factor = 2;
    while rest > 1 {
        if factor * factor > rest {
            factor = rest;
        }
        while rest % factor == 0 {
            factors.push(factor);
            rest /= factor;
        }
        factor += 1;
    }
    let mut grid = vec![1u64; dimensions];
    for factor in factors.into_iter().rev() {
        let least = grid.iter_mut().min().expect("a dimension");
        *least *= factor;
    }
    grid.sort_unstable_by(|a, b| b.cmp(a));
    Ok(grid)
}

/// Where an array of these bounds lies in what is distributed; the chain has the arrays that led to it.
fn locate(
    all: &Directives,
    name: &str,
    bounds: Vec<Bounds>,
    align: &Align,
    chain: &mut Vec<String>,
) -> Outcome<TemplatePlace> {
    chain.push(name.to_owned());
    if chain.contains(&align.base) {
        let text = format!(
            "{} is aligned with {name} itself: arrays are aligned with each other in a ring",
            align.base
        );
        return Err(all.error(align.place, text));
    }
    if chain.len() > MAX_CHAIN {
        let text = format!("more than {MAX_CHAIN} arrays are aligned with each other in a row");
        return Err(all.error(align.place, text));
    }
    let base = &align.base;
    let template = match all.templates.get(base) {
        Some(shape) => shape.bounds.clone(),
        None => bounds_of(all, base, None, align.place)?,
    };
    if align.dimensions.is_some_and(|count| count != bounds.len()) {
        let text = format!(
            "{name} has {} dimensions, and this names {}",
            bounds.len(),
            align.dimensions.unwrap_or(0)
        );
        return Err(all.error(align.place, text));
    }
    let axes = axes_of(all, name, &bounds, align, &template)?;
    if all.distributions.contains_key(base) {
        return Ok(TemplatePlace {
            root: base.clone(),
            bounds: template,
            axes,
        });
    }
    let Some(next) = all.alignments.get(base) else {
        return Err(all.error(
            align.place,
            format!("{base} is not distributed; write DISTRIBUTE {base}(...)"),
        ));
    };
    let outer = locate(all, base, template, next, chain)?;
    let through = |axis: &TemplateAxis| {
        match *axis {
        TemplateAxis::Along { dimension, stride, offset } => match axes[dimension] {
            TemplateAxis::Along { dimension, stride: inner, offset: first } => {
                let both = stride.checked_mul(inner).zip(stride.checked_mul(first).and_then(|n| n.checked_add(offset)));
                let (stride, offset) = both.ok_or_else(|| all.error(align.place, "the numbers here are too large"))?;
                Ok(TemplateAxis::Along { dimension, stride, offset })
            }
            TemplateAxis::At(index) => {
                let index = stride.checked_mul(index).and_then(|n| n.checked_add(offset));
                Ok(TemplateAxis::At(index.ok_or_else(|| all.error(align.place, "the numbers here are too large"))?))
            }
            TemplateAxis::Replicated if stride == 1 && offset == 0 => Ok(TemplateAxis::Replicated),
            TemplateAxis::Replicated => Err(all.error(align.place, "copies at every index of an array that is itself aligned with gaps are not offered; align with the template")),
        },
        other => Ok(other),
    }
    };
    let axes: Outcome<Vec<TemplateAxis>> = outer.axes.iter().map(through).collect();
    Ok(TemplatePlace {
        axes: axes?,
        ..outer
    })
}

/// Where an array lies in what it is aligned with, whose indices here begin at 0.
fn axes_of(
    all: &Directives,
    name: &str,
    bounds: &[Bounds],
    align: &Align,
    template: &[Bounds],
) -> Outcome<Vec<TemplateAxis>> {
    let base = &align.base;
    let Some(subscripts) = &align.subscripts else {
        if bounds.len() != template.len()
            || bounds
                .iter()
                .zip(template)
                .any(|(a, b)| a.extent != b.extent)
        {
            return Err(all.error(align.place, format!("{name} and {base} have different shapes; say where {name} lies: ALIGN {name}(I) WITH {base}(I)")));
        }
        let along = |dimension| TemplateAxis::Along {
            dimension,
            stride: 1,
            offset: 0,
        };
        return Ok((0..bounds.len()).map(along).collect());
    };
    if subscripts.len() != template.len() {
        let place = subscripts
            .get(template.len())
            .map_or(align.place, |(_, place)| *place);
        let text = format!(
            "{} places for the dimensions of {base}, which number {}; give one for each",
            subscripts.len(),
            template.len()
        );
        return Err(all.error(place, text));
    }
    let mut axes = Vec::with_capacity(template.len());
    for ((subscript, place), within) in subscripts.iter().zip(template) {
        let outside = |index: i128| {
            let last = i128::from(within.lower) + i128::from(within.extent) - 1;
            all.error(
                *place,
                format!(
                    "index {index} is outside of {base}, which has {}:{last}",
                    within.lower
                ),
            )
        };
        let extent = i128::from(within.extent);
        let lower = i128::from(within.lower);
        // From 0 on, of the first and the last index of the array.
        let inside = |first: i128, count: u64, stride: i64| {
            let last = first + i128::from(stride) * (i128::from(count) - 1).max(0);
            match first {
                _ if count == 0 => Ok(0),
                first if first < 0 => Err(outside(first + lower)),
                _ if last >= extent => Err(outside(last + lower)),
                first => Ok(first as u64),
            }
        };
        axes.push(match *subscript {
            Subscript::Replicated => TemplateAxis::Replicated,
            Subscript::At(index) => TemplateAxis::At(inside(i128::from(index) - lower, 1, 1)?),
            Subscript::Linear {
                dimension,
                stride,
                offset,
            } => {
                let own = bounds[dimension];
                let first = i128::from(stride) * i128::from(own.lower) + i128::from(offset) - lower;
                let offset = inside(first, own.extent, stride)?;
                TemplateAxis::Along {
                    dimension,
                    stride: stride.unsigned_abs(),
                    offset,
                }
            }
            Subscript::Range {
                dimension,
                lower: from,
                upper,
                stride,
            } => {
                let own = bounds[dimension];
                let first = from.map_or(0, |from| i128::from(from) - lower);
                let end = upper.map_or(extent - 1, |upper| i128::from(upper) - lower);
                let steps = (end - first).div_euclid(i128::from(stride)) + 1;
                if steps.max(0) != i128::from(own.extent) {
                    return Err(all.error(
                        *place,
                        format!(
                            "{} indices for the {} of {name}; give as many",
                            steps.max(0),
                            own.extent
                        ),
                    ));
                }
                let offset = inside(first, own.extent, stride)?;
                TemplateAxis::Along {
                    dimension,
                    stride: stride.unsigned_abs(),
                    offset,
                }
            }
        });
    }
    Ok(axes)
}
