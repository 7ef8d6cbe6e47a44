//! Every constructor of the layout language, as physical layouts and as views.
//!
//! Periods are small, so that a file of a few kilobytes has many of them; blocks do not divide
//! extents, periods of different entries are mostly coprime. In texts `{n}` stands for the number of
//! I/O servers, `{last}` for one less, `{ids}` for their numbers in descending order.

use client::{ServerId, View};
use layout::{ArrayType, FileOffset, Layout};

/// A layout of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Physical {
    /// What the file holds.
    pub array: Option<&'static str>,
    /// The layout; nothing for the default.
    pub text: Option<&'static str>,
}

/// What a handle looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Logical {
    /// The array that the text is applied to.
    pub array: Option<&'static str>,
    /// First byte.
    pub displacement: u64,
    /// The view.
    pub text: &'static str,
}

const fn array(array: &'static str, text: &'static str) -> Physical {
    Physical {
        array: Some(array),
        text: Some(text),
    }
}

const fn plain(text: &'static str) -> Physical {
    Physical {
        array: None,
        text: Some(text),
    }
}

/// Layouts of files.
pub const PHYSICAL: &[Physical] = &[
    // One dimension.
    array("u8[97]", "(block) onto {n}"),
    array("u8[100]", "(block(30)) onto 4"),
    array("u16[50]", "(cyclic) onto 3"),
    array("u8[64]", "(cyclic(5)) onto 4"),
    array("u8[40]", "(gen_block(10,0,25,5)) onto 4"),
    array("u32[7]", "(indirect(0,1,1,2,0,2*3)) onto 4"),
    array("u8[33]", "(*)"),
    // Several.
    array("f32[6,8]", "(block, *) onto 4"),
    array("f64[5,9]", "(*, block) onto 4"),
    array("f32[7,9]", "(block, block) onto 2x2"),
    array("u8[10,10]", "(cyclic, block) onto 2x3:fortran"),
    array("u8[9,11]:fortran", "(cyclic(2), cyclic(3)) onto 2x2"),
    array("u16[4,5,6]", "(block, *, cyclic) onto 2x2"),
    array("u8[5,6,7]", "(block, cyclic(2), block) onto 2x2x2"),
    array("bytes(3)[3,4,5,4]", "(block, *, cyclic, block) onto 2x2x3"),
    // Aligned with a template.
    array("u8[16]", "align(2*i+1) template(40) (block) onto 4"),
    array(
        "u8[6,9]",
        "align(j, i) template(9, 6) (cyclic, block) onto 3x2",
    ),
    // Stripes, with a start and with chosen servers.
    plain("striped(16) over {n}"),
    plain("striped(7) over 3 from 2"),
    plain("striped(4KiB) over {n} from {last}"),
    plain("striped(10) over [{ids}]"),
    // Chunks, each a subfile or dealt.
    array("u8[7,9]", "chunks(3,4)"),
    array("u8[7,9]", "chunks([2,5],4) over {n}"),
    array("u16[6,5,4]", "chunks(4,2,3) over {n} from {last}"),
    // Maps of blocks, and the grids of Vesta.
    plain("blocks(8: 0,0,1,2,1)"),
    plain("blocks(5: 3*0,1,2*2) over 4"),
    plain("vesta(6, 4)"),
    plain("vesta(4, 8: 2,2,1,4)"),
    // Sets: nested, with a header, of different sizes.
    plain("falls{(0,1); (2,5)}"),
    plain("falls{(0,3,8,2,{(0,0,2,2)}); (0,3,8,2,{(1,1,2,2)}); (4,7,8,2)}"),
    plain("falls{(0,9); (10,14,10,3); (15,19,10,3)} period 40"),
    plain("whole"),
    // Nothing said.
    Physical {
        array: None,
        text: None,
    },
    Physical {
        array: Some("f64[10,4]"),
        text: None,
    },
];

const fn view(array: &'static str, displacement: u64, text: &'static str) -> Logical {
    Logical {
        array: Some(array),
        displacement,
        text,
    }
}

const fn bytes(displacement: u64, text: &'static str) -> Logical {
    Logical {
        array: None,
        displacement,
        text,
    }
}

