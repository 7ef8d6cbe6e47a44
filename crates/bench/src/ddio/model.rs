//! Figures 5.2 to 5.9 as the equations give them, and a sweep over everything they depend on.
//!
//! * `model/fig5.2/MB/P=32`: the printed figures, by scheme and number of compute nodes;
//! * `model/fig5.6/MB/e=16`: record sizes, on both networks, with faster disks and faster packing;
//! * `model/sweep/MB/e=8/P=32/I=4/disk=2/lambda=17`: every scheme over record size, nodes per I/O node,
//!   disk speed and message latency, with the scheme that the chooser takes in `chosen`.

use crate::models::ddio::{Machine, Read, Scheme, choose, disk_us, read_us};
use crate::models::figures::{NODES, READS};
use serde_json::json;

use crate::sheet::{Sheet, modelled};
use console::Error;

const FILE: u64 = 50 << 20;

pub(super) fn add(sheet: &mut Sheet) -> Result<(), Error> {
    for row in READS {
        let scheme = row.scheme.map_or("OPT", Scheme::word);
        for (nodes, printed) in NODES.into_iter().zip(row.printed) {
            let case = format!("model/fig{}/{scheme}/P={nodes}", row.figure);
            sheet.add(case, |case| {
                modelled(case, row.model(nodes), Some(printed), &[])
            })?;
        }
    }
    add_record_sizes(sheet)?;
    add_sweep(sheet)
}

fn add_record_sizes(sheet: &mut Sheet) -> Result<(), Error> {
    let packing = Machine {
        packing: 2.0 / 3.0,
        ..Machine::MEIKO
    };
    let figures = [
        ("5.6", Machine::MEIKO),
        ("5.7", Machine::FAST_NETWORK),
        ("5.8", Machine::MEIKO.with_disk_speed(2.0)),
        ("5.9", packing),
    ];
    for (figure, machine) in figures {
        for record in (8..=64).step_by(8) {
            let read = Read {
                nodes: 32,
                servers: 4,
                bytes: FILE,
                record,
            };
            // The equations give these two values in print, on the Meiko.
            let printed = |scheme| match (figure, record, scheme) {
                ("5.6", 8, Scheme::MultiBlock) => Some(21.5),
                ("5.6", 16, Scheme::MultiBlock) => Some(36.4),
                ("5.6", 24, Scheme::MultiBlock) => Some(36.6),
                ("5.6", 8, Scheme::TwoPhase) => Some(29.3),
                ("5.6", 16, Scheme::TwoPhase) => Some(31.3),
                ("5.6", 24, Scheme::TwoPhase) => Some(31.6),
                _ => None,
            };
            for scheme in Scheme::ALL {
                let case = format!("model/fig{figure}/{}/e={record}", scheme.word());
                let value = read.rate(read_us(&machine, &read, scheme));
                let limit = read.rate(disk_us(&machine, &read));
                let columns = [("of_disk", json!((1000.0 * value / limit).round() / 1000.0))];
                sheet.add(case, |case| {
                    modelled(case, value, printed(scheme), &columns)
                })?;
            }
        }
    }
    Ok(())
}

fn add_sweep(sheet: &mut Sheet) -> Result<(), Error> {
    for record in [8, 16, 32, 64] {
        for (nodes, servers) in [(32, 8), (32, 4), (128, 32), (128, 16)] {
            for disk in [1.0, 4.0] {
                for lambda in [2.0, 17.0] {
                    let read = Read {
                        nodes,
                        servers,
                        bytes: FILE,
                        record,
                    };
                    let machine = Machine {
                        lambda,
                        ..Machine::MEIKO.with_disk_speed(disk)
                    };
                    let chosen = choose(&machine, &read);
                    for scheme in Scheme::ALL {
                        let case = format!(
                            "model/sweep/{}/e={record}/P={nodes}/I={servers}/disk={disk}/lambda={lambda}",
                            scheme.word()
                        );
                        let value = read.rate(read_us(&machine, &read, scheme));
                        let columns = [("chosen", json!(chosen.word()))];
                        sheet.add(case, |case| modelled(case, value, None, &columns))?;
                    }
                }
            }
        }
    }
    Ok(())
}
