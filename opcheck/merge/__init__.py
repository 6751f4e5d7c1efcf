"""May a change merge? Its policy, oracles and kernels against those of base, and the evidence for what it is now."""
