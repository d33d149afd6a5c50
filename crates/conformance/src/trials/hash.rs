//! Poseidon2, hash functions of bytes, and Merkle trees.

mod bytes;
mod poseidon;
mod queues;

use evariste::backend::{Buffer, Device, Element, Error as DeviceError, Secrecy, author::KernelSpec};
use evariste::field::{DevicePrimeField, Mont, small};
use evariste::hash::{
    Arity, Dimensions, Error, Merkle, Poseidon2, Poseidon2Field, Poseidon2Parameters, Rows, TreeHash, TreeParameters,
    reference, verify,
};
use libtest_mimic::Failed;

use crate::{
    area::Area,
    devices::{garbage, other_device},
    expect::{expect, expect_equal, expect_error, expect_same},
    harness::{DeviceTrials, Outcome},
    launches::KernelGroup,
    loops::Divided,
    prepared::quietly,
    samples::samples,
    secrecy::{Operation, Probe},
    sizes::lengths,
};

type BabyBear = small::BabyBear;

pub(crate) const AREA: Area = Area {
    kernels: KERNELS,
    operations: OPERATIONS,
    ordered: queues::ORDERED,
    divided: DIVIDED,
    prepared: Some(prepared),
    without_operation: &[("grind", "what it works on is a transcript, which is public")],
    plans: queues::PLANS,
    ..Area::new("hash", add)
};

fn add(trials: &mut DeviceTrials<'_>) {
    trials.add("poseidon2::baby-bear", poseidon2::<BabyBear, 16>);
    trials.add("poseidon2::koala-bear", poseidon2::<small::KoalaBear, 24>);
    trials.add("poseidon2::mersenne-31", poseidon2::<small::Mersenne31, 16>);
    trials.add("poseidon2::goldilocks", poseidon2::<small::Goldilocks, 16>);
    // Elements of two words, and twelve of them by 16 threads.
    trials.add("poseidon2::tree_of_goldilocks", |device| {
        tree_with(device, Poseidon2::new(device, parameters::<small::Goldilocks>(12)?)?, Reads::Shared)
    });
    trials.add("poseidon2::tree_of_four", |device| {
        let hash = Poseidon2::new(device, parameters::<small::Goldilocks>(16)?)?;
        tree_with(device, hash, Reads::Shared)?;
        // A state has no room for four of these digests: the sponge hashes them.
        let by_sponge = parameters::<BabyBear>(16)?.with_arity(Arity::Four);
        tree_with(device, Poseidon2::new(device, by_sponge)?, Reads::Shared)
    });
    // It counts reads of the device.
    trials.add_alone("tree", tree);
    trials.add("by_columns", by_columns);
    trials.add("misuse", misuse);
    bytes::add(trials);
    poseidon::add(trials);
}

/// Four digests are one state of Goldilocks of width 16.
fn parameters<F: Poseidon2Field>(width: usize) -> Result<Poseidon2Parameters<F>, Error> {
    let arity = if F::LIMBS == 2 && width == 16 { Arity::Four } else { Arity::Two };
    Ok(Poseidon2Parameters::plonky3(width)?.with_arity(arity))
}

const KERNELS: &[KernelGroup] = &[POSEIDON2, poseidon::KERNELS, bytes::KERNELS];

const POSEIDON2: KernelGroup = KernelGroup {
    name: "hash",
    cases: &["poseidon2::"],
    kernels: |_| {
        Ok([
            Poseidon2::kernels(&parameters::<BabyBear>(16)?),
            Poseidon2::kernels(&parameters::<small::KoalaBear>(24)?),
            Poseidon2::kernels(&parameters::<small::Mersenne31>(16)?),
            Poseidon2::kernels(&parameters::<small::Goldilocks>(16)?),
            // A tree launches them.
            Poseidon2::kernels(&parameters::<small::Goldilocks>(12)?).into_iter().filter(is_of_layers).collect(),
        ]
        .concat())
    },
};

fn is_of_layers(kernel: &KernelSpec) -> bool {
    kernel.name == "compress_layers"
}

