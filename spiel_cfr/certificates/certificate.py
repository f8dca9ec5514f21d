"""Certificates of policies: what their players gain by best responses, and the value of the game, for certain."""

import dataclasses
import hashlib
import json
import os
from typing import Any, Literal

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s
from spiel_cfr._util import arguments, files
from spiel_cfr._util.doors import typed
from spiel_cfr.certificates.fixed_point import Interval
from spiel_cfr.certificates.listed_bounds import listed_bounds
from spiel_cfr.certificates.rounded_bounds import is_worth_it, rounded_bounds
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.compiling import AnyGame, compile_game
from spiel_cfr.policies import open_spiel

# What files say that they are.
_KIND = "spiel_cfr certificate 1"
_MOST_NODES = 2_000_000


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Certificate:
  """Exact bounds of what a policy is worth.

  Attributes:
    compiled_game: the game as arrays.
    probabilities: the policy in behavioural form, shape (sequences,). They are floats, each read as the dyadic rational
      that it is; the policy plays them divided by their exact sum at each infoset.
    expected_values: bounds of each player's expected utility.
    best_response_values: bounds of what each player gets by a best response to the others.
    value: bounds of the value of the game for player 0; None unless two players have a constant sum.
    is_rational: whether all payoffs and chance probabilities stand for rationals with small denominators. If not, the
      bounds hold for all numbers that differ from OpenSpiel's by at most 2^-48 of their size.
    arithmetic: "integers" if the game was listed and bounded by integers; "floats" if it is in vector form, and the
      bounds are floating-point numbers widened by a bound on their rounding errors.
  """

  compiled_game: CompiledGame
  probabilities: Float64s
  expected_values: tuple[Interval, ...]
  best_response_values: tuple[Interval, ...]
  value: Interval | None
  is_rational: bool
  arithmetic: Literal["integers", "floats"]

  @property
  def gains(self) -> list[Interval]:
    """Bounds of what each player gains by a best response."""
    pairs = zip(self.best_response_values, self.expected_values, strict=True)
    return [best - expected for best, expected in pairs]

  @property
  def nash_conv(self) -> Interval:
    """Bounds of the sum of all gains."""
    return Interval.total(self.gains)

  def __repr__(self) -> str:
    """Returns one line."""
    value = "" if self.value is None else f", value of the game in {self.value}"
    return f"<Certificate of {self.compiled_game.name}: NashConv in {self.nash_conv}{value}>"

  def save(self, path: str | os.PathLike[str]) -> None:
    """Writes a JSON file that `examples/check_certificate.py` checks without this library.

    Its claims are the bounds of each player's gain, of NashConv, and of the value if there is one.

    Raises:
      UnsupportedGameError: OpenSpiel does not make this game of its string, its numbers are not all rational, or it is
        too large for plain recursion.
      OSError: the file can't be written.
    """
    game = self.compiled_game
    if self.arithmetic == "floats":
      raise errors.UnsupportedGameError(
        f"{game.name} is too large to be checked by plain recursion. Keep the policy, and certify it again."
      )
    if not game.view.is_whole or not self.is_rational:
      raise errors.UnsupportedGameError(
        "The file of a certificate names a game of OpenSpiel's with rational payoffs and chance probabilities. "
        f"{game.name} has other numbers, an action filter, an endgame's deals, or names of infosets of its own."
      )
    claims = [*self.gains, self.nash_conv, *([] if self.value is None else [self.value])]
    content: dict[str, Any] = {
      "kind": _KIND,
      "game": game.game_string,
      "open_spiel": game.open_spiel_version,
      "claims": [claim.decimals() for claim in claims],
      "policy": self._policy(),
      "sha256": "",
    }
    content["sha256"] = hashlib.sha256(_text(content)).hexdigest()
    with files.replacing(path) as file:
      file.write(_text(content))

  def _policy(self) -> list[dict[str, dict[str, float]]]:
    """Returns each player's infostate -> action -> float."""
    game = self.compiled_game
    numbers = iter(game.to_actions(self.probabilities).tolist())
    result = []
    for own in game.infosets:
      actions = map(str, own.actions.tolist())
      result.append(
        {
          infostate: {next(actions): next(numbers) for _ in range(count)}
          for infostate, count in zip(own.infostates, own.num_actions.tolist(), strict=True)
        }
      )
    return result


def _text(content: dict[str, Any]) -> bytes:
  """Returns JSON in the form that is hashed."""
  return json.dumps(content, sort_keys=True, separators=(",", ":")).encode()


@typed
def certify(
  game: AnyGame, policy: open_spiel.AnyPolicy, *, max_nodes: int = _MOST_NODES
) -> Certificate:
  """Bounds NashConv of a policy, and the value of the game, with proof.

      certify("kuhn_poker", spiel_cfr.solve_lp("kuhn_poker")).value  # around -1/18, 1e-15 wide

  The bounds are theorems about the game and the policy, not estimates: see docs/theory/certificates.md. Integers
  rounded outwards leave 10^-24. Games in vector form that are too large to be listed are bounded in floating-point
  numbers with a bound on their rounding errors, which leaves about 10^-9 of the payoffs.

  Args:
    game: a compiled game, or what `compile_game` takes; of any number of players.
    policy: anything that `policies.from_policy` reads, divided by its exact sum at each infoset.
    max_nodes: how many histories are listed; a million takes about twenty seconds.

  Raises:
    GameTooLargeError: the game has more histories, and is not in vector form.
    PolicyError: the policy is not one for this game.
    NoStatesError: the game was made of arrays.
    ArgumentError: `max_nodes` is not a positive integer.
    GameError: see `compile_game`.
  """
  compiled = compile_game(game).original
  max_nodes = arguments.positive_integer(max_nodes, "max_nodes")
  probabilities = open_spiel.from_policy(compiled, policy)
  in_floats = is_worth_it(compiled, max_nodes)
  if in_floats:
    found = rounded_bounds(compiled, probabilities)
  else:
    found = listed_bounds(compiled, compiled.to_actions(probabilities), max_nodes)
  value = None
  if compiled.num_players == 2 and found.constant_sum is not None:
    first, second = found.best_responses
    value = Interval(found.constant_sum.low - second.high, first.high)
  return Certificate(
    compiled,
    probabilities,
    tuple(found.expected),
    tuple(found.best_responses),
    value,
    found.is_rational,
    "floats" if in_floats else "integers",
  )
