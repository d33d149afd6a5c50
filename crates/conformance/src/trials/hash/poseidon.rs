//! Poseidon.

use evariste::backend::{Device, Error as DeviceError};
use evariste::field::{DevicePrimeField, Mont};
use evariste::hash::{Error, Poseidon, PoseidonParameters, reference};

use crate::{
    devices::{garbage, other_device},
    expect::{expect, expect_error, expect_same},
    harness::{DeviceTrials, Outcome},
    launches::KernelGroup,
    prepared::quietly,
    samples::samples,
    secrecy::Operation,
    sizes::lengths,
};

pub(super) type Fr = ark_bn254::Fr;

pub(super) fn add(trials: &mut DeviceTrials<'_>) {
    trials.add("poseidon::bn254-fr", |device| poseidon::<Fr>(device, &pairs()?));
    // Of five elements and more, loops shift elements.
    trials.add("poseidon::bls12-381-fr", |device| poseidon::<ark_bls12_381::Fr>(device, &rows()?));
    trials.add("poseidon_misuse", misuse);
}

pub(super) fn pairs() -> Result<PoseidonParameters<Fr>, Error> {
    PoseidonParameters::circomlib(3)
}

fn rows() -> Result<PoseidonParameters<ark_bls12_381::Fr>, Error> {
    PoseidonParameters::generate(6, [4, 5])
}

pub(super) const KERNELS: KernelGroup = KernelGroup {
    name: "poseidon",
    cases: &["poseidon::"],
    kernels: |_| Ok([Poseidon::kernels(&pairs()?), Poseidon::kernels(&rows()?)].concat()),
};

/// States, rows and a tree.
fn poseidon<F: DevicePrimeField>(device: &Device, parameters: &PoseidonParameters<F>) -> Outcome {
    let width = parameters.width();
    let poseidon = Poseidon::new(device, parameters.clone())?;
    for len in lengths(device, &[0, 1, 127, 128, 129, 257]) {
        let states = samples::<F>(len * width, 1);
        let mut expected = states.clone();
        expected.chunks_exact_mut(width).for_each(|state| reference::poseidon(parameters, state));
        let mut data = device.upload::<Mont<F>>(&states)?;
        poseidon.permute(&mut data)?;
        expect_same(&format!("{len} states"), &data.to_vec()?, &expected)?;

        let rows = samples::<F>(1 + len * (width - 1), 2);
        let hash = |row: &[F]| reference::poseidon_hash(parameters, row);
        let expected: Vec<F> = rows[1..].chunks_exact(width - 1).map(hash).collect();
        let (data, mut out) = (device.upload::<Mont<F>>(&rows)?, garbage(device, len)?);
        poseidon.hash_rows(data.view(1..)?, &mut out)?;
        expect_same(&format!("{len} rows"), &out.to_vec()?, &expected)?;
    }
    let leaves = samples::<F>((width - 1).pow(3), 3);
    let mut layer = leaves.clone();
    while layer.len() > 1 {
        layer = layer.chunks_exact(width - 1).map(|row| reference::poseidon_hash(parameters, row)).collect();
    }
    let nodes = poseidon.tree(&device.upload::<Mont<F>>(&leaves)?)?;
    expect_same("the root of a tree", &nodes.view(nodes.len() - 1..)?.to_vec()?, &layer)
}

fn misuse(device: &Device) -> Outcome {
    let poseidon = Poseidon::new(device, pairs()?)?;
    let values = samples::<Fr>(8, 1);
    let (data, mut out) = (device.upload::<Mont<Fr>>(&values)?, device.upload::<Mont<Fr>>(&values)?);
    let wrong_length = |error: Error| matches!(error, Error::Device(DeviceError::Length { .. }));
    let hashed = expect_error("too many rows", poseidon.hash_rows(&data, &mut out))?;
    expect("too many rows have a wrong length", wrong_length(hashed))?;
    let permuted = expect_error("half a state", poseidon.permute(&mut out))?;
    expect("half a state has a wrong length", wrong_length(permuted))?;
    if let Some(other) = other_device(device) {
        let there = other.upload::<Mont<Fr>>(&values)?;
        let error = expect_error("another device", poseidon.hash_rows(&there, out.view_mut(..4)?))?;
        expect("another device is refused", matches!(error, Error::Device(DeviceError::WrongDevice { .. })))?;
    }
    expect_same("outputs after misuse", &out.to_vec()?, &values)
}

pub(super) const PERMUTE: Operation = Operation::new("poseidon_permute", 1, |p| {
    let poseidon = Poseidon::new(&p.device, pairs()?)?;
    let values = samples::<Fr>(364, 1000 * u64::from(p.run()) + 41);
    let mut states = p.in_place(|p| p.operand::<Mont<Fr>>(&values[64..]))?;
    p.watch(|| poseidon.permute(&mut states))
});

pub(super) const TREE: Operation = Operation::new("poseidon_tree", 1, |p| {
    let poseidon = Poseidon::new(&p.device, pairs()?)?;
    let values = samples::<Fr>(320, 1000 * u64::from(p.run()) + 42);
    let leaves = p.operand::<Mont<Fr>>(&values[64..])?;
    p.watch(|| poseidon.tree(&leaves))
});

pub(super) fn prepared(device: &Device) -> Outcome {
    let poseidon = Poseidon::new(device, pairs()?)?;
    poseidon.prepare()?;
    let mut data = device.zeros::<Mont<Fr>>(24)?;
    quietly(device, "what prepared permutations compile", || {
        poseidon.permute(&mut data)?;
        poseidon.tree(data.view(..16)?)?;
        Ok(())
    })
}
