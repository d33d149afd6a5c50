pragma circom 2.0.0;

include "circomlib/circuits/sha256/sha256.circom";

// The hash of a message of 55 bytes: one block.
template Hash() {
    signal input message[440];
    signal output hash[256];
    component sha256 = Sha256(440);
    for (var i = 0; i < 440; i++) sha256.in[i] <== message[i];
    for (var i = 0; i < 256; i++) hash[i] <== sha256.out[i];
}

component main = Hash();
