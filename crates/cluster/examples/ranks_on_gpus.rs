//! Checks and times of ranks that have a GPU each.
//!
//! ```text
//! ranks_on_gpus [--ranks 2] [--device cuda|cpu] [--most 28] [--limit 240] [--out results.json]
//! ```
//!
//! It starts itself by `mpirun`, once for each of its parts, and writes what the parts found as JSON in the form of
//! `docs/results`. Each part has a limit of time, in seconds. It fails if one of them does.
//!
//! | Part | What it does |
//! |---|---|
//! | `right`, `right-host` | transforms in all orders equal those of one device, by NCCL and through host memory |
//! | `other` | ranks with different sizes all refuse; cluster and devices work afterwards |
//! | `killed` | a rank ends before an exchange; the others end within the limit, and their devices work afterwards |
//! | `killed-at-work` | a rank ends in the middle of exchanges |
//! | `times` | transforms and exchanges by NCCL, beside one device |
//! | `times-host` | the same through host memory, up to 2^24 elements |

use std::{
    env,
    error::Error as StdError,
    fs,
    io::Write,
    process::{self, Command, ExitCode, Stdio},
    thread,
    time::{Duration, Instant},
};

use ark_bls12_381::Fr;
use ark_ff::{FftField, Field};
use evariste_backend::{Buffer, Device, Element, HostBuffer, Kind, Secrecy, Transfer};
use evariste_cluster::{Cluster, ClusterNtt, Error, Mpi, Ranks, Route, Way};
use evariste_field::Mont;
use evariste_ntt::{Ntt, NttConfig, Order};
use rayon::prelude::*;
use serde_json::{Value, json};

type Result<T, E = Box<dyn StdError>> = std::result::Result<T, E>;

/// What a rank is to do. The parts' settings are beside it.
const PART: &str = "EVARISTE_CLUSTER_PART";
const DEVICE: &str = "EVARISTE_CLUSTER_DEVICE";
const MOST: &str = "EVARISTE_CLUSTER_MOST";

/// Marks a line of a rank that holds a record.
const RECORD: &str = "RECORD ";

/// How long ranks wait for each other: where one of them is to die, and else.
const SHORT: Duration = Duration::from_secs(20);
const LONG: Duration = Duration::from_secs(60);

/// Elements that pass through host memory at a time.
const CHUNK: usize = 1 << 22;

fn main() -> ExitCode {
    let done = match env::var(PART) {
        Ok(part) => rank(&part).map(|()| true),
        Err(_) => start_all(),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("failed: {error} ({error:?})");
            ExitCode::FAILURE
        }
    }
}

// ---- the parts, started one after the other

