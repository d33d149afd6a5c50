//! Poseidon against circomlib, arkworks and published vectors.

use ark_bls12_381::Fr as Bls;
use ark_bn254::Fr;
use ark_crypto_primitives::sponge::poseidon::find_poseidon_ark_and_mds;
use ark_ff::{AdditiveGroup, MontFp, PrimeField};

use super::*;
use crate::poseidon::{Poseidon, parameters::PoseidonParameters};

/// Of circomlib's constants (`poseidon_constants_old.circom`), those of all rounds and then the matrix, the sum of each
/// times its number from 1 on; and of the numbers from 1 on, as many as fit, its hash. For widths from 2 on.
const CIRCOMLIB: [(&str, &str); 16] = [
    (
        "16296116146522482913424399118574852293405589740993944957682535085676546947274",
        "18586133768512220936620570745912940619677854269274689475585506675881198879027",
    ),
    (
        "21427427186978426903751307155576991018891794201056896494291942056321798801249",
        "7853200120776062878684798364095072458815029376092732009249414926327459813530",
    ),
    (
        "12649483324563892760248154985891101391852105337458429103399445562953468045131",
        "6542985608222806190361240322586112750744169038454362455181422643027100751666",
    ),
    (
        "18690974116940541101609043767588573311892211002111177235491411396938503109950",
        "18821383157269793795438455681495246036402687001665670618754263018637548127333",
    ),
    (
        "6786873462479523227020767521104178885108429038633360918878920837365836049997",
        "6183221330272524995739186171720101788151706631170188140075976616310159254464",
    ),
    (
        "12608232403197958867063472605041960409387804406800923588311002210556638806330",
        "20400040500897583745843009878988256314335038853985262692600694741116813247201",
    ),
    (
        "18254179774670507103637511984890420176306395019914629246221227919370760676868",
        "12748163991115452309045839028154629052133952896122405799815156419278439301912",
    ),
    (
        "16078224739666723058488556930885002863136770516247020760263659291371750008442",
        "18604317144381847857886385684060986177838410221561136253933256952257712543953",
    ),
    (
        "15300409119088704107879166350298648310329487899379535193241519276115216218957",
        "13589767895268936107593642967621470491511464502761040466226072462545218539640",
    ),
    (
        "13271808846919710671493134986469384413853157199473255779452946938703086870850",
        "3657500514307717306974218405144578736633140001277925127187636780142269815841",
    ),
    (
        "20640811383842269846894556562372328539176885989218848872892025659604284482187",
        "3572015662710076994097916907865950486270383304442561406230608893458731714472",
    ),
    (
        "12918634325691419827067346942288123198293129233200222186872390129387473455509",
        "2501997477381648492950318384533644783248002172679259592360114615426357826485",
    ),
    (
        "18506826218645875304394016759203468034572685486002290685691023567575387328871",
        "7041832639553862712666971417715061873827921493498355005117622707743491651590",
    ),
    (
        "188118262255865827823664017978344006765759993609427928602995759377910976369",
        "8354478399926161176778659061636406690034081872658507739535256090879947077494",
    ),
    (
        "4911608380463820783250149739670471365948244250378840501874388692839617553773",
        "4203130618016961831408770638653325366880478848856764494148034853759773445968",
    ),
    (
        "3222484290006034865357570167938393328005594073303919621804266038414881628159",
        "9989051620750914585850546081941653841776809718687451684622678807385399211877",
    ),
];

/// The largest prime below 2^64, where cubes are a permutation.
#[derive(ark_ff::MontConfig)]
#[modulus = "18446744073709551557"]
#[generator = "2"]
struct WordConfig;
type Word = ark_ff::Fp64<ark_ff::MontBackend<WordConfig, 1>>;

/// The base field of secp256k1.
#[derive(ark_ff::MontConfig)]
#[modulus = "115792089237316195423570985008687907853269984665640564039457584007908834671663"]
#[generator = "3"]
struct Secp256k1Config;
type Secp256k1 = ark_ff::Fp256<ark_ff::MontBackend<Secp256k1Config, 4>>;

fn element<F: PrimeField>(text: &str) -> F {
    text.parse().ok().expect("an integer")
}

#[test]
fn constants_and_hashes_are_circomlibs() {
    for (width, (sum, hash)) in (2..).zip(CIRCOMLIB) {
        let parameters = PoseidonParameters::<Fr>::circomlib(width).unwrap();
        let constants = parameters.constants().iter().chain(parameters.matrix());
        let weighted: Fr = constants.enumerate().map(|(i, x)| Fr::from(i as u64 + 1) * x).sum();
        assert_eq!(weighted, element(sum), "constants of width {width}");
        let numbers: Vec<Fr> = (1..width as u64).map(Fr::from).collect();
        assert_eq!(reference::poseidon_hash(&parameters, &numbers), element(hash), "width {width}");
        let poseidon = Poseidon::new(&Device::cpu(), parameters).unwrap();
        let rows = poseidon.queue().upload::<Mont<Fr>>(&numbers).unwrap();
        let mut out = poseidon.queue().device().alloc::<Mont<Fr>>(1).unwrap();
        poseidon.hash_rows(&rows, &mut out).unwrap();
        assert_eq!(out.to_vec().unwrap(), [element(hash)], "width {width}");
    }
}

