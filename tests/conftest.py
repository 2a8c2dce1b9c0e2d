"""Settings of the whole suite: property tests draw the same examples in every run, so a red run can be repeated."""

from hypothesis import settings

settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile("repeatable")