/// States, rows of one and of several matrices, and pairs.
fn poseidon2<F: Poseidon2Field, const WIDTH: usize>(device: &Device) -> Outcome {
    let parameters = parameters::<F>(WIDTH)?;
    let (rate, digest) = (parameters.rate(), parameters.digest());
    let poseidon2 = Poseidon2::new(device, parameters.clone())?;
    for len in lengths(device, &[0, 1, 127, 128, 129, 257, 1000]) {
        let states = samples::<F>(len * WIDTH, 1);
        let mut expected = states.clone();
        expected.chunks_exact_mut(WIDTH).for_each(|state| reference::permute(&parameters, state));
        let mut data = device.upload::<Mont<F>>(&states)?;
        poseidon2.permute(&mut data)?;
        expect_same(&format!("{len} states"), &data.to_vec()?, &expected)?;

        // The second rows start within a block.
        let widths = [rate + 3, 2 * rate, 1];
        let matrices = widths.map(|width| samples::<F>(len * width, width as u64));
        let buffers = matrices.iter().map(|m| device.upload::<Mont<F>>(m)).collect::<Result<Vec<_>, _>>()?;
        let views: Vec<_> = buffers.iter().zip(widths).map(|(buffer, width)| Rows::new(buffer, width)).collect();
        for count in [1, 3] {
            let expected: Vec<F> = (0..len)
                .flat_map(|row| {
                    let parts = matrices.iter().zip(widths).take(count);
                    let row: Vec<F> = parts.flat_map(|(m, width)| &m[row * width..][..width]).copied().collect();
                    reference::hash(&parameters, &row)
                })
                .collect();
            let mut out = garbage(device, len * digest)?;
            poseidon2.hash_rows(&views[..count], &mut out)?;
            expect_same(&format!("{len} rows of {count} matrices"), &out.to_vec()?, &expected)?;
        }

        let children = digest * parameters.arity().children();
        let digests = samples::<F>(1 + len * children, 9);
        let groups = digests[1..].chunks_exact(children);
        let expected: Vec<F> = groups.flat_map(|group| reference::compress(&parameters, group)).collect();
        let (data, mut out) = (device.upload::<Mont<F>>(&digests)?, garbage(device, len * digest)?);
        poseidon2.compress(data.view(1..)?, &mut out)?;
        expect_same(&format!("{len} groups of digests"), &out.to_vec()?, &expected)?;
    }
    // Workgroups go up several layers: one, and several.
    for rows in [2, 16, 512] {
        let matrix = (samples::<F>(rows, 11), 1);
        let merkle = Merkle::new(poseidon2.clone());
        let data = device.upload::<Mont<F>>(&matrix.0)?;
        let root = merkle.root(&merkle.commit(&[Rows::new(&data, 1)])?)?;
        expect_same(&format!("the root over {rows} rows"), &root, &expected_root(&parameters, &[matrix]))?;
    }
    grind(&poseidon2, &parameters)
}

/// Proofs of work, by one workgroup and by several.
fn grind<F: Poseidon2Field>(poseidon2: &Poseidon2<F>, parameters: &Poseidon2Parameters<F>) -> Outcome {
    let state = samples::<F>(parameters.width(), 4);
    let solves = |x: F, bits: u32| {
        let mut state = state.clone();
        state[2] = x;
        reference::permute(parameters, &mut state);
        state[parameters.rate() - 1].into_bigint().as_ref()[0].trailing_zeros() >= bits
    };
    for bits in [2, 8] {
        let witness = poseidon2.grind(&state, 2, bits)?;
        let first = (0u64..).map(F::from).find(|x| solves(*x, bits)).ok_or("no element solves it")?;
        expect_equal(&format!("a proof of work of {bits} bits"), &witness, &first)?;
    }
    Ok(())
}

/// A digest on the host.
type Digest<F, P> = Vec<<<P as TreeParameters<F>>::Node as Element>::Host>;

