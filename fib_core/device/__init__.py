"""Runs only inside worker processes; with builders and runtime the only importer of torch and triton."""
