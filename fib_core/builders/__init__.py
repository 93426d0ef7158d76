"""Sources to a callable, per language. Shared by the judge (device) and by the serving process (runtime)."""
