"""What attention is: scores, biases, masks, normalizers and aggregates, their definition and their catalog."""
