"""fla-core 0.6.0: the backward of layer_norm and rms_norm multiplies 0 by lanes that a masked load left undefined."""

from pathlib import Path

import fla.modules.layernorm
from _setup import report

# Triton documents such lanes as undefined. Today they are 0 on NVIDIA GPUs, so this looks at the source, not at values.
source = Path(fla.modules.layernorm.__file__).read_text()
backward = source[source.index("def layer_norm_bwd_kernel_row") :]
loads = "b_w = tl.load(w + i_g * D + o_d, mask=mask).to(tl.float32)" in backward
report(loads, "b_dy * b_w, summed, where b_dy is 0 and b_w undefined beyond the last column: NaN if that is NaN or Inf")
