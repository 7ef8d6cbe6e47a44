//! Collective access: the same bytes whichever way they go, and nobody waits for a rank that fails.
//!
//! Every strategy gives the bytes of independent accesses; what was chosen is reported.

use client::{
    Client, Collective, File, Hints, OpenOptions, Places, Reason, Sequence, SharedBytes,
    SharedBytesMut, Team,
};

use crate::host_teams::{all_good, join, told};
use crate::service::Service;

/// Numbers that look random, the same ones at all ranks.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (self.0 >> 33) % n
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }
}

/// What byte `k` of a write of a rank is.
fn byte(case: u64, rank: usize, k: u64) -> u8 {
    (k * 7 + case * 13 + rank as u64 * 101) as u8
}

/// Memory for so many bytes: in one run, with gaps, or backwards.
fn shape(kind: u64, len: u64) -> Sequence {
    let bytes = |start, n| Sequence::bytes(start, n).unwrap();
    match kind {
        0 => bytes(0, len),
        1 => {
            let blocks = (0..len.div_ceil(8)).map(|i| (24 * i as i64, 8.min(len - 8 * i)));
            Sequence::from_blocks(blocks).unwrap()
        }
        _ => {
            let n = len.div_ceil(5) as i64;
            let blocks = (0..n).map(|i| (11 * (n - 1 - i), 5.min(len - 5 * i as u64)));
            Sequence::from_blocks(blocks).unwrap()
        }
    }
}

fn memory_of(places: &Sequence) -> Vec<u8> {
    vec![0xee; places.hull().map_or(0, |hull| hull.end as usize) + 3]
}

const STRATEGIES: [Option<&str>; 8] = [
    None,
    Some("views"),
    Some("two_phase"),
    Some("sieving"),
    Some("ddio"),
    Some("pb_ddio"),
    Some("mb_ddio"),
    Some("two_phase_ddio"),
];

/// One rank of a random program; every rank computes what the file is to hold.
pub(crate) fn run_cases(
    client: &Client,
    team: &Team,
    cases: std::ops::Range<u64>,
    is_direct: bool,
) {
    let (mut regrouped, mut served) = (0, 0);
    let (rank, ranks) = (team.rank(), team.size());
    for case in cases {
        let mut numbers = Numbers(case);
        let options = OpenOptions::new()
            .read()
            .write()
            .create()
            .layout("striped(3000) over 2");
        let path = format!("/{is_direct}-{ranks}-{case}");
        let file = client.open_together(team, &path, &options).unwrap();
        let mut hints = Hints::new();
        let strategy = numbers.pick(&STRATEGIES);
        if let Some(strategy) = strategy {
            hints.set("strategy", strategy).unwrap();
        }
        if numbers.below(3) == 0 {
            hints.set("collective_barrier", "on").unwrap();
        }
        hints
            .set("cb_buffer_size", numbers.pick(&["700", "5000", "4194304"]))
            .unwrap();
        let block = numbers.pick(&["512", "2000", "65536"]);
        hints.set("ddio_block_size", block).unwrap();
        if numbers.below(2) == 0 {
            hints.set("ddio_blocks", "3").unwrap();
        }
        file.set_hints_together(team, &hints).unwrap();
        let mut model: Vec<u8> = Vec::new();
        for _ in 0..2 {
            write_all(&file, team, case, &mut numbers, &mut model);
            team.barrier().unwrap();
            if rank == 0 {
                let mut whole = vec![0; model.len() + 5];
                let reader = client.open(&path, &OpenOptions::new().read()).unwrap();
                assert_eq!(
                    reader.read_at(0, &mut whole),
                    Ok(model.len()),
                    "case {case}"
                );
                assert!(whole[..model.len()] == model, "case {case}: {strategy:?}");
            }
            read_all(&file, team, case, &mut numbers, &model);
            team.barrier().unwrap();
        }
        let counted = file.collective_statistics();
        let directed = counted.ddio + counted.pb_ddio + counted.mb_ddio + counted.two_phase_ddio;
        assert_eq!(
            counted.independent + counted.two_phase + counted.sieved + directed,
            4,
            "case {case}"
        );
        regrouped += counted.two_phase;
        served += directed;
        match strategy {
            Some("views") => assert_eq!(counted.independent, 4),
            Some("sieving") => assert_eq!(counted.sieved, 4),
            // All ranks may begin behind the end of the file.
            Some("ddio") => assert_eq!(counted.ddio + counted.independent, 4),
            Some("pb_ddio") => assert_eq!(counted.pb_ddio + counted.independent, 4),
            Some("mb_ddio") => assert_eq!(counted.mb_ddio + counted.independent, 4),
            None if is_direct => assert_eq!(counted.independent, 4),
            _ => {}
        }
        let is_alone = matches!(strategy, None | Some("views" | "sieving"));
        if counted.two_phase == 0 && is_direct && is_alone {
            assert_eq!(counted.exchanges, counted.barriers, "nothing but barriers");
        }
        file.close().unwrap();
    }
    assert!(regrouped > 1, "{regrouped} accesses in two phases");
    assert!(served > 8, "{served} accesses that servers directed");
}

