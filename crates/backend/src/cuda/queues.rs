//! Work of several queues on the same memory has the result of some order, one after the other. The tests use the
//! double in [`super::double`], whichever queue runs first.

use super::{
    double::{self, Failure},
    stream::CudaQueue,
    tests::{Fill, LEN, fill, host, launch, open},
};
use crate::{
    buffer::Buffer,
    device::Device,
    device::dispatch::Arg,
    error::{Error, Result},
    handles::Event,
    host::Pending,
    info::Transfer,
    kernel::Kernel,
    pinned_pipeline::PinnedPipeline,
    queue::Queue,
    secrecy::Secrecy,
};

/// Numbers without a pattern (SplitMix64).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % bound as u64) as usize
    }
}

const QUEUES: usize = 3;
const BUFFERS: usize = 3;
const PARTS: usize = 4;

/// What a program has on the device, and what it should be.
struct World {
    device: Device,
    /// Where some of it is copied.
    other: Device,
    copies: Vec<(Buffer<u32>, Vec<u32>)>,
    queues: Vec<Queue>,
    fill: Kernel<Fill>,
    buffers: Vec<Buffer<u32>>,
    expected: Vec<Vec<u32>>,
    events: Vec<Event>,
    reads: Vec<(Pending, Vec<u32>)>,
}

impl World {
    fn new() -> Self {
        let device = open(0).unwrap();
        let further = (1..QUEUES).map(|_| device.queue().unwrap());
        Self {
            queues: [device.default_queue()].into_iter().chain(further).collect(),
            fill: fill(&device).unwrap(),
            buffers: (0..BUFFERS).map(|i| device.upload(&vec![i as u32; LEN]).unwrap()).collect(),
            expected: (0..BUFFERS).map(|i| vec![i as u32; LEN]).collect(),
            events: Vec::new(),
            reads: Vec::new(),
            copies: Vec::new(),
            other: open(1).unwrap(),
            device,
        }
    }

    fn step(&mut self, random: &mut Random, word: u32) -> Result<()> {
        let on = random.below(QUEUES);
        let queue = &self.queues[on];
        let [x, y] = [random.below(BUFFERS), random.below(BUFFERS)];
        let part = |random: &mut Random| {
            let (from, to) = (random.below(PARTS), random.below(PARTS));
            from.min(to) * LEN / PARTS..(from.max(to) + 1) * LEN / PARTS
        };
        let range = part(random);
        match random.below(12) {
            0 => {
                launch(&self.fill, queue, word, &mut self.buffers[x])?;
                self.expected[x].fill(word);
            }
            1 => {
                queue.clear(self.buffers[x].view_mut(range.clone())?)?;
                self.expected[x][range].fill(0);
            }
            2 if x != y => {
                let (to, from) = (&mut self.buffers, range.clone());
                let [to, source] = to.get_disjoint_mut([x, y]).unwrap();
                queue.copy(source.view(from)?, to.view_mut(range.clone())?)?;
                let copied = self.expected[y][range.clone()].to_vec();
                self.expected[x][range].copy_from_slice(&copied);
            }
            // From one part of a buffer to another.
            2 => {
                let (low, high) = self.buffers[x].as_view_mut().split_at(LEN / 2)?;
                queue.copy(&low, high)?;
                self.expected[x].copy_within(..LEN / 2, LEN / 2);
            }
            3 => {
                let mut memory = self.device.host_buffer(4 * range.len(), Transfer::Both, Secrecy::Public)?;
                memory.chunks_exact_mut(4).for_each(|bytes| bytes.copy_from_slice(&word.to_le_bytes()));
                drop(queue.write_pinned(self.buffers[x].view_mut(range.clone())?, memory)?);
                self.expected[x][range].fill(word);
            }
            4 => {
                let memory = self.device.host_buffer(4 * range.len(), Transfer::Both, Secrecy::Public)?;
                let read = queue.read_pinned(self.buffers[x].view(range.clone())?, memory)?;
                self.reads.push((read, self.expected[x][range].to_vec()));
            }
            5 => self.events.push(queue.record()?),
            6 => {
                if !self.events.is_empty() {
                    let at = random.below(self.events.len());
                    queue.wait_for(&self.events[at])?;
                }
            }
            // Memory that is dropped under its uses, and new one.
            7 => {
                let old = std::mem::replace(&mut self.buffers[x], self.device.alloc(LEN)?);
                queue.copy(&old, &mut self.buffers[x])?;
            }
            // A queue goes and another one comes, which may be the same stream.
            8 => {
                if on > 0 {
                    self.queues[on] = self.device.queue()?;
                }
            }
            // To another device, on its own queue.
            9 => {
                let mut copy = self.other.alloc::<u32>(range.len())?;
                copy.copy_from(self.buffers[x].view(range.clone())?)?;
                self.copies.push((copy, self.expected[x][range].to_vec()));
            }
            // Parts of words, which are written as a whole.
            10 => {
                let bytes = self.device.upload::<u8>(&[7; 10])?;
                let mut target = self.device.alloc::<u8>(10)?;
                queue.copy(bytes.view(4..)?, target.view_mut(4..)?)?;
                let (low, high) = target.as_view_mut().split_at(4)?;
                let next = &self.queues[(on + 1) % QUEUES];
                queue.write(high, &[1, 2, 3, 4, 5, 6])?;
                next.write({ low }.view_mut(1..3)?, &[8, 9])?;
                let found = self.queues[(on + 2) % QUEUES].read(target.view(1..9)?)?;
                assert!(found[..2] == [8, 9] && found[3..] == [1, 2, 3, 4, 5], "{found:?}");
            }
            _ => {
                let memory = host(&self.device, Transfer::Both, Secrecy::Public, word)?;
                let (events, sent) = queue.write_pinned_columns(&mut self.buffers[x], memory, 4, 4)?;
                drop(sent);
                self.events.extend(events);
                self.expected[x].fill(word);
            }
        }
        Ok(())
    }