/// The test vectors of the reference implementation (`poseidonperm_x5_254_3` and `poseidonperm_x5_255_3`).
#[test]
fn permutations_are_those_of_the_reference_script() {
    fn check<F: DevicePrimeField>(expected: [F; 3]) {
        let mut state = [0u64, 1, 2].map(F::from);
        reference::poseidon(&PoseidonParameters::circomlib(3).unwrap(), &mut state);
        assert_eq!(state, expected);
    }
    check::<Fr>([
        MontFp!("0x115cc0f5e7d690413df64c6b9662e9cf2a3617f2743245519e19607a4417189a"),
        MontFp!("0x0fca49b798923ab0239de1c9e7a4a9a2210312b6a2f616d18b5a87f9b628ae29"),
        MontFp!("0x0e7ae82e40091e63cbd4f16a6d16310b3729d4b6e138fcf54110e2867045a30c"),
    ]);
    check::<Bls>([
        MontFp!("0x28ce19420fc246a05553ad1e8c98f5c9d67166be2c18e9e4cb4b4e317dd2a78a"),
        MontFp!("0x51f3e312c95343a896cfd8945ea82ba956c1118ce9b9859b6ea56637b4b1ddc4"),
        MontFp!("0x3b2b69139b235626a0bfb56c9527ae66a7bf486ad8c11c14d1da0c69bbe0f79a"),
    ]);
}

#[test]
fn constants_are_arkworks() {
    fn check<F: DevicePrimeField>(width: usize, rounds: [usize; 2]) {
        let [full, partial] = rounds.map(|rounds| rounds as u64);
        let (constants, matrix) =
            find_poseidon_ark_and_mds::<F>(F::MODULUS_BIT_SIZE.into(), width - 1, full, partial, 0);
        let parameters = PoseidonParameters::<F>::generate(width, rounds).unwrap();
        assert_eq!(parameters.constants(), constants.concat());
        assert_eq!(parameters.matrix(), matrix.concat());
    }
    check::<Bls>(3, [8, 57]);
    check::<Bls>(5, [8, 60]);
    check::<Bls>(17, [8, 68]);
    check::<Fr>(2, [6, 3]);
}

