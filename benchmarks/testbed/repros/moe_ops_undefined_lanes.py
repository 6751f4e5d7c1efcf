"""moe-ops 0.1.0: the gradient of unpermute's prob adds up lanes that a masked load without `other` left undefined."""

from pathlib import Path

import moe_ops.unpermute_ops
from _setup import report

# Triton documents such lanes as undefined. Today they are 0 on NVIDIA GPUs, so this looks at the source, not at values.
source = Path(moe_ops.unpermute_ops.__file__).read_text()
kernel = source[source.index("def _unpermute_bwd_kernel") : source.index("def unpermute_backward")]
summed = "acc_k = tl.sum(g * v)" in kernel and "mask=mask).to(tl.float32)" in kernel and "other" not in kernel
report(summed, "tl.sum(g * v) over a block of which the lanes beyond num_cols were loaded without other=0")