    fn check(self, case: &str) {
        for (i, (read, expected)) in self.reads.into_iter().enumerate() {
            let found: Vec<u32> = bytemuck::pod_collect_to_vec(&read.wait().unwrap());
            assert!(found == expected, "{case}, read {i}: {} in place of {}", found[0], expected[0]);
        }
        for (copy, expected) in &self.copies {
            assert!(copy.to_vec().unwrap() == *expected, "{case}, a copy on the other device");
        }
        for (i, (buffer, expected)) in self.buffers.iter().zip(&self.expected).enumerate() {
            let found = buffer.to_vec().unwrap();
            let wrong = found.iter().zip(expected).position(|(a, b)| a != b);
            assert!(wrong.is_none(), "{case}, buffer {i}: {wrong:?}");
        }
    }
}

/// What a call's failure leaves: the memory that the failed step would have written holds anything, all else what it
/// should.
#[test]
fn calls_that_fail_leave_the_rest_in_order() {
    let functions =
        ["cuEventRecord", "cuStreamWaitEvent", "cuMemcpyPeerAsync", "cuMemcpyDtoDAsync_v2", "cuMemcpyHtoDAsync_v2"];
    for (seed, function) in (0..200).flat_map(|seed| functions.map(|function| (seed, function))) {
        for failure in [Failure::Once, Failure::Late] {
            let case = format!("program {seed}, {function} fails: {failure:?}");
            double::reset(false);
            let mut random = Random(seed);
            let mut world = World::new();
            double::fail(function, random.below(12), failure);
            for word in 1..30 {
                let known = (world.reads.len(), world.copies.len());
                if world.step(&mut random, 1000 * word).is_err() {
                    // Whatever was to be written may be or not: all of it is written anew.
                    let queues = [0, 1, 2].map(|i| world.queues[i].clone());
                    world.reads.truncate(known.0);
                    world.copies.truncate(known.1);
                    for (i, buffer) in world.buffers.iter_mut().enumerate() {
                        queues[i].write(&mut *buffer, &[word; LEN]).unwrap();
                        world.expected[i].fill(word);
                    }
                }
            }
            double::run_last(random.below(QUEUES));
            world.check(&case);
            double::run_all();
            assert_eq!((double::faults(), double::left()), (Vec::new(), [0; 6]), "{case}");
        }
    }
}

