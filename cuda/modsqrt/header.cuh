// Montgomery multiplication modulo odd numbers known at run time, R = 2^(32 LIMBS).
//
// Comes after
//   LIMBS  32-bit limbs of an element, little endian
//   LANES  neighbouring threads that share an element; each holds M_LIMBS of its limbs, an even number
// and before field/carries.cuh and modsqrt/multiply.cuh. A host that runs these sources may define CARRY_MODEL as 1 and bring a
// model of the instructions with carries.

#define M_LIMBS (LIMBS / LANES)

#if defined(__CUDA_ARCH__) || CARRY_MODEL
#define F_CARRIES 1
#else
#define F_CARRIES 0
#endif
