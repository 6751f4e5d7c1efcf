"""An op whose contract decides how much of its kernels an audit reaches."""