/// The digests of a tree, layer by layer, by the definition.
fn expected_root<F: DevicePrimeField, P: TreeParameters<F>>(
    parameters: &P,
    matrices: &[(Vec<F>, usize)],
) -> Digest<F, P> {
    let height = |(values, columns): &(Vec<F>, usize)| values.len() / columns;
    let hashes = |wanted: usize| -> Vec<Digest<F, P>> {
        let of_height: Vec<_> = matrices.iter().filter(|matrix| height(matrix) == wanted).collect();
        let row = |i: usize| {
            let rows = of_height.iter().flat_map(|(values, columns)| &values[i * columns..][..*columns]);
            parameters.hash_row(&rows.copied().collect::<Vec<_>>())
        };
        if of_height.is_empty() { Vec::new() } else { (0..wanted).map(row).collect() }
    };
    let mut layer = hashes(matrices.iter().map(height).max().unwrap_or(0));
    let all = parameters.arity().children();
    while layer.len() > 1 {
        // By two where a matrix comes in between.
        let group = if layer.len() >= all && !hashes(layer.len() / 2).is_empty() { 2 } else { all };
        layer = layer.chunks(group).map(|children| parameters.compress(&children.concat())).collect();
        let rows = hashes(layer.len());
        for (node, row) in layer.iter_mut().zip(&rows) {
            *node = parameters.compress(&[node.clone(), row.clone()].concat());
        }
    }
    layer.concat()
}

fn tree(device: &Device) -> Outcome {
    let poseidon2 = Poseidon2::new(device, parameters::<BabyBear>(16)?)?;
    // Leaves, and layers of 32, 16, 8, 4 and 2 nodes, and of one, by three launches.
    let (merkle, data) =
        (Merkle::new(poseidon2.clone()), device.upload::<Mont<BabyBear>>(&samples::<BabyBear>(64, 2))?);
    merkle.prepare()?;
    let before = device.stats().launches;
    merkle.commit(&[Rows::new(&data, 1)])?;
    expect_equal("launches of a tree over 64 rows", &(device.stats().launches - before), &3)?;
    tree_with(device, poseidon2, Reads::AtMost(1))
}

/// How often the device may be read for openings. Where trials share a device, others read too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reads {
    AtMost(u64),
    Shared,
}

/// Roots, and openings by few reads.
fn tree_with<F: DevicePrimeField, H: TreeHash<F>>(device: &Device, hash: H, reads: Reads) -> Outcome {
    let merkle = Merkle::new(hash);
    let parameters = merkle.hash().tree_parameters();
    let shapes: [&[(usize, usize)]; 5] =
        [&[(1, 3)], &[(256, 20)], &[(512, 1), (256, 2)], &[(4, 1), (64, 9), (64, 2), (2, 1)], &[(16, 1), (4, 1)]];
    for shape in shapes {
        let matrices: Vec<_> = shape.iter().map(|(rows, columns)| (samples(rows * columns, 3), *columns)).collect();
        let buffers: Vec<_> =
            matrices.iter().map(|(values, _)| device.upload::<Mont<F>>(values)).collect::<Result<_, _>>()?;
        let views: Vec<_> =
            buffers.iter().zip(shape).map(|(buffer, (_, columns))| Rows::new(buffer, *columns)).collect();
        let tree = merkle.commit(&views)?;
        let root = merkle.root(&tree)?;
        expect_same(&format!("the root over {shape:?}"), &root, &expected_root(parameters, &matrices))?;
        let rows = 1 << tree.log_height();
        let (before, indices) = (device.stats(), [0, rows - 1, rows / 2]);
        let openings = merkle.open(&tree, &views, &indices, 1)?;
        if let Reads::AtMost(most) = reads {
            let actual = device.stats().reads - before.reads;
            expect(
                &format!("several openings take {actual} reads of at most {most}: it"),
                (1..=most).contains(&actual),
            )?;
        }
        let cap = merkle.cap(&tree, 1)?;
        for (index, opening) in indices.iter().zip(&openings) {
            verify(parameters, &cap, tree.dimensions(), *index, opening)?;
        }
    }
    Ok(())
}

