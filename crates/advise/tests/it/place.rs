//! The planners of source 003: the published placements to the block, and brute force on every small
//! instance. What a plan is worth in time is the model's affair.

use advise::place::{Speeds, balanced, clustered, cost, fetches, loads, seed};

fn sets(texts: &[&str]) -> Vec<Vec<usize>> {
    let digits = |text: &&str| text.chars().map(|c| c as usize - '0' as usize).collect();
    texts.iter().map(digits).collect()
}

/// G1 to G5 of the specification, section 3.4.
#[test]
fn seed003_pio14_published_placements() {
    // G1, figure 2: node 0 has blocks 0 4 5, node 1 has 1 6, node 2 the rest.
    let g1 = sets(&["0", "1", "2", "2", "0", "0", "1"]);
    assert_eq!(seed(&g1, 3), [0, 1, 2, 2, 0, 0, 1]);
    assert_eq!(loads(&balanced(&g1, 3, &[], None), 3), [3, 2, 2]);
    // G2
    let g2 = sets(&["0", "01", "01", "1", "01", "", "12"]);
    assert_eq!(seed(&g2, 3), [0, 0, 1, 1, 0, 2, 1]);
    assert_eq!(loads(&seed(&g2, 3), 3), [3, 3, 1]);
    assert_eq!(
        loads(&balanced(&g2, 3, &[], None), 3).iter().max(),
        Some(&3)
    );
    // G3, the imbalance that the source admits.
    let mut g3 = sets(&["0"; 6]);
    g3.extend(sets(&["01"; 4]));
    assert_eq!(loads(&seed(&g3, 3), 3), [8, 2, 0]);
    let even = balanced(&g3, 3, &[], None);
    assert_eq!(loads(&even, 3), [6, 4, 0]);
    assert_eq!(
        fetches(&g3, &even),
        fetches(&g3, &seed(&g3, 3)),
        "no fetch more"
    );
    let with = |fetch_s: f64| {
        let speeds = Speeds {
            block_s: vec![1.0],
            fetch_s,
        };
        let place = cost(&g3, 3, &speeds);
        (loads(&place, 3), fetches(&g3, &place) - fetches(&g3, &even))
    };
    assert_eq!(with(2.0), (vec![6, 4, 0], 0));
    assert_eq!(with(0.9), (vec![4, 4, 2], 2));
    // G4: everybody accesses everything.
    let g4 = sets(&["0123"; 11]);
    let expected: Vec<usize> = (0..11).map(|b| b % 4).collect();
    assert_eq!(seed(&g4, 4), expected);
    // G5: groups are dealt separately.
    let g5 = sets(&["01", "12", "01", "12"]);
    assert_eq!(seed(&g5, 3), [0, 1, 1, 2]);
    assert_eq!(
        loads(&balanced(&g5, 3, &[], None), 3).iter().max(),
        Some(&2)
    );
}

/// Every multiset of accessor sets with up to 8 blocks on up to 3 nodes; the order of blocks changes names, not loads.
fn every_small_instance(mut check: impl FnMut(&[Vec<usize>], usize)) {
    fn fill(
        subsets: &[Vec<usize>],
        from: usize,
        so_far: &mut Vec<Vec<usize>>,
        nodes: usize,
        check: &mut dyn FnMut(&[Vec<usize>], usize),
    ) {
        if !so_far.is_empty() {
            check(so_far, nodes);
        }
        if so_far.len() == 8 {
            return;
        }
        for i in from..subsets.len() {
            so_far.push(subsets[i].clone());
            fill(subsets, i, so_far, nodes, check);
            so_far.pop();
        }
    }
    for nodes in 1..=3_usize {
        let subset = |bits: usize| (0..nodes).filter(|n| bits >> n & 1 == 1).collect();
        let subsets: Vec<Vec<usize>> = (0..1 << nodes).map(subset).collect();
        fill(&subsets, 0, &mut Vec::new(), nodes, &mut check);
    }
}

/// All placements of so many blocks.
fn placements(blocks: usize, nodes: usize) -> impl Iterator<Item = Vec<usize>> {
    (0..nodes.pow(blocks as u32)).map(move |mut n| {
        (0..blocks)
            .map(|_| {
                let node = n % nodes;
                n /= nodes;
                node
            })
            .collect()
    })
}

