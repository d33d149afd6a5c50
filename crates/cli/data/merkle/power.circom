pragma circom 2.0.0;

// Rounds x → (x + key + constant)^7, as MiMC has them, with constants that nobody should use.
template Rounds(count) {
    signal input key;
    signal input value;
    signal output out;
    signal x[count + 1];
    signal sum[count];
    signal square[count];
    signal fourth[count];
    signal sixth[count];
    x[0] <== value;
    for (var i = 0; i < count; i++) {
        sum[i] <== x[i] + key + i * i * i + 7;
        square[i] <== sum[i] * sum[i];
        fourth[i] <== square[i] * square[i];
        sixth[i] <== fourth[i] * square[i];
        x[i + 1] <== sixth[i] * sum[i];
    }
    out <== x[count] + key;
}
