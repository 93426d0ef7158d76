"""What happens, in order: the only place that reads like a story."""