#[test]
fn seed003_pio14_balanced_equals_brute_force_on_every_small_instance() {
    let mut count = 0_u64;
    every_small_instance(|accessors, nodes| {
        count += 1;
        let largest = |place: &[usize]| loads(place, nodes).into_iter().max().unwrap_or(0);
        let (by_seed, even) = (
            seed(accessors, nodes),
            balanced(accessors, nodes, &[], None),
        );
        let needed: u64 = accessors
            .iter()
            .map(|s| s.len().saturating_sub(1) as u64)
            .sum();
        assert_eq!(fetches(accessors, &by_seed), needed, "{accessors:?}");
        assert_eq!(fetches(accessors, &even), needed, "{accessors:?}");
        assert!(largest(&even) <= largest(&by_seed), "{accessors:?}");
        // The smallest largest load of all placements with as few fetches, without listing them: blocks of nobody
        // and of everybody can be anywhere, so a load of l is enough if every set of nodes has room for its own.
        let fits = |l: u64| {
            (1..1_usize << nodes).all(|some| {
                let inside = accessors
                    .iter()
                    .filter(|s| !s.is_empty() && s.iter().all(|n| some >> n & 1 == 1));
                inside.count() as u64 <= l * some.count_ones() as u64
            }) && l * nodes as u64 >= accessors.len() as u64
        };
        let best = (0..).find(|l| fits(*l)).unwrap();
        assert_eq!(largest(&even), best, "{accessors:?} on {nodes}");
        // Planning again moves nothing.
        assert_eq!(balanced(accessors, nodes, &[], Some(&even)), even);
    });
    assert_eq!(count, 44 + 494 + 12869, "all of them");
}

/// The formula above against a list of all placements, on the smaller ones.
#[test]
fn seed003_pio14_cost_equals_brute_force() {
    every_small_instance(|accessors, nodes| {
        if accessors.len() > 5 {
            return;
        }
        for (block_s, fetch_s) in [
            (vec![1.0], 0.3),
            (vec![1.0], 2.5),
            (vec![3.0, 1.0, 1.5], 0.7),
        ] {
            let speeds = Speeds { block_s, fetch_s };
            let found = speeds.seconds(accessors, &cost(accessors, nodes, &speeds), nodes);
            let all = placements(accessors.len(), nodes);
            let best = all
                .map(|p| speeds.seconds(accessors, &p, nodes))
                .fold(f64::INFINITY, f64::min);
            assert!(
                found <= best + 1e-9,
                "{accessors:?} on {nodes}: {found} against {best}"
            );
        }
        let inside = |p: &Vec<usize>| {
            let at = |(set, n): (&Vec<usize>, &usize)| set.is_empty() || set.contains(n);
            accessors.iter().zip(p).all(at)
        };
        let largest = |place: &[usize]| loads(place, nodes).into_iter().max().unwrap_or(0);
        let best = placements(accessors.len(), nodes)
            .filter(inside)
            .map(|p| largest(&p))
            .min();
        let even = balanced(accessors, nodes, &[], None);
        assert_eq!(Some(largest(&even)), best, "{accessors:?} on {nodes}");
    });
}

#[test]
fn clustered_blocks_keep_their_neighbours() {
    let accessors = sets(&["01"; 12]);
    assert_eq!(
        clustered(&accessors, 2, 3),
        [0, 0, 0, 1, 1, 1, 0, 0, 0, 1, 1, 1]
    );
    assert_eq!(clustered(&accessors, 2, 1), seed(&accessors, 2));
}

/// A template of one file, fitted to another of the same shape, plans the same fetches as were learned: with the numbers of
/// table 3.2 of the specification.
#[test]
fn seed003_pio19_a_template_plans_as_many_fetches_as_were_learned() {
    use advise::profile::blocks::AccessMap;
    use advise::profile::template::Template;
    use advise::profile::{Entry, Profile, Recorder};
    for (nodes, published) in [(2_u64, 3), (4, 9), (8, 20)] {
        let (rows, row) = (2000_u64, 4000_u64);
        let mut profile = Profile::default();
        for rank in 0..nodes {
            let first = (rank * rows / nodes).saturating_sub(1) * row;
            let end = ((rank + 1) * rows / nodes + 1).min(rows) * row;
            let recorder = Recorder::default();
            recorder.record(false, first, end - first);
            let mut entry = Entry::new(&layout::View::whole_file(), "", rows * row);
            [entry.read, entry.written] = recorder.take();
            profile.add("sor", rank, entry);
        }
        let template = Template {
            array: "f32[2000,1000]".into(),
            file_bytes: rows * row,
            profile,
        };
        let plan = |profile: &Profile| {
            let blocks = AccessMap::new(profile, rows * row).blocks(4096);
            let list = |b: &Vec<(usize, f64)>| b.iter().map(|(p, _)| *p).collect();
            let accessors: Vec<Vec<usize>> = blocks.iter().map(list).collect();
            let place = balanced(&accessors, nodes as usize, &[], None);
            (fetches(&accessors, &place), place)
        };
        let (learned, place) = plan(&template.profile);
        assert_eq!(learned, published, "{nodes} nodes");
        let array = "f32[2000,1000]".parse().unwrap();
        let other = Template::load(&template.save()).unwrap();
        let fitted = other.fit(Some(&array), rows * row, 0).unwrap();
        assert_eq!(plan(&fitted), (learned, place), "{nodes} nodes");
    }
}
