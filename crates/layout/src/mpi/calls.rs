//! A datatype as C: the calls that build it with a real MPI.
//!
//! Types are numbered in the order in which they are made, shared ones are made once, and values
//! beyond `int` use the large-count variants of MPI 4 (`MPI_Type_vector_c`). Basic types are runs of
//! `MPI_BYTE`, so no library adds padding.

use std::collections::HashMap;
use std::fmt::Display;
use std::sync::Arc;

use super::{Constructor, Datatype, Distribute, Inner};
use crate::array::Order;

impl Datatype {
    /// C statements that declare, build and commit the type; the last one names it.
    ///
    /// ```
    /// use layout::mpi::Datatype;
    /// let t = Datatype::resized(0, 64, &Datatype::hvector(3, 2, 8, &Datatype::basic(1)?)?)?;
    /// assert_eq!(t.calls(), [
    ///     "MPI_Datatype t0, t1;",
    ///     "MPI_Type_create_hvector(3, 2, 8, MPI_BYTE, &t0);",
    ///     "MPI_Type_create_resized(t0, 0, 64, &t1);",
    ///     "MPI_Type_commit(&t1);",
    /// ]);
    /// # Ok::<(), layout::LayoutError>(())
    /// ```
    pub fn calls(&self) -> Vec<String> {
        let mut printer = Printer::default();
        let name = printer.name_of(self);
        let mut out = Vec::with_capacity(printer.lines.len() + 2);
        if printer.made > 0 {
            let names: Vec<String> = (0..printer.made).map(|i| format!("t{i}")).collect();
            out.push(format!("MPI_Datatype {};", names.join(", ")));
        }
        out.append(&mut printer.lines);
        if printer.made > 0 {
            out.push(format!("MPI_Type_commit(&{name});"));
        }
        out
    }
}

#[derive(Default)]
struct Printer {
    lines: Vec<String>,
    made: usize,
    names: HashMap<*const Inner, String>,
}

impl Printer {
    /// The variable of a type, after the lines that make it.
    fn name_of(&mut self, t: &Datatype) -> String {
        let key = Arc::as_ptr(&t.0);
        if let Some(name) = self.names.get(&key) {
            return name.clone();
        }
        let olds: Vec<String> = t
            .constructor()
            .olds()
            .iter()
            .map(|o| self.name_of(o))
            .collect();
        let name = match t.constructor() {
            Constructor::Basic { size: 1 } => "MPI_BYTE".to_string(),
            constructor => {
                let name = format!("t{}", self.made);
                self.made += 1;
                self.lines.push(call(constructor, &olds, &name));
                name
            }
        };
        self.names.insert(key, name.clone());
        name
    }
}

fn call(constructor: &Constructor, olds: &[String], name: &str) -> String {
    let old = olds.first().map_or("MPI_BYTE", String::as_str);
    // What C calls `int` unless it has to be an MPI_Count; displacements in bytes never have to.
    let ints = Ints {
        large: !int_arguments(constructor).all(|v| i32::try_from(v).is_ok()),
    };
    let suffix = if ints.large { "_c" } else { "" };
    match constructor {
        Constructor::Basic { size } | Constructor::Contiguous { count: size, .. } => {
            format!("MPI_Type_contiguous{suffix}({size}, {old}, &{name});")
        }
        Constructor::Vector {
            count,
            blocklen,
            stride,
            ..
        } => format!("MPI_Type_vector{suffix}({count}, {blocklen}, {stride}, {old}, &{name});"),
        Constructor::Hvector {
            count,
            blocklen,
            stride,
            ..
        } => format!(
            "MPI_Type_create_hvector{suffix}({count}, {blocklen}, {stride}, {old}, &{name});"
        ),
        Constructor::Indexed {
            blocklens, displs, ..
        } => format!(
            "MPI_Type_indexed{suffix}({}, {}, {}, {old}, &{name});",
            displs.len(),
            ints.array(blocklens),
            ints.array(displs)
        ),
        Constructor::Hindexed {
            blocklens, displs, ..
        } => format!(
            "MPI_Type_create_hindexed{suffix}({}, {}, {}, {old}, &{name});",
            displs.len(),
            ints.array(blocklens),
            ints.addresses(displs)
        ),
        Constructor::IndexedBlock {
            blocklen, displs, ..
        } => format!(
            "MPI_Type_create_indexed_block{suffix}({}, {blocklen}, {}, {old}, &{name});",
            displs.len(),
            ints.array(displs)
        ),
        Constructor::HindexedBlock {
            blocklen, displs, ..
        } => format!(
            "MPI_Type_create_hindexed_block{suffix}({}, {blocklen}, {}, {old}, &{name});",
            displs.len(),
            ints.addresses(displs)
        ),
        Constructor::Struct {
            blocklens, displs, ..
        } => format!(
            "MPI_Type_create_struct{suffix}({}, {}, {}, {}, &{name});",
            displs.len(),
            ints.array(blocklens),
            ints.addresses(displs),
            literal("MPI_Datatype", olds)
        ),
        Constructor::Subarray {
            sizes,
            subsizes,
            starts,
            order,
            ..
        } => format!(
            "MPI_Type_create_subarray{suffix}({}, {}, {}, {}, {}, {old}, &{name});",
            sizes.len(),
            ints.array(sizes),
            ints.array(subsizes),
            ints.array(starts),
            order_word(*order)
        ),
        Constructor::Darray {
            size,
            rank,
            gsizes,
            distribs,
            psizes,
            order,
            ..
        } => {
            let kinds: Vec<&str> = distribs.iter().map(|d| kind_word(*d)).collect();
            let args: Vec<String> = distribs.iter().map(|d| darg_word(*d)).collect();
            format!(
                "MPI_Type_create_darray{suffix}({size}, {rank}, {}, {}, {}, {}, {}, {}, {old}, &{name});",
                gsizes.len(),
                ints.array(gsizes),
                literal("int", &kinds),
                literal("int", &args),
                literal("int", psizes),
                order_word(*order)
            )
        }
        Constructor::Resized { lb, extent, .. } => {
            format!("MPI_Type_create_resized({old}, {lb}, {extent}, &{name});")
        }
        Constructor::Dup { .. } => format!("MPI_Type_dup({old}, &{name});"),
    }
}

