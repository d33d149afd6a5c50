#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| evariste_fuzz::snarkjs_texts(data));