/// Views.
pub const LOGICAL: &[Logical] = &[
    bytes(0, "whole"),
    bytes(13, "whole"),
    view("u8[97]", 0, "(block) onto 4 [1]"),
    view("u8[100]", 5, "(block(30)) onto 4 [3]"),
    view("u16[50]", 0, "(cyclic) onto 3 [2]"),
    view("u8[64]", 1, "(cyclic(5)) onto 4 [0]"),
    view("u8[40]", 0, "(gen_block(10,0,25,5)) onto 4 [2]"),
    view("u32[7]", 3, "(indirect(0,1,1,2,0,2*3)) onto 4 [0]"),
    view("u8[33]", 7, "(*)"),
    view("f32[6,8]", 0, "(block, *) onto 4 [1]"),
    view("f32[6,8]", 0, "(*, block) onto 4 [2]"),
    view("f64[5,9]", 11, "(*, block) onto 4 [2]"),
    view("f32[7,9]", 0, "(block, block) onto 2x2 [3]"),
    view("u8[10,10]", 0, "(cyclic, block) onto 2x3:fortran [4]"),
    view("u8[9,11]:fortran", 2, "(cyclic(2), cyclic(3)) onto 2x2 [1]"),
    view("u16[4,5,6]", 0, "(block, *, cyclic) onto 2x2 [2]"),
    view("u8[5,6,7]", 100, "(block, cyclic(2), block) onto 2x2x2 [5]"),
    view("u8[16]", 0, "align(2*i+1) template(40) (block) onto 4 [1]"),
    view(
        "u8[16]",
        0,
        "align(*, i) template(4, 16) (cyclic, block) onto 2x2 [2]",
    ),
    bytes(0, "striped(16) over 3 [1]"),
    bytes(1000, "striped(7) over 3 from 2 [0]"),
    view("u8[7,9]", 0, "chunks(3,4) [4]"),
    view("u8[7,9]", 9, "chunks(2,4) over 3 [2]"),
    bytes(0, "blocks(8: 0,0,1,2,1) [1]"),
    bytes(4, "vesta(6, 4) [3]"),
    bytes(0, "vesta(4, 8: 2,2,1,4) [5]"),
    view("u8[7,9]", 0, "slice[1:6:2, 3:7]"),
    view("u8[7,9]", 21, "slice[:, [0,3,4]]"),
    view("f32[6,8]", 0, "slice[2, :]"),
    bytes(0, "strided(3, 2: 4x8)"),
    bytes(0, "strided(0, 8: 4x32, 2x200) period 1KiB"),
    bytes(0, "falls{(0,3,8,2,{(0,0,2,2)})} period 20"),
    bytes(17, "falls{(1,1)} period 3"),
    bytes(0, "falls{(0,299)} period 701"),
];

/// The text of a layout for a service.
pub fn filled(text: &str, servers: &[ServerId]) -> String {
    let ids: Vec<String> = servers.iter().rev().map(|s| s.0.to_string()).collect();
    text.replace("{n}", &servers.len().to_string())
        .replace("{last}", &(servers.len() - 1).to_string())
        .replace("{ids}", &ids.join(","))
}

/// A view from its text.
#[track_caller]
pub fn view_of(array: Option<&str>, displacement: u64, text: &str) -> View {
    let views = views_of(array, displacement, text);
    assert_eq!(views.len(), 1, "{text} is no single element");
    views.into_iter().next().expect("one")
}

/// Every element of a layout as a view.
#[track_caller]
pub fn views_of(array: Option<&str>, displacement: u64, text: &str) -> Vec<View> {
    let layout: Layout = text.parse().unwrap_or_else(|e| panic!("{text}: {e}"));
    let array: Option<ArrayType> = array.map(|a| a.parse().expect("an array"));
    let applied = match &array {
        Some(array) => layout.on_array(array),
        None => layout.on_bytes(),
    };
    let applied = applied.unwrap_or_else(|e| panic!("{text}: {e}"));
    let view = |i| {
        let set = applied.element(i).expect("an element");
        View::new(FileOffset(displacement), applied.period(), set).expect("a view")
    };
    (0..applied.count()).map(view).collect()
}

impl Logical {
    /// The view.
    pub fn view(&self) -> View {
        view_of(self.array, self.displacement, self.text)
    }
}

impl Physical {
    /// The text for a service; nothing for the default.
    pub fn text(&self, servers: &[ServerId]) -> Option<String> {
        self.text.map(|t| filled(t, servers))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_text_is_a_layout_and_every_form_is_there() {
        let ids: Vec<ServerId> = (1..8).map(ServerId).collect();
        for n in [1, 2, 3, 4, 7] {
            for physical in PHYSICAL {
                if let Some(text) = physical.text(&ids[..n]) {
                    let views = views_of(physical.array, 0, &text);
                    let size: u64 = views.iter().map(|v| v.bytes().size()).sum();
                    assert_eq!(size, views[0].bytes().period(), "{text} is a partition");
                }
            }
        }
        for logical in LOGICAL {
            assert!(!logical.view().bytes().is_empty(), "{logical:?}");
        }
        let all: String = PHYSICAL.iter().filter_map(|p| p.text).collect();
        let views: String = LOGICAL.iter().map(|l| l.text).collect();
        let forms = [
            "block",
            "cyclic",
            "gen_block",
            "indirect",
            "align",
            "striped",
            "chunks",
            "blocks",
            "vesta",
            "falls",
            "whole",
        ];
        for form in forms {
            assert!(all.contains(form) && views.contains(form), "{form}");
        }
        assert!(views.contains("slice") && views.contains("strided"));
    }
}
