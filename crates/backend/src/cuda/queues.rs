//! What several queues do with the same memory comes out as if one thing had been done after the other, on the double in
//! [`super::double`], whichever queue runs first.

use super::{
    double,
    tests::{Fill, LEN, fill, host, launch, open},
};
use crate::{Buffer, Device, Error, Event, Kernel, Pending, Queue, Result, Secrecy, Stream, Transfer};

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
            device,
        }
    }

    fn step(&mut self, random: &mut Random, word: u32) -> Result<()> {
        let queue = &self.queues[random.below(QUEUES)];
        let [x, y] = [random.below(BUFFERS), random.below(BUFFERS)];
        let part = |random: &mut Random| {
            let (from, to) = (random.below(PARTS), random.below(PARTS));
            from.min(to) * LEN / PARTS..(from.max(to) + 1) * LEN / PARTS
        };
        let range = part(random);
        match random.below(9) {
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
        for (i, (buffer, expected)) in self.buffers.iter().zip(&self.expected).enumerate() {
            let found = buffer.to_vec().unwrap();
            let wrong = found.iter().zip(expected).position(|(a, b)| a != b);
            assert!(wrong.is_none(), "{case}, buffer {i}: {wrong:?}");
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
    let host = a.read_pinned(&y, host(&device, Transfer::Both, Secrecy::Public, 0).unwrap()).unwrap();
    drop(host.wait().unwrap());
    calls(MARKS_AND_WAITS);
    launch(&kernel, &b, 4, &mut y).unwrap();
    launch(&kernel, &a, 5, &mut x).unwrap();
    assert_eq!(calls(MARKS_AND_WAITS), [0, 0]);
    assert_eq!((x.to_vec().unwrap(), y.to_vec().unwrap()), (vec![5; LEN], vec![4; LEN]));
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

/// What raced before: work of a stream's piece on the default queue in place of the piece's own.
#[test]
fn work_of_a_piece_on_another_queue_is_in_order() {
    for last in 0..4 {
        double::reset(false);
        let device = open(0).unwrap();
        let mut stream = Stream::<u32>::new(&device, LEN, Secrecy::Public).unwrap();
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
