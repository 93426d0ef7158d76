"""The account of a run: scores with their names, cold path, coverage, controls, and the pages that show them."""