/// Trees over matrices whose columns are absorbed block by block.
fn by_columns(device: &Device) -> Outcome {
    let parameters = parameters::<BabyBear>(16)?;
    let merkle = Merkle::new(Poseidon2::new(device, parameters.clone())?);
    let shapes: [(usize, usize, &[usize]); 5] =
        [(1, 1, &[1]), (2, 3, &[0, 1, 2]), (64, 16, &[8, 8]), (256, 21, &[3, 5, 12, 1]), (512, 40, &[40])];
    for (height, columns, blocks) in shapes {
        let what = format!("{height} × {columns} in blocks of {blocks:?}");
        let values = samples::<BabyBear>(1 + height * columns, 12);
        // The columns that are not there yet have other values.
        let mut data = garbage::<Mont<BabyBear>>(device, values.len())?;
        let mut tree = merkle.by_columns(Dimensions { height, columns }, Secrecy::Public)?;
        let mut end = 0;
        for count in blocks {
            end += count;
            let here: Vec<BabyBear> = (0..values.len())
                .map(|i| if i > 0 && (i - 1) % columns < end { values[i] } else { BabyBear::from(3) })
                .collect();
            data.write(&here)?;
            tree.absorb(Rows::new(data.view(1..)?, columns), *count)?;
        }
        let error = expect_error("a column too many", tree.absorb(Rows::new(data.view(1..)?, columns), 1))?;
        expect_equal("columns", &error, &Error::ColumnCount { expected: 0, actual: 1 })?;
        let tree = tree.finish()?;
        let matrix = Rows::new(data.view(1..)?, columns);
        expect_same(&what, &tree.nodes().to_vec()?, &merkle.commit(&[matrix])?.nodes().to_vec()?)?;
        let expected = expected_root(&parameters, &[(values[1..].to_vec(), columns)]);
        expect_same(&format!("the root of {what}"), &merkle.root(&tree)?, &expected)?;
        let openings = merkle.open(&tree, &[matrix], &[height - 1], 0)?;
        verify(&parameters, &merkle.root(&tree)?, tree.dimensions(), height - 1, &openings[0])?;
    }
    // Four children, which a sponge hashes, with zeros for two that are missing.
    let fours = Merkle::new(Poseidon2::new(device, parameters.clone().with_arity(Arity::Four))?);
    let data = device.upload::<Mont<BabyBear>>(&samples(128 * 11, 13))?;
    let mut tree = fours.by_columns(Dimensions { height: 128, columns: 11 }, Secrecy::Public)?;
    tree.absorb(Rows::new(&data, 11), 4)?;
    tree.absorb(Rows::new(&data, 11), 7)?;
    let expected = fours.commit(&[Rows::new(&data, 11)])?.nodes().to_vec()?;
    expect_same("a tree of four children", &tree.finish()?.nodes().to_vec()?, &expected)?;

    let merkle = Merkle::new(Poseidon2::new(device, parameters)?);
    let start = |height, columns, secrecy| merkle.by_columns(Dimensions { height, columns }, secrecy);
    let error = expect_error("no columns", start(8, 0, Secrecy::Public))?;
    expect_equal("columns", &error, &Error::Columns { matrix: 0, columns: 0, elements: 0 })?;
    for height in [0, 12] {
        let error = expect_error("a height that is no power of two", start(height, 4, Secrecy::Public))?;
        expect_equal("height", &error, &Error::Height { matrix: 0, actual: height })?;
    }
    let error = expect_error("2^63 rows", start(1 << 63, 3, Secrecy::Public))?;
    expect("rows without end are refused", matches!(error, Error::Device(DeviceError::TooLarge { .. })))?;
    let data = device.upload_with::<Mont<BabyBear>>(&samples(32, 14), Secrecy::Secret)?;
    let mut tree = start(8, 4, Secrecy::Public)?;
    let error = expect_error("secret rows in a public tree", tree.absorb(Rows::new(&data, 4), 1))?;
    expect("secrets are refused", matches!(error, Error::Device(DeviceError::SecretInput { .. })))?;
    let error = expect_error("rows of another length", tree.absorb(Rows::new(&data, 8), 1))?;
    let [expected, actual] = [(8, 4), (4, 8)].map(|(height, columns)| vec![Dimensions { height, columns }]);
    expect_equal("matrices", &error, &Error::OtherMatrices { expected, actual })?;
    let error = expect_error("a tree without its columns", tree.finish())?;
    expect_equal("columns", &error, &Error::ColumnCount { expected: 4, actual: 0 })?;
    if let Some(other) = other_device(device) {
        let there = other.upload::<Mont<BabyBear>>(&samples(32, 14))?;
        let error = expect_error("another device", start(8, 4, Secrecy::Public)?.absorb(Rows::new(&there, 4), 4))?;
        expect("another device is refused", matches!(error, Error::Device(DeviceError::WrongDevice { .. })))?;
    }
    Ok(())
}

