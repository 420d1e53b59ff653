"""Pure functions of tensors: the arithmetic beneath the algebra."""
