//! The kernels: their declarations.

use evariste_backend::author::{Binding, BindingType, CpuArg, KernelSpec, Language, loop_iterations};

use super::{
    cpu,
    function::HashFunction,
    params::{ChunkParams, MessageParams, ParentParams, THREADS, domain, flags, parents},
    wgsl,
};

/// Workgroups that a multiprocessor holds at a time, in CUDA: these registers suffice, and nothing is spilled.
fn resident(function: HashFunction) -> u32 {
    match function {
        HashFunction::Keccak256 | HashFunction::Sha3_256 => 5,
        HashFunction::Sha256 | HashFunction::Blake2s256 | HashFunction::Blake3 => 8,
    }
}

/// What the text of a function depends on: SHA-3 is Keccak with another byte behind the message.
fn variant(function: HashFunction) -> &'static str {
    match function {
        HashFunction::Keccak256 | HashFunction::Sha3_256 => "Keccak",
        HashFunction::Sha256 => "SHA-256",
        HashFunction::Blake2s256 => "BLAKE2s",
        HashFunction::Blake3 => "BLAKE3",
    }
}

/// The function in a language, before a kernel.
fn source(language: Language, function: HashFunction, cuda: &str, wgsl: &str) -> String {
    match language {
        Language::Cuda => {
            use evariste_cuda::hash::{BLAKE, BLAKE2S, BLAKE3, BYTES, KECCAK, SHA256};
            let own = match function {
                HashFunction::Keccak256 | HashFunction::Sha3_256 => [KECCAK, ""],
                HashFunction::Sha256 => [SHA256, ""],
                HashFunction::Blake2s256 => [BLAKE, BLAKE2S],
                HashFunction::Blake3 => [BLAKE, BLAKE3],
            };
            let words = function.block() / 4;
            let defined = format!(
                "#define THREADS {THREADS}\n#define RESIDENT {}\n#define BLOCK_WORDS {words}\n",
                resident(function)
            );
            [&defined, BYTES, &own.concat(), cuda].concat()
        }
        Language::Wgsl { .. } => wgsl::function(function) + wgsl,
    }
}

/// Loop iterations of one block in WGSL.
fn iterations_of_block(function: HashFunction) -> u64 {
    match function {
        HashFunction::Keccak256 | HashFunction::Sha3_256 => loop_iterations(24, 0),
        _ => 0,
    }
}

/// `hash_messages`, of all functions but BLAKE3.
pub(super) fn hash_messages(function: HashFunction) -> KernelSpec {
    let bindings = [
        Binding::read("x", BindingType::Bytes),
        Binding::read("offsets", BindingType::U32),
        Binding::write("out", BindingType::Vec4),
    ];
    let body = move |params: &MessageParams, [x, offsets, out]: &mut [CpuArg<'_>; 3]| {
        cpu::hash_messages(function, params, x.read(), offsets.read(), out.write());
    };
    let text = move |language| {
        source(language, function, evariste_cuda::hash::HASH_MESSAGES, evariste_shaders::hash::HASH_MESSAGES)
    };
    KernelSpec::new("hash_messages", variant(function), bindings, body, text)
        .threads(THREADS)
        .constants(flags::ALL)
        .iterations(move |params: &MessageParams| {
            // SHA-256 has nine bytes behind a message at least.
            let blocks = (u64::from(params.bytes) + 8) / u64::from(function.block()) + 1;
            loop_iterations(blocks, iterations_of_block(function))
        })
}

/// `blake3_chunks`. The CPU takes leaves of so many bytes.
pub(super) fn blake3_chunks(leaf: usize) -> KernelSpec {
    let bindings = [
        Binding::read("x", BindingType::Bytes),
        Binding::read("jobs", BindingType::Vec4),
        Binding::write("out", BindingType::Vec4),
    ];
    let body = move |params: &ChunkParams, [x, jobs, out]: &mut [CpuArg<'_>; 3]| {
        cpu::blake3_chunks(leaf, params, x.read(), jobs.read(), out.write());
    };
    let text = |language| {
        let (cuda, wgsl) = (evariste_cuda::hash::BLAKE3_CHUNKS, evariste_shaders::hash::BLAKE3_CHUNKS);
        source(language, HashFunction::Blake3, cuda, wgsl)
    };
    KernelSpec::new("blake3_chunks", "", bindings, body, text)
        .threads(THREADS)
        .constants(flags::ALL)
        .constants(domain::ALL)
        .iterations(|_: &ChunkParams| loop_iterations(16, 0))
}

/// `blake3_parents`.
pub(super) fn blake3_parents() -> KernelSpec {
    let bindings = [
        Binding::read("x", BindingType::Vec4),
        Binding::read("jobs", BindingType::Vec2),
        Binding::write("out", BindingType::Vec4),
    ];
    let body = |params: &ParentParams, [x, jobs, out]: &mut [CpuArg<'_>; 3]| {
        cpu::blake3_parents(params, x.read(), jobs.read(), out.write());
    };
    let text = |language| {
        let (cuda, wgsl) = (evariste_cuda::hash::BLAKE3_PARENTS, evariste_shaders::hash::BLAKE3_PARENTS);
        source(language, HashFunction::Blake3, cuda, wgsl)
    };
    KernelSpec::new("blake3_parents", "", bindings, body, text)
        .threads(THREADS)
        .constants(flags::ALL)
        .constants(domain::ALL)
        .constants(parents::ALL)
        .iterations(|_: &ParentParams| 0)
}
