"""What an index claims and how it is asked: boxes, guards, evidence, lookup, staleness. Pure and light."""
