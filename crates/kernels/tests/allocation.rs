//! Streams and descriptors allocate nothing once compiled: allocations of the calling thread are
//! counted.

use std::io::Read;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;

use allocation_counter::measure;
use falls::{FallsSet, Periodic, Segment};
use kernels::{SharedBytes, Stream, receive_exact, send_all};

fn irregular() -> Periodic {
    let segments: Vec<Segment> = (0..10_000u64)
        .map(|i| Segment::new(20 * i + i % 7, 1 + i % 9).expect("valid"))
        .collect();
    let set = FallsSet::from_segments(&segments).expect("ascending");
    Periodic::new(0, 200_100, set).expect("valid")
}

#[test]
fn no_call_of_a_stream_allocates() {
    let nested = "{(0,63,128,9,{(0,7,16,4)}),(2000,2003),(2010,2012,5,40)}";
    let regular = Periodic::new(5, 4096, nested.parse().expect("set")).expect("valid");
    for periodic in [irregular(), regular, Periodic::everything()] {
        let stream = Stream::new(&periodic);
        let mut memory = vec![1; 300_000];
        let end = stream.rank(memory.len() as u64);
        let mut packed = vec![2; end as usize];
        let counted = measure(|| {
            for range in [0..end, 1..end - 1, end / 2..end / 2 + 3, 7..7] {
                stream
                    .gather(range.clone(), memory[..].into(), 0, &mut packed)
                    .expect("in bounds");
                stream
                    .scatter(range.clone(), &packed, memory[..].as_mut().into(), 0)
                    .expect("in bounds");
                stream
                    .fill_zeros(range.clone(), memory[..].as_mut().into(), 0)
                    .expect("in bounds");
                assert!(stream.contiguous(range).is_some() || !periodic.is_everything());
                // Refusals too.
                let refused = stream.gather(0..end + 1, memory[..].into(), 0, &mut packed);
                assert!(refused.is_err());
            }
        });
        assert_eq!(counted.count_total, 0);
    }
}

#[test]
fn descriptors_are_served_from_the_stack() {
    let (left, mut right) = UnixStream::pair().expect("pair");
    let bytes = [7u8; 100];
    let mut into = [0u8; 100];
    let counted = measure(|| {
        let pieces = [SharedBytes::from(&bytes[..]); 5];
        send_all(left.as_fd(), &[b"head", b"er"], &pieces).expect("sent");
        let mut header = [0; 6];
        right.read_exact(&mut header).expect("read");
        let (low, high) = into.split_at_mut(40);
        for _ in 0..5 {
            let mut targets = [low.as_mut().into(), high.as_mut().into()];
            receive_exact(right.as_fd(), &mut targets).expect("received");
        }
    });
    assert_eq!(counted.count_total, 0);
    assert_eq!(into, bytes);
}
