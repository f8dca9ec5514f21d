"""Forged certificates: `examples/check_certificate.py` must verify none that claims something false."""

import functools
import hashlib
import json
import pathlib
import re
import sys
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np

import spiel_cfr
from attacks.outcomes import Attack

sys.path.insert(0, str(pathlib.Path(__file__).parents[3] / "examples"))
import check_certificate

_GAMES = ("kuhn_poker", "kuhn_poker(players=3)", "tiny_hanabi", "matrix_shapleys_game")
# Strings and numbers that may stand for probabilities or bounds.
_NUMBERS: tuple[Any, ...] = (
  *(0.0, -0.0, -1e-12, 0.5, 1.0, 3, 1e-320, 1e308, 10**400, float("nan"), float("inf"), True, None),
  *("0", "1e-30", "1e400", "-1", "1/3", "nan", "inf", "1e99999999", "", [], {"0": 1.0}),
)


def attacks(rng: np.random.Generator) -> Iterator[Attack]:
  """Yields the certificates as they are, then forgeries without end."""
  for game in _GAMES:
    yield Attack("certificates", f"certificate of {game}", functools.partial(_honest, game))
  while True:
    game, seed = str(rng.choice(_GAMES)), int(rng.integers(2**32))
    strike = _changed_bytes if rng.random() < 0.3 else _forged
    yield Attack(
      "certificates",
      f"certificate of {game}, {strike.__name__[1:]} by {seed}",
      functools.partial(strike, game, seed),
    )


@functools.cache
def _certificate(game: str) -> bytes:
  solver = spiel_cfr.CFRSolver(game)
  solver.run(7)
  spiel_cfr.certify(game, solver).save("certificate")
  return pathlib.Path("certificate").read_bytes()


def _honest(game: str) -> str:
  return "" if check_certificate.check(json.loads(_certificate(game))) else "it does not verify"


def _changed_bytes(game: str, seed: int) -> str:
  """Turns bits of the file; what does not say the same any more must not verify."""
  rng, original = np.random.default_rng(seed), _certificate(game)
  content = bytearray(original)
  for _ in range(rng.integers(1, 4)):
    content[rng.integers(len(content))] ^= 1 << int(rng.integers(8))
  try:
    found = json.loads(bytes(content))
    verifies = check_certificate.check(found)
  except Exception:
    return ""
  return "it verifies" if verifies and found != json.loads(original) else ""


def _forged(game: str, seed: int) -> str:
  """Changes what is said, and the hash with it; what verifies then must be true."""
  rng, content = np.random.default_rng(seed), json.loads(_certificate(game))
  for _ in range(rng.integers(1, 3)):
    _FORGERIES[rng.integers(len(_FORGERIES))](content, rng)
  text = json.dumps(content | {"sha256": ""}, sort_keys=True, separators=(",", ":"))
  content["sha256"] = hashlib.sha256(text.encode()).hexdigest()
  given = json.loads(json.dumps(content))
  try:
    verifies = check_certificate.check(given)
  except Exception:
    return ""
  return _falsehood(given) if verifies else ""


def _falsehood(content: dict[str, Any]) -> str:
  """Returns what a verified certificate says that is not true, by the bounds of `certify`."""
  game = spiel_cfr.compile_game(content["game"])
  policy: list[dict[str, dict[int, float]]] = []
  for own, infosets in zip(content["policy"], game.infosets, strict=False):
    ends = np.cumsum(infosets.num_actions)[:-1]
    legal = zip(infosets.infostates, np.split(infosets.actions, ends), strict=True)
    policy.append({})
    # What else a certificate has, says nothing.
    for name, actions in legal:
      chances = {action: Fraction(own[name][str(action)]) for action in actions.tolist()}
      total = sum(chances.values())
      policy[-1][name] = {action: float(chance / total) for action, chance in chances.items()}
  found = spiel_cfr.certify(game, policy)
  true = [*found.gains, found.nash_conv, *([] if found.value is None else [found.value])]
  # Probabilities were rounded when they were divided by their sum.
  slack = Fraction(1, 10**9)
  for number, (claim, bounds) in enumerate(zip(content["claims"], true, strict=False)):
    low, high = map(Fraction, claim)
    if not low - slack <= bounds.high or not bounds.low <= high + slack:
      return f"claim {number} says {claim}, and it is in {bounds}"
  return ""


def _claim(content: dict[str, Any], rng: np.random.Generator) -> None:
  claims = content["claims"] or [["0", "1"]]
  number, side = rng.integers(len(claims)), rng.integers(2)
  before = str(claims[number][side])
  # It may be odd by now.
  if re.fullmatch(r"-?\d+\.\d+", before):
    claims[number][side] = str(Fraction(before) + Fraction(float(rng.normal()) / 100))


def _odd_claim(content: dict[str, Any], rng: np.random.Generator) -> None:
  claims = content["claims"] or [["0", "1"]]
  claims[rng.integers(len(claims))][rng.integers(2)] = _NUMBERS[rng.integers(len(_NUMBERS))]


def _other_number_of_claims(content: dict[str, Any], rng: np.random.Generator) -> None:
  claims = content["claims"]
  content["claims"] = claims[: rng.integers(1 + len(claims))] + claims * int(rng.integers(2))


def _probability(content: dict[str, Any], rng: np.random.Generator) -> None:
  infoset = _infoset(content, rng)
  action = str(rng.choice([*infoset, "0"]))
  infoset[action] = (
    _NUMBERS[rng.integers(len(_NUMBERS))] if rng.random() < 0.5 else float(rng.random())
  )


def _lost(content: dict[str, Any], rng: np.random.Generator) -> None:
  infoset = _infoset(content, rng)
  if infoset:
    infoset.pop(str(rng.choice(list(infoset))))


def _exchanged(content: dict[str, Any], rng: np.random.Generator) -> None:
  content["policy"] = [content["policy"][each] for each in rng.permutation(len(content["policy"]))]


def _other_game(content: dict[str, Any], rng: np.random.Generator) -> None:
  games = (*_GAMES, "leduc_poker", "chess(", "", "kuhn_poker()", "matrix_pd")
  content["game"] = str(rng.choice(games))


def _infoset(content: dict[str, Any], rng: np.random.Generator) -> dict[str, Any]:
  own = content["policy"][rng.integers(len(content["policy"]))]
  found: dict[str, Any] = own[str(rng.choice(list(own)))]
  return found


_FORGERIES: tuple[Callable[[dict[str, Any], np.random.Generator], None], ...] = (
  _claim,
  _odd_claim,
  _other_number_of_claims,
  _probability,
  _lost,
  _exchanged,
  _other_game,
)