fn start_all() -> Result<bool> {
    let (mut ranks, mut device, mut most, mut limit, mut out) = (2usize, "cuda".to_owned(), 28u32, 240u64, None);
    let mut only: Option<String> = None;
    let mut arguments = env::args().skip(1);
    while let Some(name) = arguments.next() {
        let value = arguments.next().ok_or_else(|| format!("{name} takes a value"))?;
        match &*name {
            "--ranks" => ranks = value.parse()?,
            "--device" => device = value,
            "--most" => most = value.parse()?,
            "--limit" => limit = value.parse()?,
            "--out" => out = Some(value),
            "--only" => only = Some(value),
            _ => return Err(format!("unknown argument {name}").into()),
        }
    }
    let (mut records, mut failures) = (Vec::new(), Vec::new());
    for part in ["right", "right-host", "other", "killed", "killed-at-work", "times", "times-host"] {
        if only.as_ref().is_some_and(|only| !only.split(',').any(|name| name == part)) {
            continue;
        }
        println!("== {part}");
        let begin = Instant::now();
        let ended = start(part, ranks, &device, most, Duration::from_secs(limit))?;
        // Ranks that are to live say so.
        let expected = if part.starts_with("killed") { ranks - 1 } else { ranks };
        let well = ended.matches("RANK DONE").count();
        println!("== {part}: {well} of {expected} ranks ended well, {:.1} s", begin.elapsed().as_secs_f64());
        if well != expected {
            failures.push(format!("{part}: {well} of {expected} ranks ended well"));
        }
        let found =
            ended.lines().filter_map(|line| line.split_once(RECORD)).map(|(_, text)| serde_json::from_str(text));
        records.extend(found.collect::<Result<Vec<Value>, _>>()?);
    }
    let is_well = failures.is_empty();
    let (mut machines, records): (Vec<Value>, Vec<Value>) = records.into_iter().partition(|r| r.get("name").is_some());
    machines.sort_by_key(|machine| machine["device"].to_string());
    machines.dedup();
    let report = json!({
        "machine": {
            "cpu": cpu(),
            "cores": thread::available_parallelism().map_or(1, usize::from),
            "os": env::consts::OS,
            "architecture": env::consts::ARCH,
            "devices": machines,
            "missing": [],
        },
        "commit": env::var("EVARISTE_COMMIT").unwrap_or_else(|_| "unknown".into()),
        "settings": {
            "timing": "after two runs of warm-up, the median (beside it the mean and the variance) over at least 5 runs and \
                       500 ms; a run starts when all ranks have met, ends when the rank's device is idle, and counts with \
                       the time of the slowest rank",
            "transforms": "a rank each process, started by mpirun; in place, data on the devices",
            "exchanges": "each rank sends so many bytes to the others together, and as many stay on its device; elements are \
                          those bytes; with the ranks' agreement before and after",
            "throughput": "elements in a second; of exchanges, bytes sent by each rank in a second",
        },
        "failures": failures,
        "skipped": [],
        "ladder": [],
        "records": records,
    });
    let text = serde_json::to_string_pretty(&report)?;
    match out {
        Some(file) => fs::write(file, text + "\n")?,
        None => println!("{text}"),
    }
    Ok(is_well)
}

/// Starts the ranks of a part, shows what they print, and ends them at the limit.
fn start(part: &str, ranks: usize, device: &str, most: u32, limit: Duration) -> Result<String> {
    let file = env::temp_dir().join(format!("ranks_on_gpus-{}-{part}.txt", process::id()));
    let log = fs::File::create(&file)?;
    let mut command = Command::new("mpirun");
    command.args(["--allow-run-as-root", "--oversubscribe", "--enable-recovery", "--bind-to", "none"]);
    command.args(["-n", &ranks.to_string(), "--tag-output", "-x", PART, "-x", DEVICE, "-x", MOST]);
    // What NCCL finds is shown once. Exchanges need no multicast, and containers may refuse it, or that processes read
    // each other's memory.
    for (name, value) in [
        ("NCCL_DEBUG", if part == "right" { "INFO" } else { "WARN" }),
        ("NCCL_DEBUG_SUBSYS", "INIT,ENV,P2P,SHM"),
        ("NCCL_NVLS_ENABLE", "0"),
        ("OMPI_MCA_btl_vader_single_copy_mechanism", "none"),
    ] {
        command.env(name, env::var(name).unwrap_or_else(|_| value.into()));
        if name.starts_with("NCCL") {
            command.args(["-x", name]);
        }
    }
    command.arg(env::current_exe()?).env(PART, part).env(DEVICE, device).env(MOST, most.to_string());
    let mut ended = command.stdout(Stdio::from(log.try_clone()?)).stderr(Stdio::from(log)).spawn()?;
    let begin = Instant::now();
    let status = loop {
        match ended.try_wait()? {
            Some(status) => break status.to_string(),
            None if begin.elapsed() > limit => {
                // The launcher ends its ranks when it is asked to.
                _ = Command::new("kill").arg(ended.id().to_string()).status();
                thread::sleep(Duration::from_secs(3));
                _ = ended.kill();
                ended.wait()?;
                break format!("ended at the limit of {limit:?}");
            }
            None => thread::sleep(Duration::from_millis(50)),
        }
    };
    let text = String::from_utf8_lossy(&fs::read(&file)?).into_owned();
    _ = fs::remove_file(&file);
    print!("{text}");
    println!("mpirun: {status}");
    Ok(text)
}

