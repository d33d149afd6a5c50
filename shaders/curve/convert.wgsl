// Between points (x, y, zz, zzz) and (x, y, z), after both.

fn xyzz_of_jacobian(p: Jacobian) -> Xyzz {
    let zz = c_square(p.z);
    return Xyzz(p.x, p.y, zz, f_mul(zz, p.z));
}

// With z = zz, since zz^3 = zzz^2.
fn jacobian_of_xyzz(p: Xyzz) -> Jacobian {
    return Jacobian(f_mul(p.x, p.zz), f_mul(p.y, p.zzz), p.zz);
}
