// y = 3 x, wrong on purpose in one way each; `wrong` is 0 for the right twin. Built by cuda_ops.py.
#include <cuda_runtime.h>

constexpr int kBlock = 128;

// Out of bounds: the last block writes all of its elements, also those behind the end.
__global__ void scale_unbounded(const float* x, float* y, int n, int wrong) {
    int i = blockIdx.x * kBlock + threadIdx.x;
    float value = i < n ? x[i] : 0.0f;
    if (i < n || wrong) y[i] = 3.0f * value;
}

// Race: warps read what other warps put into shared memory, without a barrier between.
__global__ void reverse_blocks(const float* x, float* y, int n, int wrong) {
    __shared__ float held[kBlock];
    int i = blockIdx.x * kBlock + threadIdx.x;
    held[threadIdx.x] = i < n ? x[i] : 0.0f;
    if (!wrong) __syncthreads();
    float other = held[kBlock - 1 - threadIdx.x];
    if (i < n) y[i] = 3.0f * other;
}

// Unwritten: the last element of every block is left as it was allocated.
__global__ void scale_but_last(const float* x, float* y, int n, int wrong) {
    int i = blockIdx.x * kBlock + threadIdx.x;
    if (wrong && threadIdx.x == kBlock - 1) return;
    if (i < n) y[i] = 3.0f * x[i];
}

extern "C" int launch(int kernel, const float* x, float* y, int n, int wrong, cudaStream_t stream) {
    dim3 grid((n + kBlock - 1) / kBlock);
    switch (kernel) {
        case 0: scale_unbounded<<<grid, kBlock, 0, stream>>>(x, y, n, wrong); break;
        case 1: reverse_blocks<<<grid, kBlock, 0, stream>>>(x, y, n, wrong); break;
        case 2: scale_but_last<<<grid, kBlock, 0, stream>>>(x, y, n, wrong); break;
    }
    return static_cast<int>(cudaGetLastError());
}