/// Memory whose order is the caller's is not freed under work that nobody ordered any more, since something failed.
#[test]
fn memory_that_the_caller_orders_is_freed_behind_all_queues() {
    double::reset(false);
    let device = open(0).unwrap();
    let (transfers, work, kernel) = (device.queue().unwrap(), device.queue().unwrap(), fill(&device).unwrap());
    let mut x = device.alloc::<u32>(LEN).unwrap();
    let memory = host(&device, Transfer::Both, Secrecy::Public, 1).unwrap();
    let (events, sent) = transfers.write_pinned_columns(&mut x, memory, 4, 4).unwrap();
    work.wait_for(&events[0]).unwrap();
    // SAFETY: the double fills what nobody looks at.
    let launched =
        unsafe { kernel.launch(&work, 1, &Fill { word: 2 }, &mut [Arg::write(x.as_view_mut().assume_ordered())]) };
    launched.unwrap();
    drop(x);
    // What is freed comes to its turn first.
    double::run_some(0, 100);
    drop((sent, events, transfers, work, kernel, device));
    double::run_all();
    assert_eq!((double::faults(), double::left()), (Vec::new(), [0; 6]));
}

/// What one queue writes in parts, another one reads in parts, one behind the other, by events that tell of the parts.
#[test]
fn parts_in_turns_overlap_by_events() {
    double::reset(false);
    let device = open(0).unwrap();
    let (a, b) = (device.queue().unwrap(), device.queue().unwrap());
    let (mut x, mut out) = (device.zeros::<u32>(LEN).unwrap(), device.zeros::<u32>(4 * LEN).unwrap());
    let mut written = Vec::new();
    // Both queues have come after the zeros.
    a.clear(&mut x).unwrap();
    b.wait_for(&a.record().unwrap()).unwrap();
    b.clear(&mut out).unwrap();
    for round in 0..4 {
        let half = round % 2 * LEN / 2..(round % 2 + 1) * LEN / 2;
        calls(MARKS_AND_WAITS);
        a.clear(x.view_mut(half.clone()).unwrap()).unwrap();
        // It comes after the reader of two rounds before.
        let [marks, _] = calls(MARKS_AND_WAITS);
        assert_eq!(marks, usize::from(round >= 2), "{round}");
        written.push((half, a.record().unwrap()));
        if round > 0 {
            let (half, event) = &written[round - 1];
            b.wait_for(event).unwrap();
            calls(MARKS_AND_WAITS);
            b.copy(x.view(half.clone()).unwrap(), out.view_mut(round * LEN / 2..(round + 1) * LEN / 2).unwrap())
                .unwrap();
            assert_eq!(calls(MARKS_AND_WAITS), [0, 0], "{round}");
        }
    }
}

#[test]
fn programs_on_several_queues_give_what_they_would_on_one() {
    for seed in 0..1500 {
        for last in 0..QUEUES {
            let case = format!("program {seed}, queue {last} last");
            double::reset(false);
            let mut random = Random(seed);
            let mut world = World::new();
            for word in 1..30 {
                world.step(&mut random, 1000 * word).unwrap();
                // Some of it is done in between.
                if random.below(8) == 0 {
                    double::run_some(random.below(QUEUES), 1 + random.below(3));
                }
            }
            double::run_last(last);
            world.check(&case);
            double::run_all();
            assert_eq!((double::faults(), double::left()), (Vec::new(), [0; 6]), "{case}");
        }
    }
}

/// Calls of a function of the driver since the last question.
fn calls(of: [&str; 2]) -> [usize; 2] {
    let calls = double::calls();
    of.map(|function| calls.get(function).copied().unwrap_or(0))
}

const MARKS_AND_WAITS: [&str; 2] = ["cuEventRecord", "cuStreamWaitEvent"];

