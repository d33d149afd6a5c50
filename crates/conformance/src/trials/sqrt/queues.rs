//! Square roots and decompression on a queue.

use ark_bls12_381::{Fr, g1};
use evariste::{
    field::Mont,
    sqrt::{Check, Decompress, Encoding, HashToCurve, MapToCurve, NthRoot, PointCheck, Sqrt},
};

use crate::{
    harness::{Named, Outcome},
    misplaced::Plan,
    order_checker::{expect_ordered, on_plans},
};

pub(super) const ORDERED: &[Named] = &[("square roots", square_roots)];

/// What refuses a queue of another device.
pub(super) const PLANS: &[Plan] = &[
    ("square roots", |m| {
        let host = [Fr::from(4); 5];
        let squares = m.device.upload::<Mont<Fr>>(&host)?;
        let (mut roots, mut mask) = (m.device.zeros(5)?, m.device.zeros(5)?);
        let sqrt = Sqrt::<Fr>::new(&m.device)?.on(&m.queue);
        m.refuses(|| sqrt.sqrt(&squares, &mut roots, &mut mask))?;
        m.refuses(|| sqrt.sqrt_ratio(&squares, &squares, &mut roots, &mut mask))?;
        m.refuses(|| sqrt.legendre(&squares, &mut mask))?;
        m.refuses(|| sqrt.sqrt_host(&host))
    }),
    ("cube roots", |m| {
        let host = [Fr::from(8); 5];
        let cubes = m.device.upload::<Mont<Fr>>(&host)?;
        let (mut roots, mut mask) = (m.device.zeros(5)?, m.device.zeros(5)?);
        let plan = NthRoot::<Fr>::new(&m.device, 3)?.on(&m.queue);
        m.refuses(|| plan.nth_root(&cubes, &mut roots, &mut mask))?;
        m.refuses(|| plan.nth_root_host(&host))
    }),
    ("points from their encodings", |m| {
        let host = [0; 5 * 48];
        let bytes = m.device.upload::<u8>(&host)?;
        let (mut points, mut status) = (m.device.zeros(5)?, m.device.zeros(5)?);
        let decompress = Decompress::<g1::Config>::new(&m.device, Encoding::Zcash)?.on(&m.queue);
        m.refuses(|| decompress.decompress(&bytes, &mut points, &mut status))?;
        m.refuses(|| decompress.decompress_host(&host))?;
        m.refuses(|| decompress.try_decompress_host(&host))
    }),
    ("checked points", |m| {
        let (mut points, mut status) = (m.device.zeros(5)?, m.device.zeros(5)?);
        let check = PointCheck::<g1::Config>::new(&m.device, Check::Subgroup)?.on(&m.queue);
        m.refuses(|| check.check(&mut points, &mut status))?;
        m.refuses(|| check.expect_valid(&mut points))?;
        m.refuses(|| check.invalid(&mut points))
    }),
    ("elements mapped to a curve", |m| {
        let (elements, mut mapped) = (m.device.zeros(5)?, m.device.zeros(5)?);
        let map = MapToCurve::<g1::Config>::new(&m.device)?.on(&m.queue);
        m.refuses(|| map.map(&elements, &mut mapped))
    }),
    ("messages hashed to a curve", |m| {
        let hash = HashToCurve::<g1::Config>::new(&m.device, b"misplaced")?.on(&m.queue);
        m.refuses(|| hash.hash_host(&[b"a message"]))
    }),
];

/// Plans whose tables, primes and programs are uploaded when they are made, on a queue that did not see that.
fn square_roots() -> Outcome {
    on_plans(|ordered, made_on, queue| {
        let device = queue.device();
        let (mut roots, mut mask) = (device.alloc::<Mont<Fr>>(5)?, device.alloc::<u32>(5)?);
        let mut squares = device.alloc::<Mont<Fr>>(5)?;
        queue.write(&mut squares, &[Fr::from(4); 5])?;
        Sqrt::<Fr>::new(made_on)?.on(queue).sqrt(&squares, &mut roots, &mut mask)?;
        expect_ordered(ordered, "roots")?;
        NthRoot::<Fr>::new(made_on, 3)?.on(queue).nth_root(&squares, &mut roots, &mut mask)?;
        expect_ordered(ordered, "cube roots")?;

        let mut bytes = device.alloc::<u8>(5 * 48)?;
        queue.clear(&mut bytes)?;
        let mut points = device.alloc(5)?;
        let decompress = Decompress::<g1::Config>::new(made_on, Encoding::Zcash)?;
        decompress.on(queue).decompress(&bytes, &mut points, &mut mask)?;
        expect_ordered(ordered, "points from their encodings")?;

        let mut elements = device.alloc(5)?;
        queue.clear(&mut elements)?;
        let mut mapped = device.alloc(5)?;
        MapToCurve::<g1::Config>::new(made_on)?.on(queue).map(&elements, &mut mapped)?;
        expect_ordered(ordered, "elements mapped to a curve")
    })
}
