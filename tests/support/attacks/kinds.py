"""All kinds of attacks, and what came of them as a table."""

import collections
import itertools
from collections.abc import Callable, Iterable, Iterator

import numpy as np

from attacks import (
  by_type,
  disturbances,
  forged_certificates,
  forged_files,
  odd_games,
  outcomes,
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


def outcomes_of(names: Iterable[str], seed: int, seconds: float, most: int) -> Iterator[Outcome]:
  """Yields what comes of attacks of some kinds in turn; the same seed makes the same attacks in the same order."""
  every = [KINDS[name](np.random.default_rng([seed, len(name)])) for name in names]
  turns = (attack for turn in itertools.zip_longest(*every) for attack in turn if attack)
  yield from outcomes.outcomes(list(itertools.islice(turns, most)), seconds)


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
