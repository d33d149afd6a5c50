//! Compiles sppark's transforms, one program a field: its types have the same names for every field, so that each
//! program keeps its symbols to itself. And the kernels of ec-gpu-gen over BLS12-381, to machine code that is loaded
//! when it is wanted.

#![cfg_attr(not(feature = "nvcc"), allow(dead_code, unused_imports))]

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
};

/// sppark's name of a field or curve, and ours.
const FIELDS: [(&str, &str); 4] =
    [("BLS12_381", "bls12_381"), ("BN254", "bn254"), ("BABY_BEAR", "baby_bear"), ("GOLDILOCKS", "goldilocks")];

/// Machine code for the cards of data centres, and PTX for later ones.
const CODE: [&str; 2] = ["arch=compute_80,code=sm_80", "arch=compute_90,code=[sm_90,compute_90]"];

fn main() {
    println!("cargo::rerun-if-changed=src/sppark.cu");
    println!("cargo::rerun-if-env-changed=NVCC");
    #[cfg(feature = "nvcc")]
    {
        let nvcc = PathBuf::from(env::var_os("NVCC").unwrap_or("nvcc".into()));
        let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
        sppark(&nvcc, &out);
        ec_gpu(&nvcc, &out);
    }
}

/// Compiles the kernels, and tells their names.
#[cfg(feature = "nvcc")]
fn ec_gpu(nvcc: &Path, out: &Path) {
    use blstrs::{Fp, G1Affine, Scalar};
    use ec_gpu::GpuName;

    let source = ec_gpu_gen::SourceBuilder::new().add_fft::<Scalar>().add_multiexp::<G1Affine, Fp>();
    let (text, code) = (out.join("ec_gpu.cu"), out.join("ec_gpu.fatbin"));
    std::fs::write(&text, source.build_32_bit_limbs()).expect("cargo's folder can be written to");
    // Optimised as their own build script has it.
    let mut compile = command(nvcc, &["--fatbin", "--optimize=6", "-w"]);
    run(compile.arg(&text).arg("-o").arg(&code));
    println!("cargo::rustc-env=EC_GPU_TRANSFORM={}_radix_fft", Scalar::name());
    println!("cargo::rustc-env=EC_GPU_SUM={}_multiexp", G1Affine::name());
}

/// A call of the compiler for all cards.
fn command(nvcc: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(nvcc);
    command.args(arguments);
    CODE.iter().for_each(|code| _ = command.args(["-gencode", code]));
    command
}

fn sppark(nvcc: &Path, out: &Path) {
    let include = [variable("DEP_SPPARK_ROOT"), variable("DEP_BLST_C_SRC")];
    let mut objects = Vec::new();
    for (feature, name) in FIELDS {
        let (compiled, merged) = (out.join(format!("{name}.o")), out.join(format!("{name}-only.o")));
        let mut compile = command(nvcc, &["-c", "-O3", "-std=c++17", "-w", "-Xcompiler=-fPIC,-fno-gnu-unique"]);
        include.iter().for_each(|folder| _ = compile.arg("-I").arg(folder));
        compile.arg(format!("-DFEATURE_{feature}")).arg(format!("-DNAME={name}"));
        run(compile.arg("src/sppark.cu").arg("-o").arg(&compiled));
        // Without groups, whose sections the linker would take from one program for all of them.
        run(Command::new("ld").args(["-r", "--force-group-allocation", "-o"]).arg(&merged).arg(&compiled));
        run(Command::new("objcopy")
            .arg("--wildcard")
            .arg(format!("--keep-global-symbol=evariste_{name}_*"))
            .arg(&merged));
        objects.push(merged);
    }
    let library = out.join("libevariste_sppark.a");
    // An archive that is there would keep members of before.
    let _ = std::fs::remove_file(&library);
    run(Command::new("ar").arg("crs").arg(&library).args(&objects));
    println!("cargo::rustc-link-search=native={}", out.display());
    println!("cargo::rustc-link-lib=static=evariste_sppark");
    for folder in runtime_folders(nvcc) {
        println!("cargo::rustc-link-search=native={}", folder.display());
    }
    println!("cargo::rustc-link-lib=static=cudart_static");
    for library in ["stdc++", "rt", "dl", "pthread"] {
        println!("cargo::rustc-link-lib=dylib={library}");
    }
}

fn variable(name: &str) -> PathBuf {
    env::var_os(name).unwrap_or_else(|| panic!("{name} is set by the crate's build script")).into()
}

/// Where toolkits keep the static runtime, beside their compiler.
fn runtime_folders(nvcc: &Path) -> Vec<PathBuf> {
    let nvcc = if nvcc.components().count() > 1 {
        Some(nvcc.to_path_buf())
    } else {
        let path = env::var_os("PATH").unwrap_or_default();
        env::split_paths(&path).map(|folder| folder.join(nvcc)).find(|file| file.is_file())
    };
    let Some(root) = nvcc.as_deref().and_then(Path::parent).and_then(Path::parent) else { return Vec::new() };
    ["lib64", "lib", "targets/x86_64-linux/lib"]
        .map(|folder| root.join(folder))
        .into_iter()
        .filter(|f| f.is_dir())
        .collect()
}

fn run(command: &mut Command) {
    let status = command.status().unwrap_or_else(|error| panic!("{command:?} could not be started: {error}"));
    assert!(status.success(), "{command:?} failed: {status}");
}
