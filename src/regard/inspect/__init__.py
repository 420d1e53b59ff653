"""What models attend to: observe them, keep recordings, measure and draw these."""
