"""Settings that every test shares."""

import signal

import hypothesis

# The first example may have to compile a kernel, so the time of an example says nothing.
hypothesis.settings.register_profile("spiel_cfr", deadline=None)
hypothesis.settings.load_profile("spiel_cfr")

# Where the tests were started in the background, Ctrl-C is ignored, and tests of Ctrl-C would wait for ever.
signal.signal(signal.SIGINT, signal.default_int_handler)
