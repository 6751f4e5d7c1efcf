"""conch-triton-kernels 1.3: rms_norm adds up lanes that a masked load without `other` left undefined."""

from pathlib import Path

import conch.kernels.normalization.rms_norm
from _setup import report

# Triton documents such lanes as undefined. Today they are 0 on NVIDIA GPUs, so this looks at the source, not at values.
source = Path(conch.kernels.normalization.rms_norm.__file__).read_text()
loads = "x = tl.load(x_ptr + token_offset + block_offsets, mask=mask)\n" in source
report(
    loads and "tl.sum(x * x)" in source,
    "tl.sum(x * x) over a block of which the lanes beyond hidden_size are undefined",
)
