pragma circom 2.0.0;

include "circomlib/circuits/poseidon.circom";

// A leaf of a tree of Poseidon hashes, and that it lies below the root.
template Path(levels) {
    signal input leaf;
    signal input siblings[levels];
    signal input is_right[levels];
    signal output root;

    component hashes[levels];
    signal nodes[levels + 1];
    signal swaps[levels];
    nodes[0] <== leaf;
    for (var i = 0; i < levels; i++) {
        is_right[i] * (is_right[i] - 1) === 0;
        swaps[i] <== is_right[i] * (siblings[i] - nodes[i]);
        hashes[i] = Poseidon(2);
        hashes[i].inputs[0] <== nodes[i] + swaps[i];
        hashes[i].inputs[1] <== siblings[i] - swaps[i];
        nodes[i + 1] <== hashes[i].out;
    }
    root <== nodes[levels];
}

component main = Path(20);