fn misuse(device: &Device) -> Outcome {
    let poseidon2 = Poseidon2::new(device, parameters::<BabyBear>(16)?)?;
    let values = samples::<BabyBear>(48, 1);
    let mut data = device.upload::<Mont<BabyBear>>(&values)?;
    let mut out = device.upload::<Mont<BabyBear>>(&values)?;
    let wrong_length = |error: Error| matches!(error, Error::Device(DeviceError::Length { .. }));
    let permuted = expect_error("half a state", poseidon2.permute(data.view_mut(..24)?))?;
    expect("half a state has a wrong length", wrong_length(permuted))?;
    let hashed = expect_error("too many rows", poseidon2.hash_rows(&[Rows::new(&data, 16)], &mut out))?;
    expect("too many rows have a wrong length", wrong_length(hashed))?;
    let compressed = expect_error("too many pairs", poseidon2.compress(&data, &mut out))?;
    expect("too many pairs have a wrong length", wrong_length(compressed))?;
    if let Some(other) = other_device(device) {
        let there = other.upload::<Mont<BabyBear>>(&values)?;
        let rows = [Rows::new(&there, 8)];
        let error = expect_error("another device", poseidon2.hash_rows(&rows, &mut out))?;
        expect("another device is refused", matches!(error, Error::Device(DeviceError::WrongDevice { .. })))?;
        let error = expect_error("another device", Merkle::new(poseidon2.clone()).commit(&[Rows::new(&there, 3)]))?;
        expect("another device is refused", matches!(error, Error::Device(DeviceError::WrongDevice { .. })))?;
    }
    expect_same("states after misuse", &data.to_vec()?, &values)?;
    expect_same("outputs after misuse", &out.to_vec()?, &values)
}

/// An operand of values of its own: what is secret in one is public in no other. Without edge values.
fn operand<F: DevicePrimeField>(p: &Probe, seed: u64, len: usize) -> Result<Buffer<Mont<F>>, Failed> {
    p.operand::<Mont<F>>(&samples::<F>(len + 64, 1000 * u64::from(p.run()) + seed)[64..])
}

const OPERATIONS: &[Operation] = &[
    Operation::new("hash_rows_of_bytes", 2, bytes::rows_of_secrets),
    Operation::new("hash_many_of_bytes", 2, bytes::many_of_secrets),
    Operation::new("merkle_commit_serialized", 2, bytes::tree_of_secrets),
    Operation::new("poseidon2_permute", 1, |p| {
        let poseidon2 = Poseidon2::new(&p.device, parameters::<BabyBear>(16)?)?;
        let mut states = p.in_place(|p| operand::<BabyBear>(p, 21, 16 * 200))?;
        p.watch(|| poseidon2.permute(&mut states))
    }),
    Operation::new("poseidon2_compress", 2, |p| {
        let poseidon2 = Poseidon2::new(&p.device, parameters::<BabyBear>(16)?)?;
        let (pairs, mut out) = (operand::<BabyBear>(p, 22, 16 * 200)?, p.output_of(8 * 200)?);
        p.watch(|| poseidon2.compress(&pairs, &mut out))
    }),
    Operation::new("poseidon2_hash_rows", 3, |p| {
        let poseidon2 = Poseidon2::new(&p.device, parameters::<BabyBear>(16)?)?;
        let (a, b) = (operand::<BabyBear>(p, 23, 11 * 200)?, operand::<BabyBear>(p, 24, 9 * 200)?);
        let mut out = p.output_of(8 * 200)?;
        p.watch(|| poseidon2.hash_rows(&[Rows::new(&a, 11), Rows::new(&b, 9)], &mut out))
    }),
    Operation::new("merkle_commit", 2, |p| {
        let merkle = Merkle::new(Poseidon2::new(&p.device, parameters::<BabyBear>(16)?)?);
        let (a, b) = (operand::<BabyBear>(p, 25, 5 * 128)?, operand::<BabyBear>(p, 26, 9 * 32)?);
        p.watch(|| merkle.commit(&[Rows::new(&a, 5), Rows::new(&b, 9)]))
    }),
    Operation::new("merkle_by_columns", 1, |p| {
        let merkle = Merkle::new(Poseidon2::new(&p.device, parameters::<BabyBear>(16)?)?);
        let rows = operand::<BabyBear>(p, 27, 11 * 128)?;
        p.watch(|| {
            let mut tree = merkle.by_columns(Dimensions { height: 128, columns: 11 }, rows.secrecy())?;
            tree.absorb(Rows::new(&rows, 11), 5)?;
            tree.absorb(Rows::new(&rows, 11), 6)?;
            tree.finish()
        })
    }),
    poseidon::PERMUTE,
    poseidon::TREE,
];