/// The arguments that are `int` in the classic binding.
fn int_arguments(constructor: &Constructor) -> Box<dyn Iterator<Item = i64> + '_> {
    match constructor {
        Constructor::Basic { size: count } | Constructor::Contiguous { count, .. } => {
            Box::new([*count].into_iter())
        }
        Constructor::Vector {
            count,
            blocklen,
            stride,
            ..
        } => Box::new([*count, *blocklen, *stride].into_iter()),
        Constructor::Hvector {
            count, blocklen, ..
        } => Box::new([*count, *blocklen].into_iter()),
        Constructor::Indexed {
            blocklens, displs, ..
        } => Box::new(blocklens.iter().chain(displs.iter()).copied()),
        Constructor::Hindexed { blocklens, .. } | Constructor::Struct { blocklens, .. } => {
            Box::new(blocklens.iter().copied())
        }
        Constructor::IndexedBlock {
            blocklen, displs, ..
        } => Box::new(displs.iter().copied().chain([*blocklen])),
        Constructor::HindexedBlock { blocklen, .. } => Box::new([*blocklen].into_iter()),
        Constructor::Subarray { sizes, .. } | Constructor::Darray { gsizes: sizes, .. } => {
            Box::new(sizes.iter().copied())
        }
        Constructor::Resized { .. } | Constructor::Dup { .. } => Box::new(std::iter::empty()),
    }
}

struct Ints {
    large: bool,
}

impl Ints {
    fn array(&self, values: &[i64]) -> String {
        literal(if self.large { "MPI_Count" } else { "int" }, values)
    }

    fn addresses(&self, values: &[i64]) -> String {
        literal(if self.large { "MPI_Count" } else { "MPI_Aint" }, values)
    }
}

/// A compound literal; C has no empty ones.
fn literal<T: Display>(kind: &str, values: &[T]) -> String {
    let list: Vec<String> = values.iter().map(ToString::to_string).collect();
    let list = if list.is_empty() {
        "0".to_string()
    } else {
        list.join(", ")
    };
    format!("({kind}[]){{{list}}}")
}

fn order_word(order: Order) -> &'static str {
    match order {
        Order::C => "MPI_ORDER_C",
        Order::Fortran => "MPI_ORDER_FORTRAN",
    }
}

fn kind_word(distribute: Distribute) -> &'static str {
    match distribute {
        Distribute::Block(_) => "MPI_DISTRIBUTE_BLOCK",
        Distribute::Cyclic(_) => "MPI_DISTRIBUTE_CYCLIC",
        Distribute::None => "MPI_DISTRIBUTE_NONE",
    }
}

fn darg_word(distribute: Distribute) -> String {
    match distribute {
        Distribute::Block(Some(darg)) | Distribute::Cyclic(Some(darg)) => darg.to_string(),
        _ => "MPI_DISTRIBUTE_DFLT_DARG".to_string(),
    }
}
