"""The texts of planted faults."""

import seeded_faults


def test_every_fault_can_be_planted():
  assert not [fault.name for fault in seeded_faults.missing()]