#[test]
fn one_queue_pays_for_no_events() {
    double::reset(false);
    let device = open(0).unwrap();
    let kernel = fill(&device).unwrap();
    let mut x = device.zeros::<u32>(LEN).unwrap();
    calls(MARKS_AND_WAITS);
    let queue = device.default_queue();
    for word in 0..10 {
        launch(&kernel, &queue, word, &mut x).unwrap();
        x.view_mut(..LEN / 2).unwrap().clear().unwrap();
    }
    assert_eq!(calls(MARKS_AND_WAITS), [0, 0]);
    // A further queue waits for the first one once, and then for nobody.
    let further = device.queue().unwrap();
    (0..10).for_each(|word| launch(&kernel, &further, word, &mut x).unwrap());
    assert_eq!(calls(MARKS_AND_WAITS), [1, 1]);
    // Readers do not wait for one another.
    let mut y = device.alloc::<u32>(LEN).unwrap();
    calls(MARKS_AND_WAITS);
    y.copy_from(&x).unwrap();
    assert_eq!(calls(MARKS_AND_WAITS), [1, 1]);
    for queue in [&queue, &further] {
        queue.duplicate(x.view(..16).unwrap()).unwrap();
    }
    double::run_all();
    // The memory of both copies was made and freed in the order of the default queue, which the further one used.
    assert_eq!(calls(MARKS_AND_WAITS), [2 + 1, 1 + 1]);
}

#[test]
fn events_of_the_caller_are_enough() {
    double::reset(false);
    let device = open(0).unwrap();
    let kernel = fill(&device).unwrap();
    let (a, b) = (device.queue().unwrap(), device.queue().unwrap());
    let [mut x, mut y] = [(); 2].map(|()| device.zeros::<u32>(LEN).unwrap());
    launch(&kernel, &a, 1, &mut x).unwrap();
    let written = a.record().unwrap();
    // More work of the same queue, that the other one need not wait for.
    launch(&kernel, &a, 2, &mut y).unwrap();
    b.wait_for(&written).unwrap();
    calls(MARKS_AND_WAITS);
    launch(&kernel, &b, 3, &mut x).unwrap();
    b.wait_for(&written).unwrap();
    assert_eq!(calls(MARKS_AND_WAITS), [0, 0]);
    // By way of a third queue, and of the host.
    device.default_queue().wait_for(&b.record().unwrap()).unwrap();
    calls(MARKS_AND_WAITS);
    x.clear().unwrap();
    assert_eq!(calls(MARKS_AND_WAITS), [0, 0]);
    a.wait_for(&device.default_queue().record().unwrap()).unwrap();
    let memory = || host(&device, Transfer::Both, Secrecy::Public, 0).unwrap();
    drop(a.read_pinned(&y, memory()).unwrap().wait().unwrap());
    calls(MARKS_AND_WAITS);
    launch(&kernel, &b, 4, &mut y).unwrap();
    launch(&kernel, &a, 5, &mut x).unwrap();
    assert_eq!(calls(MARKS_AND_WAITS), [0, 0]);
    assert_eq!((x.to_vec().unwrap(), y.to_vec().unwrap()), (vec![5; LEN], vec![4; LEN]));

    // What the default queue reads is read beside it, after what it wrote.
    let mut fresh = device.zeros::<u32>(LEN).unwrap();
    let written = device.default_queue().record().unwrap();
    y.copy_from(&fresh).unwrap();
    a.wait_for(&written).unwrap();
    let memory = memory();
    calls(MARKS_AND_WAITS);
    let read = a.read_pinned(&fresh, memory).unwrap();
    // The mark of the copy's end.
    assert_eq!(calls(MARKS_AND_WAITS), [1, 0]);
    drop(read);
    fresh.clear().unwrap();
    assert_eq!(calls(MARKS_AND_WAITS), [1, 1]);
}