/// Wide rows, and layers of trees, on devices that end loops early.
const DIVIDED: &[Divided] = &[
    ("poseidon2_rows", 4000, |device| {
        let parameters = parameters::<small::Goldilocks>(12)?;
        let (rows, columns) = (3, 50);
        let values = samples::<small::Goldilocks>(rows * columns, 5);
        let expected: Vec<_> = values.chunks_exact(columns).flat_map(|row| reference::hash(&parameters, row)).collect();
        let data = device.upload::<Mont<small::Goldilocks>>(&values)?;
        let mut out = garbage(device, rows * parameters.digest())?;
        Poseidon2::new(device, parameters)?.hash_rows(&[Rows::new(&data, columns)], &mut out)?;
        expect_same("digests", &out.to_vec()?, &expected)
    }),
    // Four layers a launch, and by one thread a node where not even one layer fits.
    ("poseidon2_tree_of_words", 4000, divided_tree::<small::Goldilocks, 12>),
    ("poseidon2_tree", 100, divided_tree::<BabyBear, 16>),
];

fn divided_tree<F: Poseidon2Field, const WIDTH: usize>(device: &Device) -> Outcome {
    let parameters = parameters::<F>(WIDTH)?;
    let matrix = (samples::<F>(64, 6), 1);
    let data = device.upload::<Mont<F>>(&matrix.0)?;
    let merkle = Merkle::new(Poseidon2::new(device, parameters.clone())?);
    let root = merkle.root(&merkle.commit(&[Rows::new(&data, 1)])?)?;
    expect_same("the root", &root, &expected_root(&parameters, &[matrix]))
}

fn prepared(device: &Device) -> Outcome {
    poseidon::prepared(device)?;
    let poseidon2 = Poseidon2::new(device, parameters::<BabyBear>(16)?)?;
    poseidon2.prepare()?;
    let (mut data, mut out) = (device.zeros::<Mont<BabyBear>>(64)?, device.zeros::<Mont<BabyBear>>(32)?);
    bytes::prepared(device)?;
    let merkle = Merkle::new(poseidon2.clone());
    let wide = Merkle::new(Poseidon2::new(device, parameters::<BabyBear>(24)?)?);
    wide.prepare()?;
    let fours = Merkle::new(Poseidon2::new(device, parameters::<small::Goldilocks>(16)?)?);
    fours.prepare()?;
    let rows = device.zeros::<Mont<small::Goldilocks>>(64)?;
    quietly(device, "what prepared permutations compile", || {
        poseidon2.permute(&mut data)?;
        poseidon2.compress(&data, &mut out)?;
        poseidon2.grind(&[BabyBear::from(3); 16], 0, 1)?;
        merkle.commit(&[Rows::new(&data, 4)])?;
        // The second launch of layers starts between multiples of 256 bytes.
        wide.commit(&[Rows::new(&data, 2)])?;
        // A digest takes 32 bytes. Layers start at multiples of 256 and between them.
        fours.commit(&[Rows::new(&rows, 1)])?;
        Ok(poseidon2.hash_rows(&[Rows::new(&data, 16), Rows::new(&data, 16)], &mut out)?)
    })
}
