"""Settings that every test shares."""

import hypothesis

# The first example may have to compile a kernel, so the time of an example says nothing.
hypothesis.settings.register_profile("spiel_cfr", deadline=None)
hypothesis.settings.load_profile("spiel_cfr")
