"""Property tests of the house: the same examples every time, and nothing held against a host that is slow or stalls.

Given to every test, whatever directory a run begins with: `too_slow` and the deadline measure the host, not the house.
"""

from hypothesis import HealthCheck, settings

settings.register_profile(
    "house", deadline=None, derandomize=True, max_examples=40, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("house")
