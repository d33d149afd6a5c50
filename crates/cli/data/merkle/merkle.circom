pragma circom 2.0.0;

include "power.circom";

// Membership of a leaf in a tree with this root. The hash of two nodes is (rounds of the left under the right) + left.
template Merkle(depth) {
    signal input root;
    signal input leaf;
    signal input siblings[depth];
    signal input right[depth];
    component hash[depth];
    signal node[depth + 1];
    signal swap[depth];
    node[0] <== leaf;
    for (var i = 0; i < depth; i++) {
        right[i] * (right[i] - 1) === 0;
        swap[i] <== right[i] * (siblings[i] - node[i]);
        hash[i] = Rounds(20);
        hash[i].value <== node[i] + swap[i];
        hash[i].key <== siblings[i] - swap[i];
        node[i + 1] <== hash[i].out + node[i] + swap[i];
    }
    root === node[depth];
}

component main { public [root] } = Merkle(2);
