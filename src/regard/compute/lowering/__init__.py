"""What backends share: the protocol of a backend, its conditions and reasons, and the ways from parts to kernels."""
