"""Attacks everything public and prints a table by room.

PYTHONPATH=tests/support python -m attacks --seed 1 --seconds 600

Attacks of all kinds take turns, unless `--kind` names one, and `--match` a regular expression of their names.
`--list FILE` writes each outcome as a line of JSON.
"""

import argparse
import json

from attacks import kinds, outcomes
from attacks.outcomes import VERDICTS


def main() -> None:
  parser = argparse.ArgumentParser(description=__doc__)
  parser.add_argument("--seed", type=int, default=0)
  parser.add_argument("--seconds", type=float, default=600.0)
  parser.add_argument("--kind", choices=sorted(kinds.KINDS), action="append")
  parser.add_argument("--match", default="")
  parser.add_argument("--most", type=int, default=100_000, help="the number of attacks")
  parser.add_argument("--list", help="a file for all outcomes")
  given = parser.parse_args()
  found = []
  attacks = kinds.attacks_of(given.kind or kinds.KINDS, given.seed, given.most, given.match)
  for outcome in outcomes.outcomes(attacks, given.seconds):
    found.append(outcome)
    if given.list:
      with open(given.list, "a") as file:
        file.write(json.dumps(outcome) + "\n")
  print(kinds.table(found))
  wrong = [outcome for outcome in found if outcome.verdict == VERDICTS[-1]]
  for outcome in wrong:
    print(f"{outcome.room}: {outcome.name}\n  {outcome.why}")
  raise SystemExit(bool(wrong))


if __name__ == "__main__":
  main()