fn write_all(file: &File, team: &Team, case: u64, numbers: &mut Numbers, model: &mut Vec<u8>) {
    let (rank, ranks) = (team.rank(), team.size());
    // Disjoint views, with or without a hole between them.
    let unit = 1 + numbers.below(900);
    let parts = ranks as u64 + numbers.below(2);
    let view = |r: usize| format!("striped({unit}) over {parts} [{r}]");
    let rounds = 1 + numbers.below(20);
    let is_ragged = numbers.below(3) == 0;
    let kind = numbers.below(3);
    let offset = unit * numbers.below(3);
    let len = |r: usize| match is_ragged {
        true => (rounds * unit * (r as u64 + 1) / ranks as u64).saturating_sub(r as u64),
        false => rounds * unit,
    };
    file.set_view_text_together(team, &view(rank)).unwrap();
    let sequence = shape(kind, len(rank));
    let mut memory = memory_of(&sequence);
    for k in 0..sequence.size() {
        memory[sequence.select(k).unwrap() as usize] = byte(case, rank, k);
    }
    let places = Places::new(&sequence);
    let source = SharedBytes::from_slice(&memory);
    let n = file.write_at_all(team, offset, source, 0, &places);
    assert_eq!(n, Ok(len(rank) as usize), "case {case}");
    assert!(file.last_access().collective.is_some());
    for r in 0..ranks {
        for k in 0..len(r) {
            let (i, within) = ((offset + k) / unit, (offset + k) % unit);
            let at = ((i * parts + r as u64) * unit + within) as usize;
            if model.len() <= at {
                model.resize(at + 1, 0);
            }
            model[at] = byte(case, r, k);
        }
    }
}

fn read_all(file: &File, team: &Team, case: u64, numbers: &mut Numbers, model: &[u8]) {
    let rank = team.rank();
    let unit = 1 + numbers.below(700);
    let parts = 1 + numbers.below(team.size() as u64 + 1);
    let element = (rank as u64 + numbers.below(2)) % parts;
    let offset = numbers.below(50);
    let len = 1 + numbers.below(9000);
    let sequence = shape(numbers.below(3), len);
    file.set_view_text_together(team, &format!("striped({unit}) over {parts} [{element}]"))
        .unwrap();
    let view = file.view();
    let shown = view
        .len_within(model.len() as u64)
        .saturating_sub(offset)
        .min(len);
    let mut want = memory_of(&sequence);
    for k in 0..shown {
        let at = view.bytes().select(offset + k).unwrap() as usize;
        want[sequence.select(k).unwrap() as usize] = model[at];
    }
    let mut memory = memory_of(&sequence);
    let target = SharedBytesMut::from_slice(&mut memory);
    let n = file.read_at_all(team, offset, target, 0, &Places::new(&sequence));
    assert_eq!(n, Ok(shown as usize), "case {case}");
    assert!(memory == want, "case {case}: what was read");
}

pub(crate) fn in_threads(
    service: &Service,
    ranks: usize,
    is_direct: bool,
    work: impl Fn(&Client, &Team) + Sync,
) {
    let team = Team::threads(ranks);
    std::thread::scope(|scope| {
        for member in &team {
            let work = &work;
            scope.spawn(move || work(&service.connect_how(is_direct), member));
        }
    });
}

#[test]
fn collective_accesses_move_what_independent_ones_do() {
    let service = Service::start(2);
    for (ranks, is_direct) in [(2, true), (3, false), (4, true), (4, false)] {
        in_threads(&service, ranks, is_direct, |client, team| {
            run_cases(client, team, 0..25, is_direct);
        });
    }
}

#[test]
fn collective_accesses_of_processes_move_what_independent_ones_do() {
    let test = "collective::collective_accesses_of_processes_move_what_independent_ones_do";
    let work =
        |client: &Client, team: &Team, is_direct| run_cases(client, team, 100..112, is_direct);
    if let Some(words) = told() {
        let team = join(&words);
        for is_direct in [true, false] {
            work(
                &crate::service::connect_at(words[3].as_ref(), is_direct),
                &team,
                is_direct,
            );
        }
        return team.barrier().unwrap();
    }
    let service = Service::start(2);
    let (team, others) = crate::host_teams::team(test, 3, service.dir.to_str().unwrap());
    for is_direct in [true, false] {
        work(&service.connect_how(is_direct), &team, is_direct);
    }
    team.barrier().unwrap();
    all_good(others);
}

