"""moe-ops 0.1.0: grouped_gemm is tuned once for a number of experts, and what fits at one k does not at another.

Built for an H200 (sm_90) and not run: no GPU is needed. With k of one block nothing is loaded ahead.
"""

import sys

import triton
import triton.language as tl
from moe_ops.grouped_gemm_ops_sm90 import grouped_matmul_tma_kernel as tuner
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

MOST = 232_448  # bytes of shared memory that a program may have on an H200
SHAPES = {8: 8, 136: 40}  # k: n


def bytes_needed(config: triton.Config, k: int) -> int:
    """Return the shared memory that a configuration takes at a k."""
    constants = {"N": SHAPES[k], "K": k, "lda": k, "ldc": SHAPES[k], "NUM_SM": 132, "TRANS_B": True}
    constants |= {"BLOCK_DTYPE": tl.float16, **config.kwargs}
    types = {"group_size": "i32", "offsets": "*i32", **dict.fromkeys(constants, "constexpr")}
    signature = {name: types.get(name, "*fp16") for name in tuner.fn.arg_names}
    source = ASTSource(fn=tuner.fn, signature=signature, constexprs=constants)
    options = {"num_warps": config.num_warps, "num_stages": config.num_stages}
    return triton.compile(source, target=GPUTarget("cuda", 90, 32), options=options).metadata.shared


needed = [tuple(bytes_needed(config, k) for k in SHAPES) for config in tuner.configs]
caught = [large for small, large in needed if small <= MOST < large]
there = bool(caught) and not {"N", "K"} & set(tuner.keys)
print(
    f"{'still there' if there else 'gone'}: the tuner's key is {tuner.keys}; {len(caught)} of {len(needed)} "
    f"configurations fit at k = 8 and need up to {max(caught, default=0):,} of {MOST:,} bytes at k = 136"
)
sys.exit(1 if there else 0)
