//! Permutations, hashes and trees on a queue.

use evariste::field::{Mont, small::BabyBear};
use evariste::hash::{ByteHash, HashFunction, Merkle, Poseidon, Poseidon2, Rows, Serialization, SerializingHash};

use super::{
    parameters,
    poseidon::{Fr, pairs},
};
use crate::{
    harness::{Named, Outcome},
    misplaced::Plan,
    order_checker::{expect_ordered, on_plans},
};

pub(super) const ORDERED: &[Named] = &[("hash", hash), ("poseidon", poseidon)];

/// What refuses a queue of another device.
pub(super) const PLANS: &[Plan] = &[
    ("poseidon2", |m| {
        let poseidon2 = Poseidon2::new(&m.device, parameters::<BabyBear>(16)?)?.on(&m.queue);
        let (mut data, mut out) =
            (m.device.upload::<Mont<BabyBear>>(&[BabyBear::from(2); 32])?, m.device.zeros::<Mont<BabyBear>>(16)?);
        m.refuses(|| poseidon2.compress(&data, &mut out))?;
        m.refuses(|| poseidon2.hash_rows(&[Rows::new(&data, 16)], &mut out))?;
        m.refuses(|| poseidon2.grind(&[BabyBear::from(2); 16], 0, 1))?;
        m.refuses(|| poseidon2.permute(&mut data))
    }),
    ("byte_hash", |m| {
        let (data, mut out) = (m.device.upload::<u8>(&[2; 4000])?, m.device.zeros::<[u8; 32]>(2)?);
        for function in [HashFunction::Sha256, HashFunction::Blake3] {
            let hash = ByteHash::new(&m.device, function)?.on(&m.queue);
            m.refuses(|| hash.hash_rows(&data, 2000, &mut out))?;
            m.refuses(|| hash.hash_many(&data, &[0, 9, 4000], &mut out))?;
            m.refuses(|| hash.digest(&data))?;
        }
        Ok(())
    }),
    ("merkle_of_bytes", |m| {
        let serialization = Serialization::plonky3::<BabyBear>(HashFunction::Keccak256);
        let plan = Merkle::new(SerializingHash::<BabyBear>::new(&m.device, serialization)?);
        let data = m.device.upload::<Mont<BabyBear>>(&[BabyBear::from(2); 32])?;
        let matrices = [Rows::new(&data, 8), Rows::new(&data, 16)];
        let (tree, misplaced) = (plan.commit(&matrices)?, plan.on(&m.queue));
        m.refuses(|| misplaced.commit(&matrices))?;
        m.refuses(|| misplaced.open(&tree, &matrices, &[1], 0))?;
        m.refuses(|| misplaced.root(&tree))
    }),
    ("merkle", |m| {
        let plan = Merkle::new(Poseidon2::new(&m.device, parameters::<BabyBear>(16)?)?);
        let data = m.device.upload::<Mont<BabyBear>>(&[BabyBear::from(2); 32])?;
        let matrices = [Rows::new(&data, 8)];
        let (tree, misplaced) = (plan.commit(&matrices)?, plan.on(&m.queue));
        m.refuses(|| misplaced.commit(&matrices))?;
        m.refuses(|| misplaced.open(&tree, &matrices, &[1], 0))?;
        m.refuses(|| misplaced.root(&tree))
    }),
    ("poseidon", |m| {
        let plan = Poseidon::new(&m.device, pairs()?)?.on(&m.queue);
        let (mut data, mut out) = (m.device.upload::<Mont<Fr>>(&[Fr::from(2); 6])?, m.device.zeros::<Mont<Fr>>(3)?);
        m.refuses(|| plan.hash_rows(&data, &mut out))?;
        m.refuses(|| plan.tree(data.view(..4)?))?;
        m.refuses(|| plan.permute(&mut data))
    }),
];

fn hash() -> Outcome {
    on_plans(|ordered, made_on, queue| {
        let device = queue.device();
        let (mut data, mut out) = (device.alloc::<Mont<BabyBear>>(16 * 64)?, device.alloc(8 * 64)?);
        queue.write(&mut data, &vec![BabyBear::from(3); 16 * 64])?;
        let poseidon2 = Poseidon2::new(made_on, parameters::<BabyBear>(16)?)?.on(queue);
        poseidon2.permute(&mut data)?;
        poseidon2.compress(&data, &mut out)?;
        poseidon2.hash_rows(&[Rows::new(&data, 16)], &mut out)?;
        poseidon2.grind(&[BabyBear::from(3); 16], 0, 4)?;
        let merkle = Merkle::new(Poseidon2::new(made_on, parameters::<BabyBear>(16)?)?).on(queue);
        let matrices = [Rows::new(&data, 16), Rows::new(data.view(..32)?, 2)];
        let tree = merkle.commit(&matrices)?;
        let _ = merkle.open(&tree, &matrices, &[5, 9], 0)?;
        merkle.root(&tree)?;
        let mut digests = device.alloc::<[u8; 32]>(2)?;
        let bytes = queue.upload::<u8>(&[3; 4000])?;
        for function in [HashFunction::Sha256, HashFunction::Blake3] {
            let hash = ByteHash::new(made_on, function)?.on(queue);
            hash.hash_rows(&bytes, 2000, &mut digests)?;
            hash.hash_many(&bytes, &[0, 9, 4000], &mut digests)?;
        }
        let serialization = Serialization::plonky3::<BabyBear>(HashFunction::Keccak256);
        let merkle = Merkle::new(SerializingHash::<BabyBear>::new(made_on, serialization)?).on(queue);
        let matrices = [Rows::new(&data, 16), Rows::new(&data, 8)];
        let tree = merkle.commit(&matrices)?;
        let _ = merkle.open(&tree, &matrices, &[5, 9], 0)?;
        merkle.root(&tree)?;
        expect_ordered(ordered, "hash")
    })
}

fn poseidon() -> Outcome {
    on_plans(|ordered, made_on, queue| {
        let device = queue.device();
        let mut data = device.alloc::<Mont<Fr>>(12)?;
        queue.write(&mut data, &[Fr::from(3); 12])?;
        let poseidon = Poseidon::new(made_on, pairs()?)?.on(queue);
        poseidon.permute(&mut data)?;
        let nodes = poseidon.tree(data.view(..8)?)?;
        queue.read(&nodes)?;
        expect_ordered(ordered, "Poseidon")
    })
}