fn cpu() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = text.lines().find(|line| line.starts_with("model name")).and_then(|line| line.split_once(':'));
    name.map_or_else(|| "unknown".into(), |(_, name)| name.trim().to_owned())
}

// ---- what a rank does

/// Which rank of its machine a process is.
fn local_rank() -> usize {
    env::var("OMPI_COMM_WORLD_LOCAL_RANK").ok().and_then(|rank| rank.parse().ok()).unwrap_or(0)
}

fn open() -> Result<Device> {
    match &*env::var(DEVICE)? {
        "cuda" => Ok(Device::cuda(local_rank())?),
        name => Ok(name.parse::<Device>()?),
    }
}

fn rank(part: &str) -> Result<()> {
    let most: u32 = env::var(MOST)?.parse()?;
    let dies = part.starts_with("killed");
    let device = open()?;
    let mpi = Mpi::start(if dies { SHORT } else { LONG })?;
    let begin = Instant::now();
    // On CPUs, all parts run through host memory.
    let route = match device.info().id.kind {
        _ if part.ends_with("-host") => Route::Host,
        Kind::Cuda => Route::Nccl,
        _ => Route::Automatic,
    };
    let cluster = Cluster::with_route(mpi, &device, route)?;
    let (route, started) = (cluster.route(), begin.elapsed());
    say(&cluster, &format!("{device}, {route:?}, joined in {started:.2?}, {:?}", cluster.host_reason()));
    match part {
        "right" => right(&cluster, &device, most)?,
        "right-host" => right(&cluster, &device, most.min(20))?,
        "other" => other(&cluster, &device)?,
        "killed" => killed(&cluster, &device)?,
        "killed-at-work" => killed_at_work(&cluster, &device, most)?,
        "times" => times(&cluster, &device, most)?,
        "times-host" => times(&cluster, &device, most.min(24))?,
        _ => return Err(format!("unknown part {part}").into()),
    }
    say(&cluster, "RANK DONE");
    Ok(())
}

fn say(cluster: &Cluster<Mpi>, text: &str) {
    println!("rank {}: {text}", cluster.rank());
    _ = std::io::stdout().flush();
}

// ---- data

