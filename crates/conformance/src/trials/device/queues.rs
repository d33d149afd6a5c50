//! What several queues do with the same memory comes out as if one thing had been done after the other.

use ark_ff::{Field, Zero};
use ark_std::rand::{Rng, SeedableRng, rngs::StdRng};
use evariste::backend::{Buffer, Device, Error, HostBuffer, PinnedPipeline, Queue, Secrecy, Transfer};
use evariste::field::{Mont, Vector, small::BabyBear};

use crate::{
    expect::expect_same,
    harness::{DeviceTrials, Outcome},
};

const BUFFERS: usize = 3;
const PARTS: usize = 4;

pub(crate) fn add(trials: &mut DeviceTrials<'_>) {
    trials.add("memory_made_on_the_default_queue", made_on_the_default_queue);
    trials.add("work_of_a_piece_on_another_queue", piece_on_another_queue);
    trials.add("programs_on_several_queues", programs);
}

/// How often something is tried that goes wrong once in a while, and with how many elements.
fn rounds(device: &Device) -> (u64, usize) {
    let features = &device.info().features;
    if features.queues && !features.software { (1000, 1 << 16) } else { (3, 64) }
}

/// Keeps the default queue behind with something that takes its time.
fn delay(vector: &Vector<BabyBear>, long: &mut Buffer<Mont<BabyBear>>) -> Result<(), Error> {
    vector.pow_assign(long, [u64::MAX; 2])
}

fn made_on_the_default_queue(device: &Device) -> Outcome {
    let (rounds, len) = rounds(device);
    let (queue, vector) = (device.queue()?, Vector::<BabyBear>::new(device));
    let mut long = device.upload::<Mont<BabyBear>>(&vec![BabyBear::from(3); len])?;
    let ones = device.upload::<u32>(&vec![1; len])?;
    for _ in 0..rounds {
        delay(&vector, &mut long)?;
        let mut x = device.zeros::<u32>(len)?;
        queue.copy(&ones, &mut x)?;
        expect_same("copied to zeros of the default queue", &queue.read(&x)?, &vec![1; len])?;
        queue.clear(&mut x)?;
        expect_same("cleared on the other queue", &x.to_vec()?, &vec![0; len])?;
    }
    Ok(())
}

fn piece_on_another_queue(device: &Device) -> Outcome {
    let (rounds, len) = rounds(device);
    let vector = Vector::<BabyBear>::new(device);
    let mut long = device.upload::<Mont<BabyBear>>(&vec![BabyBear::from(3); len])?;
    let mut stream = PinnedPipeline::<u32>::new(device, len, Secrecy::Public)?;
    let mut pieces = 0;
    let mut check = |parts: Option<Vec<HostBuffer>>| -> Outcome {
        let Some(parts) = parts else { return Ok(()) };
        let (low, high) = parts[0].split_at(parts[0].len() / 2);
        expect_same("what the default queue cleared", low, &vec![0; low.len()])?;
        expect_same("the rest of the piece", high, &vec![pieces as u8 | 1; high.len()])?;
        pieces += 1;
        Ok(())
    };
    for round in 0..rounds {
        let mut host = device.host_buffer(4 * len, Transfer::Both, Secrecy::Public)?;
        host.fill(round as u8 | 1);
        let work = |_: &Queue, piece: &mut Buffer<u32>| {
            if round % 4 == 0 {
                delay(&vector, &mut long)?;
            }
            piece.view_mut(..len / 2)?.clear()?;
            Ok::<_, Error>(0..len)
        };
        check(stream.run(vec![host], work)?)?;
    }
    while let Some(parts) = stream.next()? {
        check(Some(parts))?;
    }
    Ok(())
}

/// Steps on three queues that nobody orders, over buffers of four parts with one value each.
fn programs(device: &Device) -> Outcome {
    let (rounds, len) = rounds(device);
    let queues = [device.default_queue(), device.queue()?, device.queue()?];
    let vectors = queues.each_ref().map(|queue| Vector::<BabyBear>::new(device).on(queue));
    for round in 0..rounds / 4 + 1 {
        let mut random = StdRng::seed_from_u64(round);
        let mut values = [[BabyBear::zero(); PARTS]; BUFFERS];
        let mut buffers: Vec<_> =
            (0..BUFFERS).map(|_| device.zeros::<Mont<BabyBear>>(len)).collect::<Result<_, _>>()?;
        for step in 0..40u64 {
            let (on, x, y) =
                (random.gen_range(0..queues.len()), random.gen_range(0..BUFFERS), random.gen_range(0..BUFFERS));
            let (first, last) = (random.gen_range(0..PARTS), random.gen_range(0..PARTS));
            let parts = first.min(last)..first.max(last) + 1;
            let range = parts.start * len / PARTS..parts.end * len / PARTS;
            let (queue, vector, value) = (&queues[on], &vectors[on], BabyBear::from(1000 * round + step));
            match random.gen_range(0..7) {
                0 => {
                    queue.write(buffers[x].view_mut(range.clone())?, &vec![value; range.len()])?;
                    values[x][parts].fill(value);
                }
                1 => {
                    queue.clear(buffers[x].view_mut(range)?)?;
                    values[x][parts].fill(BabyBear::zero());
                }
                2 => {
                    vector.pow_assign(buffers[x].view_mut(range)?, [65_537])?;
                    values[x][parts].iter_mut().for_each(|value| *value = value.pow([65_537]));
                }
                3 => {
                    let read = queue.download(buffers[x].view(range.clone())?)?;
                    let expected: Vec<_> =
                        values[x][parts].iter().flat_map(|value| vec![*value; len / PARTS]).collect();
                    expect_same(&format!("program {round}, step {step}"), &read.wait()?, &expected)?;
                }
                4 => {
                    // Memory that is dropped under its uses.
                    let old = std::mem::replace(&mut buffers[x], device.alloc(len)?);
                    queue.copy(&old, &mut buffers[x])?;
                }
                kind if x != y => {
                    let [x_buffer, y_buffer] = buffers.get_disjoint_mut([x, y]).map_err(|error| error.to_string())?;
                    let (target, source) = (x_buffer.view_mut(range.clone())?, y_buffer.view(range)?);
                    let of = values[y];
                    let pairs = values[x][parts.clone()].iter_mut().zip(&of[parts]);
                    if kind == 5 {
                        vector.add_assign(target, source)?;
                        pairs.for_each(|(a, b)| *a += b);
                    } else {
                        queue.copy(source, target)?;
                        pairs.for_each(|(a, b)| *a = *b);
                    }
                }
                _ => {}
            }
        }
        for (buffer, values) in buffers.iter().zip(values) {
            let expected: Vec<_> = values.iter().flat_map(|value| vec![*value; len / PARTS]).collect();
            expect_same(&format!("program {round}"), &buffer.to_vec()?, &expected)?;
        }
    }
    Ok(())
}
