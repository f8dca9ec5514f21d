"""All kinds of attacks, and what came of them as a table."""

import collections
import itertools
import re
from collections.abc import Callable, Iterable, Iterator

import numpy as np

from attacks import (
  by_type,
  disturbances,
  forged_certificates,
  forged_files,
  odd_games,
  scales,
)
from attacks.outcomes import VERDICTS, Attack, Outcome

KINDS: dict[str, Callable[[np.random.Generator], Iterator[Attack]]] = {
  "by_type": by_type.attacks,
  "odd_games": odd_games.attacks,
  "scales": scales.attacks,
  "forged_files": forged_files.attacks,
  "forged_certificates": forged_certificates.attacks,
  "disturbances": disturbances.attacks,
}


def attacks_of(names: Iterable[str], seed: int, most: int, match: str = "") -> list[Attack]:
  """Returns attacks of some kinds in turn; the same seed makes the same attacks in the same order.

  Args:
    names: of kinds.
    seed: of all random numbers.
    most: how many there may be, before a name has to match.
    match: a regular expression that is found in their names.
  """
  every = [KINDS[name](np.random.default_rng([seed, len(name)])) for name in names]
  turns = (attack for turn in itertools.zip_longest(*every) for attack in turn if attack)
  first = itertools.islice(turns, most)
  return [attack for attack in first if re.search(match, attack.name)]


def table(found: Iterable[Outcome]) -> str:
  """Returns the number of attacks on each room, and what came of them, as a table of Markdown."""
  counts: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
  for outcome in found:
    counts[outcome.room][outcome.verdict] += 1
  total = sum(counts.values(), collections.Counter())
  lines = ["| room | tried | right | named | wrong |", "| --- | --- | --- | --- | --- |"]
  for room, own in [*sorted(counts.items()), ("all", total)]:
    numbers = [own.total(), *(own[verdict] for verdict in VERDICTS)]
    lines.append(f"| {room} | {' | '.join(f'{number:,}' for number in numbers)} |")
  return "\n".join(lines)
