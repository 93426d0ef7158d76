"""Property tests of rooms: the same examples every time, and no deadline, since machines are shared."""

from hypothesis import settings

settings.register_profile("rooms", deadline=None, derandomize=True, max_examples=40)
settings.load_profile("rooms")
