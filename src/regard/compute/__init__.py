"""How attention is computed: `attend`, its plans, backends and kernels, and the weights it returns."""
