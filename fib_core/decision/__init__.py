"""From paired rounds to a verdict: the contest, its statistics, its gates and the rule. Pure."""