/// Word number `i` of the elements, without a pattern (SplitMix64).
fn word(i: u64) -> u64 {
    let mut z = i.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Which elements of all a rank has.
#[derive(Clone, Copy, Debug)]
enum Place {
    Whole,
    Cyclic { rank: usize, size: usize },
    Block { rank: usize, len: usize },
    BlockCyclic { rank: usize, size: usize, run: usize },
}

impl Place {
    fn of(cluster: &Cluster<Mpi>, order: Order, is_block_cyclic: bool, len: usize) -> Self {
        let (rank, size) = (cluster.rank(), cluster.size());
        match order {
            Order::Natural if is_block_cyclic => Self::BlockCyclic { rank, size, run: len / size },
            Order::Natural => Self::Cyclic { rank, size },
            Order::BitReversed => Self::Block { rank, len },
        }
    }

    /// Where element number `i` of the part lies among all.
    fn index(self, i: usize) -> usize {
        match self {
            Self::Whole => i,
            Self::Cyclic { rank, size } => i * size + rank,
            Self::Block { rank, len } => rank * len + i,
            Self::BlockCyclic { rank, size, run } => ((i / run) * size + rank) * run + i % run,
        }
    }
}

const BYTES: usize = <Mont<Fr> as Element>::BYTES;

fn memory(device: &Device, len: usize) -> Result<HostBuffer> {
    Ok(device.host_buffer(len * BYTES, Transfer::Both, Secrecy::Public)?)
}

/// Fills a buffer with the elements of its place. Every value below 2^254 is the device's form of one.
fn fill(x: &mut Buffer<Mont<Fr>>, place: Place) -> Result<()> {
    let len = x.len();
    for start in (0..len).step_by(CHUNK) {
        let end = len.min(start + CHUNK);
        let mut host = memory(x.device(), end - start)?;
        host.par_chunks_exact_mut(BYTES).enumerate().for_each(|(i, bytes)| {
            let first = 4 * place.index(start + i) as u64;
            for (limb, bytes) in (0..).zip(bytes.chunks_exact_mut(8)) {
                let mask = if limb == 3 { u64::MAX >> 2 } else { u64::MAX };
                bytes.copy_from_slice(&(word(first + limb) & mask).to_le_bytes());
            }
        });
        x.view_mut(start..end)?.write_pinned(host)?.wait()?;
    }
    Ok(())
}

fn filled(device: &Device, len: usize, place: Place) -> Result<Buffer<Mont<Fr>>> {
    let mut x = device.alloc(len)?;
    fill(&mut x, place)?;
    Ok(x)
}

/// The elements in the device's form, without decoding.
fn bytes(x: &Buffer<Mont<Fr>>) -> Result<Vec<u8>> {
    let mut all = Vec::with_capacity(x.len() * BYTES);
    for start in (0..x.len()).step_by(CHUNK) {
        let view = x.view(start..x.len().min(start + CHUNK))?;
        let host = memory(x.device(), view.len())?;
        all.extend_from_slice(&view.read_pinned(host)?.wait()?);
    }
    Ok(all)
}

/// Refuses a part whose elements are not those of the whole.
fn expect(part: &Buffer<Mont<Fr>>, whole: &[u8], place: Place, what: &str) -> Result<()> {
    let part = bytes(part)?;
    let differs = |(i, own): (usize, &[u8])| *own != whole[place.index(i) * BYTES..][..BYTES];
    let wrong = part.par_chunks_exact(BYTES).enumerate().filter(|at| differs(*at)).map(|(i, _)| i);
    match (wrong.clone().count(), wrong.min()) {
        (0, _) => Ok(()),
        (count, first) => {
            Err(format!("{what}: {count} of {} elements differ, first {first:?}", part.len() / BYTES).into())
        }
    }
}

// ---- checks

fn right(cluster: &Cluster<Mpi>, device: &Device, most: u32) -> Result<()> {
    let size = cluster.size();
    // The smallest sizes, some whose rows are cut into messages, and one that fills the devices.
    let least = 2 * size.ilog2();
    let mut sizes = vec![least, least + 1, 10, 13, 20, 24];
    sizes.retain(|log_n| *log_n >= least && *log_n <= most);
    for log_n in sizes {
        let (n, len) = (1 << log_n, (1 << log_n) / size);
        let ntt = Ntt::<Fr>::new(device, log_n)?;
        let plan = ClusterNtt::<Fr, _>::new(cluster, device, log_n, NttConfig::default())?;
        for (input, output, coset, block_cyclic) in [
            (Order::Natural, Order::Natural, Fr::ONE, false),
            (Order::Natural, Order::BitReversed, Fr::ONE, true),
            (Order::BitReversed, Order::Natural, Fr::GENERATOR, false),
            (Order::BitReversed, Order::BitReversed, Fr::ONE, false),
        ] {
            let way = Way { input, output, coset, block_cyclic };
            let what = format!("2^{log_n} {input:?} {block_cyclic} to {output:?}");
            let mut whole = filled(device, n, Place::Whole)?;
            let given = bytes(&whole)?;
            ntt.coset(coset).input(input).output(output).forward(&mut whole)?;
            let (expected, from) = (bytes(&whole)?, Place::of(cluster, input, block_cyclic, len));
            drop(whole);
            let mut x = filled(device, len, from)?;
            plan.forward(&mut x, way)?;
            expect(&x, &expected, Place::of(cluster, output, false, len), &what)?;
            plan.inverse(&mut x, Way { input: output, output: input, ..way })?;
            expect(&x, &given, from, &format!("{what}, inverse"))?;
        }
        say(cluster, &format!("transforms of 2^{log_n} are right"));
    }
    // What is larger than memory of the host suits, block by block.
    if most > 24 {
        let (n, len) = (1 << most, (1 << most) / size);
        let plan = ClusterNtt::<Fr, _>::new(cluster, device, most, NttConfig::default())?;
        let mut x = filled(device, len, Place::of(cluster, Order::Natural, true, len))?;
        let way = Way { output: Order::BitReversed, block_cyclic: true, ..Way::default() };
        plan.forward(&mut x, way)?;
        device.sync()?;
        let own = bytes(&x)?;
        drop((x, plan));
        device.trim();
        let mut whole = filled(device, n, Place::Whole)?;
        Ntt::<Fr>::new(device, most)?.transform().output(Order::BitReversed).forward(&mut whole)?;
        for start in (0..len).step_by(CHUNK) {
            let end = len.min(start + CHUNK);
            let first = cluster.rank() * len;
            let host = memory(device, end - start)?;
            let expected = whole.view(first + start..first + end)?.read_pinned(host)?.wait()?;
            if own[start * BYTES..end * BYTES] != expected[..] {
                return Err(format!("2^{most}: elements from {start} on differ").into());
            }
        }
        say(cluster, &format!("transforms of 2^{most} are right"));
    }
    let (len, value) = (size * 1000, |rank: usize, i: usize| (rank * 1_000_000 + i) as u32);
    let sent: Vec<u32> = (0..len).map(|i| value(cluster.rank(), i)).collect();
    let (from, mut to) = (device.upload::<u32>(&sent)?, device.alloc::<u32>(len)?);
    cluster.exchange(&from, &mut to)?;
    let expected: Vec<u32> = (0..len).map(|i| value(i / 1000, cluster.rank() * 1000 + i % 1000)).collect();
    if to.to_vec()? != expected {
        return Err("an exchange of small parts differs".into());
    }
    say(cluster, "exchanges are right");
    Ok(())
}

/// The device transforms as before.
fn expect_usable(device: &Device) -> Result<()> {
    let ntt = Ntt::<Fr>::new(device, 12)?;
    let mut x = filled(device, 1 << 12, Place::Whole)?;
    let given = bytes(&x)?;
    ntt.forward(&mut x)?;
    ntt.inverse(&mut x)?;
    expect(&x, &given, Place::Whole, "a transform afterwards")?;
    Ok(device.sync()?)
}

fn other(cluster: &Cluster<Mpi>, device: &Device) -> Result<()> {
    let log_n = if cluster.rank() == 1 { 11 } else { 10 };
    let begin = Instant::now();
    let refused = ClusterNtt::<Fr, _>::new(cluster, device, log_n, NttConfig::default()).err();
    let took = begin.elapsed();
    match refused {
        Some(Error::Disagree { rank: 1, .. }) => say(cluster, &format!("refused in {took:.2?}")),
        other => return Err(format!("expected a rank that disagrees, got {other:?}").into()),
    }
    // A rank that fails alone, before the exchange.
    let plan = ClusterNtt::<Fr, _>::new(cluster, device, 10, NttConfig::default())?;
    let len = (1 << 10) / cluster.size();
    let mut x = filled(device, if cluster.rank() == 1 { len / 2 } else { len }, Place::Whole)?;
    match plan.forward(&mut x, Way::default()) {
        Err(error) => say(cluster, &format!("refused: {error}")),
        Ok(()) => return Err("a rank with another length was not refused".into()),
    }
    let mut x = filled(device, len, Place::Cyclic { rank: cluster.rank(), size: cluster.size() })?;
    let given = bytes(&x)?;
    plan.forward(&mut x, Way::default())?;
    plan.inverse(&mut x, Way::default())?;
    expect(&x, &given, Place::Whole, "a transform of the cluster afterwards")?;
    expect_usable(device)
}

/// The last rank ends itself.
fn is_last(cluster: &Cluster<Mpi>) -> bool {
    cluster.rank() + 1 == cluster.size()
}

fn expect_gone(cluster: &Cluster<Mpi>, device: &Device, error: Error, waited: Duration) -> Result<()> {
    say(cluster, &format!("ended after {waited:.2?}: {error} ({error:?})"));
    if waited > SHORT + Duration::from_secs(15) {
        return Err("the wait took longer than its limit".into());
    }
    let begin = Instant::now();
    let later = cluster.exchange(&device.zeros::<u32>(4 * cluster.size())?, &mut device.zeros(4 * cluster.size())?);
    say(cluster, &format!("a later call ended after {:.2?}: {later:?}", begin.elapsed()));
    if later.is_ok() {
        return Err("the cluster is usable without a rank".into());
    }
    let begin = Instant::now();
    expect_usable(device)?;
    say(cluster, &format!("the device is usable, {:.2?}", begin.elapsed()));
    Ok(())
}

fn killed(cluster: &Cluster<Mpi>, device: &Device) -> Result<()> {
    let plan = ClusterNtt::<Fr, _>::new(cluster, device, 16, NttConfig::default())?;
    let mut x = filled(device, (1 << 16) / cluster.size(), Place::Whole)?;
    plan.forward(&mut x, Way::default())?;
    if is_last(cluster) {
        process::abort();
    }
    let begin = Instant::now();
    match plan.forward(&mut x, Way::default()) {
        Err(error) => expect_gone(cluster, device, error, begin.elapsed()),
        Ok(()) => Err("a transform without a rank succeeded".into()),
    }
}

fn killed_at_work(cluster: &Cluster<Mpi>, device: &Device, most: u32) -> Result<()> {
    // Large ones, so that most of the time passes in exchanges.
    let len = (1usize << most.min(26)) * 8 * cluster.size();
    let (from, mut to) = (device.zeros::<u32>(len)?, device.zeros::<u32>(len)?);
    cluster.exchange(&from, &mut to)?;
    if is_last(cluster) {
        thread::spawn(|| {
            thread::sleep(Duration::from_millis(1500));
            process::abort();
        });
    }
    let mut done = 0;
    loop {
        let begin = Instant::now();
        match cluster.exchange(&from, &mut to) {
            Ok(()) => done += 1,
            Err(error) => {
                say(cluster, &format!("after {done} exchanges"));
                return expect_gone(cluster, device, error, begin.elapsed());
            }
        }
    }
}

// ---- times

/// Times of a run by the slowest rank, in nanoseconds.
fn measured(cluster: &Cluster<Mpi>, mut run: impl FnMut() -> Result<()>) -> Result<Vec<f64>> {
    let (mut times, mut total) = (Vec::new(), 0.0);
    for i in 0.. {
        // All ranks meet.
        cluster.earliest(0)?;
        let begin = Instant::now();
        run()?;
        let own = begin.elapsed().as_nanos() as u64;
        let all = cluster.ranks().all_gather(&own.to_le_bytes())?;
        let slowest = all.chunks_exact(8).filter_map(|time| time.try_into().ok()).map(u64::from_le_bytes).max();
        let time = slowest.unwrap_or(own) as f64;
        if i >= 2 {
            times.push(time);
            total += time;
        }
        // All ranks have the same numbers here.
        if times.len() >= 200 || (times.len() >= 5 && total > 5e8) {
            break;
        }
    }
    Ok(times)
}

fn record(cluster: &Cluster<Mpi>, name: &str, devices: &str, log_n: u32, elements: usize, mut times: Vec<f64>) {
    times.sort_by(f64::total_cmp);
    let (runs, ms) = (times.len(), |nanoseconds: f64| nanoseconds / 1e6);
    let median = (times[(runs - 1) / 2] + times[runs / 2]) / 2.0;
    let mean = times.iter().sum::<f64>() / runs as f64;
    let variance = times.iter().map(|time| ms(time - mean).powi(2)).sum::<f64>() / (runs - 1).max(1) as f64;
    if cluster.rank() == 0 {
        let text = json!({
            "algorithm": "several", "case": name, "device": devices, "peer": null, "log_n": log_n, "elements": elements,
            "median_ms": ms(median), "min_ms": ms(times[0]), "mean_ms": ms(mean), "variance_ms2": variance, "runs": runs,
            "batch": 1, "launches": null, "throughput": elements as f64 * 1e9 / median, "relative_efficiency": null,
            "of_limit": null, "limit": null, "checked": "the part `right`", "speedup": null, "of_parts": null,
        });
        println!("{RECORD}{text}");
    }
    let gigabytes = elements as f64 / median;
    let bytes = if name.starts_with("exchange") { format!(", {gigabytes:.1} GB/s a rank") } else { String::new() };
    say(cluster, &format!("{name} 2^{log_n}: {:.4} ms (least {:.4}, {runs} runs){bytes}", ms(median), ms(times[0])));
}

fn times(cluster: &Cluster<Mpi>, device: &Device, most: u32) -> Result<()> {
    let (info, size) = (device.info(), cluster.size());
    let machine = json!({
        "device": info.id.to_string(), "name": info.name, "driver": info.driver, "architecture": info.architecture,
        "memory_bytes": info.memory_bytes, "parallelism": info.parallelism, "software": info.features.software,
        "copy_bytes_per_s": null, "mul_per_s": null,
    });
    println!("{RECORD}{machine}");
    _ = std::io::stdout().flush();
    let ids: Vec<String> = (0..size).map(|rank| format!("{}:{rank}", info.id.kind)).collect();
    let (one, all, route) = (info.id.to_string(), ids.join(","), format!("{:?}", cluster.route()).to_lowercase());
    let mut sizes = vec![20, 22, 24, 26, 28];
    sizes.retain(|log_n| *log_n <= most);
    if sizes.is_empty() {
        sizes.push(most);
    }
    for log_n in sizes {
        let (n, len) = (1usize << log_n, (1usize << log_n) / size);
        {
            let ntt = Ntt::<Fr>::new(device, log_n)?;
            let mut x = filled(device, n, Place::Whole)?;
            let run = || {
                ntt.forward(&mut x)?;
                Ok(device.sync()?)
            };
            record(cluster, "bls12-381-fr/ntt/natural/one-device", &one, log_n, n, measured(cluster, run)?);
        }
        device.trim();
        let plan = ClusterNtt::<Fr, _>::new(cluster, device, log_n, NttConfig::default())?;
        let mut x = filled(device, len, Place::Whole)?;
        for (name, block_cyclic) in [("natural", false), ("natural/block-cyclic", true)] {
            let run = || {
                plan.forward(&mut x, Way { block_cyclic, ..Way::default() })?;
                Ok(device.sync()?)
            };
            let times = measured(cluster, run)?;
            record(cluster, &format!("bls12-381-fr/ntt/{name}/{size}-ranks-by-{route}"), &all, log_n, n, times);
        }
        drop((plan, x));
        device.trim();
    }
    let bytes = [1usize << 20, 1 << 24, 1 << 28, 1 << 31];
    for sent in bytes.into_iter().filter(|bytes| *bytes <= BYTES << most) {
        // So many bytes go to others, and as many as to each of them stay.
        let part = (sent / (size - 1).max(1)).next_multiple_of(16);
        let from = device.zeros::<u32>(part * size / 4)?;
        let mut to = device.zeros::<u32>(part * size / 4)?;
        let times = measured(cluster, || {
            cluster.exchange(&from, &mut to)?;
            Ok(device.sync()?)
        })?;
        let elements = part * (size - 1);
        record(cluster, &format!("exchange/{size}-ranks-by-{route}"), &all, sent.ilog2(), elements, times);
    }
    Ok(())
}
