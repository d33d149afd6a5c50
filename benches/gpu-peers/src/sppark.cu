// sppark's transform for one field, behind functions of C. NAME names it, FEATURE_… selects it.

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

}

#endif
