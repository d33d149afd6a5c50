// sppark's transform and sum for one field or curve, behind functions of C. NAME names it, FEATURE_… selects it.

#if defined(FEATURE_BLS12_381)
# include <ff/bls12-381.hpp>
#elif defined(FEATURE_BN254)
# include <ff/alt_bn128.hpp>
#elif defined(FEATURE_BABY_BEAR)
# include <ff/baby_bear.hpp>
#elif defined(FEATURE_GOLDILOCKS)
# include <ff/goldilocks.hpp>
#endif

#include <ntt/ntt.cuh>

#if defined(FEATURE_BLS12_381) || defined(FEATURE_BN254)
# define CURVE
# include <ec/jacobian_t.hpp>
# include <ec/xyzz_t.hpp>
typedef jacobian_t<fp_t> point_t;
typedef xyzz_t<fp_t> bucket_t;
typedef bucket_t::affine_t affine_t;
typedef fr_t scalar_t;
# include <msm/pippenger.cuh>
#endif

#define PASTE(name, function) evariste_##name##_##function
#define FUNCTION_OF(name, function) PASTE(name, function)
#define FUNCTION(function) FUNCTION_OF(NAME, function)

#ifndef __CUDA_ARCH__

namespace {

// What an exception means in the runtime's codes; 0 without one.
template<class Work> int code_of(Work work)
{
    try {
        work();
    } catch (const cuda_error& error) {
        return error.code();
    } catch (...) {
        return cudaErrorUnknown;
    }
    return cudaSuccess;
}

}

extern "C" {

int FUNCTION(alloc)(size_t bytes, void** memory)
{   return code_of([&] { select_gpu(0); CUDA_OK(cudaMalloc(memory, bytes)); });   }

void FUNCTION(free)(void* memory)
{   (void)cudaFree(memory);   }

int FUNCTION(write)(void* to, const void* from, size_t bytes)
{
    return code_of([&] {
        CUDA_OK(cudaMemcpy(to, from, bytes, cudaMemcpyHostToDevice));
        // It returns once the bytes are staged, and other streams do not wait for them.
        CUDA_OK(cudaDeviceSynchronize());
    });
}

int FUNCTION(read)(void* to, const void* from, size_t bytes)
{   return code_of([&] { CUDA_OK(cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToHost)); });   }

int FUNCTION(wait)()
{   return code_of([] { select_gpu(0).sync(); });   }

// In place, in natural order; queued.
int FUNCTION(forward)(void* elements, uint32_t log_n)
{
    return code_of([&] {
        NTT::Base_dev_ptr(select_gpu(0), static_cast<fr_t*>(elements), log_n, NTT::InputOutputOrder::NN,
                          NTT::Direction::forward, NTT::Type::standard);
    });
}

#ifdef CURVE

// A sum of products of bases and scalars, both on the device, which it frees.
struct sum_t {
    msm_t<bucket_t, point_t, affine_t, scalar_t> plan;
    gpu_ptr_t<affine_t::mem_t> bases;
    gpu_ptr_t<scalar_t> scalars;
    size_t count;

    sum_t(affine_t::mem_t* bases, scalar_t* scalars, size_t count)
        : plan{nullptr, count}, bases{bases}, scalars{scalars}, count{count} {}
};

// `bases` and `scalars` are from `alloc`, and no longer the caller's; elements are in Montgomery form.
int FUNCTION(sum_new)(void* bases, void* scalars, size_t count, void** sum)
{
    return code_of([&] {
        *sum = new sum_t{static_cast<affine_t::mem_t*>(bases), static_cast<scalar_t*>(scalars), count};
        select_gpu(0).sync();
    });
}

// `point` is Jacobian, on the host.
int FUNCTION(sum)(void* sum, void* point)
{
    int code = cudaSuccess;
    int thrown = code_of([&] {
        auto& s = *static_cast<sum_t*>(sum);
        code = s.plan.invoke(*static_cast<point_t*>(point), s.bases, s.count, s.scalars).code;
    });
    return thrown != cudaSuccess ? thrown : code;
}

void FUNCTION(sum_free)(void* sum)
{   delete static_cast<sum_t*>(sum);   }

#endif

}

#endif