#[test]
fn permutations_hashes_and_trees_are_those_of_the_definition() {
    fn check<F: DevicePrimeField>(parameters: PoseidonParameters<F>) {
        check_on(&devices(), &parameters, 131);
    }
    fn check_on<F: DevicePrimeField>(devices: &[Device], parameters: &PoseidonParameters<F>, count: usize) {
        let width = parameters.width();
        let states = random::<F>(count * width);
        let mut expected = states.clone();
        expected.chunks_exact_mut(width).for_each(|state| reference::poseidon(parameters, state));
        let rows = &states[..count * (width - 1)];
        let hashes: Vec<F> =
            rows.chunks_exact(width - 1).map(|row| reference::poseidon_hash(parameters, row)).collect();
        for device in devices {
            let name = device.info().name.clone();
            let poseidon = Poseidon::new(device, parameters.clone()).unwrap();
            let mut buffer = device.upload::<Mont<F>>(&states).unwrap();
            let mut out = device.upload::<Mont<F>>(&vec![F::ONE; count]).unwrap();
            poseidon.hash_rows(buffer.view(..rows.len()).unwrap(), &mut out).unwrap();
            assert_eq!(out.to_vec().unwrap(), hashes, "{name}, hashes of width {width}");
            poseidon.permute(&mut buffer).unwrap();
            assert_eq!(buffer.to_vec().unwrap(), expected, "{name}, width {width}");
        }
    }
    check(PoseidonParameters::<Fr>::circomlib(3).unwrap());
    check(PoseidonParameters::<Bls>::generate(6, [4, 5]).unwrap());
    // Without partial rounds, with one, and a matrix of one's own.
    check(PoseidonParameters::<Bls>::generate(2, [2, 0]).unwrap());
    let ones = |alpha, partial: usize| {
        let matrix = [2, 3, 1, 1, 2, 3, 3, 1, 1].map(KoalaBear::from).to_vec();
        PoseidonParameters::new(3, alpha, [2, partial], random(3 * (2 + partial)), matrix)
    };
    check(ones(3, 1).unwrap());
    check(
        PoseidonParameters::new(2, 7, [2, 3], random::<BabyBear>(10), [3, 5, 2, 7].map(BabyBear::from).to_vec())
            .unwrap(),
    );

    // What processors do in lanes: long states, other exponents and lengths of fields, one partial round, and a modulus just
    // below 2^256, with which elements come closest to what lanes hold.
    fn in_lanes<F: DevicePrimeField>(width: usize, alpha: u32, rounds: [usize; 2]) {
        let constants = random::<F>(width * (rounds[0] + rounds[1]));
        let all = |x: F| constants.iter().map(|_| x).collect::<Vec<_>>();
        for constants in [constants.clone(), all(-F::ONE)] {
            let parameters = PoseidonParameters::new(width, alpha, rounds, constants, random(width * width)).unwrap();
            for count in [1, 3, 4, 16, 17, 31] {
                check_on(&[Device::cpu()], &parameters, count);
            }
        }
    }
    in_lanes::<Goldilocks>(12, 7, [4, 3]);
    in_lanes::<Word>(3, 3, [2, 1]);
    in_lanes::<Secp256k1>(17, 5, [2, 4]);
    in_lanes::<ark_bls12_381::Fq>(4, 5, [2, 2]);

    let parameters = PoseidonParameters::<Bls>::generate(4, [2, 1]).unwrap();
    let leaves = random::<Bls>(27);
    let mut expected = leaves.clone();
    let mut layer = leaves.clone();
    while layer.len() > 1 {
        layer = layer.chunks_exact(3).map(|row| reference::poseidon_hash(&parameters, row)).collect();
        expected.extend_from_slice(&layer);
    }
    for device in devices() {
        let poseidon = Poseidon::new(&device, parameters.clone()).unwrap();
        let buffer = device.upload::<Mont<Bls>>(&leaves).unwrap();
        assert_eq!(poseidon.tree(&buffer).unwrap().to_vec().unwrap(), expected);
        assert_eq!(poseidon.tree(buffer.view(..1).unwrap()).unwrap().to_vec().unwrap(), leaves[..1]);
        for len in [0, 2, 6, 26] {
            assert!(
                matches!(poseidon.tree(buffer.view(..len).unwrap()), Err(Error::Parameters { .. })),
                "{len} leaves"
            );
        }
    }
}

#[test]
fn wrong_parameters_and_arguments_are_refused() {
    let refused = |result: Result<PoseidonParameters<Bls>, Error>| matches!(result, Err(Error::Parameters { .. }));
    let generate = PoseidonParameters::<Bls>::generate;
    assert!(refused(generate(1, [8, 57])) && refused(generate(18, [8, 57])));
    assert!(refused(generate(3, [7, 57])) && refused(generate(3, [0, 57])) && refused(generate(3, [8, 1001])));
    assert!(refused(PoseidonParameters::circomlib(18)) && refused(PoseidonParameters::circomlib(1)));
    assert!(matches!(PoseidonParameters::<BabyBear>::circomlib(3), Err(Error::Parameters { .. })));
    // 3 divides p − 1.
    let new = |alpha, constants: usize, matrix: Vec<Bls>| {
        PoseidonParameters::new(2, alpha, [2, 1], random(constants), matrix)
    };
    let matrix = || [3, 5, 2, 7].map(Bls::from).to_vec();
    assert!(!refused(new(5, 6, matrix())));
    assert!(refused(new(3, 6, matrix())) && refused(new(4, 6, matrix())));
    assert!(refused(new(5, 5, matrix())) && refused(new(5, 6, random(5))));
    assert!(refused(new(5, 6, [matrix()[..3].to_vec(), vec![Bls::ZERO]].concat())));

    let device = Device::cpu();
    let poseidon = Poseidon::new(&device, PoseidonParameters::<Bls>::generate(3, [2, 1]).unwrap()).unwrap();
    let rows = device.upload::<Mont<Bls>>(&random(8)).unwrap();
    let mut out = device.upload::<Mont<Bls>>(&random(5)).unwrap();
    let length = |result| matches!(result, Err(Error::Device(DeviceError::Length { .. })));
    assert!(length(poseidon.hash_rows(&rows, &mut out)) && length(poseidon.permute(&mut out)));
    let secret = device.upload_with::<Mont<Bls>>(&random(8), Secrecy::Secret).unwrap();
    let refused = poseidon.hash_rows(&secret, out.view_mut(..4).unwrap());
    assert!(matches!(refused, Err(Error::Device(DeviceError::SecretInput { .. }))));
    assert_eq!(out.to_vec().unwrap(), random::<Bls>(5));
    assert_eq!(poseidon.tree(&secret).unwrap().secrecy(), Secrecy::Secret);
}