#[test]
fn two_phases_are_taken_where_they_are_asked_for_or_pay() {
    let service = Service::start(2);
    in_threads(&service, 4, false, |client, team| {
        let options = OpenOptions::new().read().write().create();
        let file = client.open_together(team, "/shared", &options).unwrap();
        let mut bytes = vec![team.rank() as u8; 1 << 20];
        let places = Places::bytes(1 << 20);
        // A quarter each in one run: nothing to regroup.
        let at = (team.rank() as u64) << 20;
        let source = SharedBytes::from_slice(&bytes);
        file.write_at_all(team, at, source, 0, &places).unwrap();
        assert_eq!(file.last_access().collective, Some(Collective::Independent));
        team.barrier().unwrap();
        // All read the same: each byte travels once.
        let read = |bytes: &mut [u8]| file.read_at_all(team, 7, bytes.into(), 0, &places);
        assert_eq!(read(&mut bytes), Ok(1 << 20));
        let choice = file.last_choice().unwrap();
        assert_eq!(choice.reason, Reason::Predicted);
        assert_eq!(file.last_access().collective, Some(choice.how));
        let seconds = |how| choice.alternatives.iter().find(|a| a.0 == how).unwrap().1;
        let alone = seconds(Collective::Independent);
        let best = choice
            .alternatives
            .iter()
            .map(|a| a.1)
            .fold(alone, f64::min);
        match choice.how {
            Collective::Independent => assert!(best >= 0.9 * alone, "{choice:?}"),
            how => assert!(seconds(how) == best && best < 0.9 * alone, "{choice:?}"),
        }
        let hints = Hints::new().with("strategy", "views").unwrap();
        file.set_hints_together(team, &hints).unwrap();
        read(&mut bytes).unwrap();
        assert_eq!(file.last_access().collective, Some(Collective::Independent));
        let before = file.collective_statistics();
        read(&mut bytes).unwrap();
        let after = file.collective_statistics();
        assert_eq!((after.exchanges, after.barriers), (before.exchanges, 0));
        let hints = Hints::new().with("strategy", "two_phase").unwrap();
        file.set_hints_together(team, &hints).unwrap();
        file.set_view_text_together(team, &format!("striped(1) over 4 [{}]", team.rank()))
            .unwrap();
        let source = SharedBytes::from_slice(&bytes);
        file.write_at_all(team, 0, source, 0, &places).unwrap();
        assert_eq!(file.last_access().collective, Some(Collective::TwoPhase));
        // A view of one rank alone is no longer the one that was agreed on.
        if team.rank() == 1 {
            file.set_view_text("striped(1) over 4 [1]").unwrap();
        }
        read(&mut bytes).unwrap();
        assert_eq!(file.last_access().collective, Some(Collective::Independent));
    });
}

#[test]
fn a_rank_that_fails_holds_nobody_up() {
    let service = Service::start(2);
    for strategy in ["views", "two_phase"] {
        in_threads(&service, 3, false, |client, team| {
            let path = format!("/{strategy}");
            let options = OpenOptions::new().read().write().create();
            let file = client.open_together(team, &path, &options).unwrap();
            let hints = Hints::new().with("strategy", strategy).unwrap();
            file.set_hints_together(team, &hints).unwrap();
            let bytes = vec![5; 3000];
            let at = 3000 * team.rank() as u64;
            // Rank 1 describes more memory than it has; the others write all the same.
            let len = if team.rank() == 1 { 4000 } else { 3000 };
            let source = SharedBytes::from_slice(&bytes);
            let n = file.write_at_all(team, at, source, 0, &Places::bytes(len));
            match team.rank() {
                1 => assert!(n.unwrap_err().to_string().contains("places")),
                _ => assert_eq!(n, Ok(3000)),
            }
            team.barrier().unwrap();
            // Rank 2 has nothing to read; the team is as good as before.
            let mut back = vec![0; if team.rank() == 2 { 0 } else { 100 }];
            let places = Places::bytes(back.len() as u64);
            let n = file.read_at_all(team, 0, back[..].as_mut().into(), 0, &places);
            assert_eq!(n, Ok(places.size() as usize));
            // Whoever has closed its handle is told, and so is nobody else.
            if team.rank() == 0 {
                file.close().unwrap();
            }
            let n = file.read_at_all(team, 0, back[..].as_mut().into(), 0, &places);
            assert_eq!(n.is_err(), team.rank() == 0);
        });
    }
}