/// What raced before: memory that the default queue makes ready, in the hands of another one.
#[test]
fn memory_made_on_the_default_queue_is_ready_on_others() {
    for last in 0..2 {
        double::reset(false);
        let device = open(0).unwrap();
        let queue = device.queue().unwrap();
        let ones = device.upload::<u32>(&[1; LEN]).unwrap();
        let mut x = device.zeros::<u32>(LEN).unwrap();
        queue.copy(&ones, &mut x).unwrap();
        double::run_last(last);
        assert_eq!(x.to_vec().unwrap(), [1; LEN]);
    }
}

/// The host hears that an upload is done, behind which memory was made: another queue waits for that memory all the
/// same.
#[test]
fn what_the_driver_answers_is_no_order() {
    double::reset(false);
    let device = open(0).unwrap();
    let queue = device.queue().unwrap();
    let [mut x, mut y] = [(); 2].map(|()| device.alloc::<u32>(LEN).unwrap());
    let memory = host(&device, Transfer::Both, Secrecy::Public, 1).unwrap();
    drop(device.default_queue().write_pinned(&mut y, memory).unwrap());
    double::run_all();
    // Takes back what is done.
    drop(host(&device, Transfer::Both, Secrecy::Public, 2).unwrap());
    calls(MARKS_AND_WAITS);
    queue.clear(&mut x).unwrap();
    assert_eq!(calls(MARKS_AND_WAITS), [0, 1]);
}

/// What raced before: work of a stream's piece on the default queue in place of the piece's own.
#[test]
fn work_of_a_piece_on_another_queue_is_in_order() {
    for last in 0..4 {
        double::reset(false);
        let device = open(0).unwrap();
        let mut stream = PinnedPipeline::<u32>::new(&device, LEN, Secrecy::Public).unwrap();
        for word in 0..6 {
            let memory = host(&device, Transfer::Both, Secrecy::Public, word + 1).unwrap();
            let work = |_: &Queue, piece: &mut Buffer<u32>| {
                piece.view_mut(..LEN / 2)?.clear()?;
                Ok::<_, Error>(0..LEN)
            };
            drop(stream.run(vec![memory], work).unwrap());
        }
        double::run_last(last);
        let mut words = Vec::new();
        while let Some(parts) = stream.next().unwrap() {
            words.extend(bytemuck::pod_collect_to_vec::<u8, u32>(&parts[0]).chunks(LEN / 2).map(|half| half.to_vec()));
        }
        let last = words.last().unwrap();
        assert!(last.iter().all(|word| *word == 6));
        assert!(words.iter().step_by(2).flatten().all(|word| *word == 0));
    }
}

/// The stream of a queue.
fn stream(queue: &Queue) -> usize {
    queue.handle().downcast_ref::<CudaQueue>().unwrap().stream().raw().addr()
}

#[test]
fn a_new_queue_gets_the_stream_whose_work_ends_first() {
    double::reset(false);
    let device = open(0).unwrap();
    let kernel = fill(&device).unwrap();
    let busy = |x: &mut Buffer<u32>| {
        let queue = device.queue().unwrap();
        launch(&kernel, &queue, 1, x).unwrap();
        queue
    };
    let [mut x, mut y, mut z] = [(); 3].map(|()| device.zeros::<u32>(LEN).unwrap());
    let queues = [busy(&mut x), busy(&mut y), busy(&mut z)];
    let [first, second, third] = queues.each_ref().map(stream);
    queues.into_iter().for_each(drop);
    // All have work: the one returned longest ago.
    let queue = device.queue().unwrap();
    assert_eq!(stream(&queue), first);
    drop(queue);
    // The host has waited for one of the others.
    let waiting = device.queue().unwrap();
    assert_eq!(stream(&waiting), second);
    assert_eq!(waiting.read(&y).unwrap(), [1; LEN]);
    drop(waiting);
    let idle = device.queue().unwrap();
    assert_eq!(stream(&idle), second);
    let [queue, other] = [(); 2].map(|()| device.queue().unwrap());
    assert_eq!([stream(&queue), stream(&other)], [third, first]);
    double::run_all();
    assert_eq!(double::faults(), Vec::<String>::new());
}
