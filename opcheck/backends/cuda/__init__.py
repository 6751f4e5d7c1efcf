"""What a CUDA machine shows of an op's kernels: launches, kernels that ran, and the sanitizers' reports."""
