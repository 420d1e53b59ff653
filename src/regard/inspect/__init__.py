"""Where attention looked: observe models, keep recordings, measure and draw them."""
