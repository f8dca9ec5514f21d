"""Certificates of policies: proven bounds on the gains of best responses, and on the value of the game."""

import dataclasses
import hashlib
import json
import os
from typing import Any, Literal

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s
from spiel_cfr._util import arguments, files
from spiel_cfr._util.typed_arguments import typed
from spiel_cfr.certificates.fixed_point import Interval
from spiel_cfr.certificates.listed_bounds import listed_bounds
from spiel_cfr.certificates.rounded_bounds import needs_floats, rounded_bounds
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.compiling import AnyGame, compile_game
from spiel_cfr.policies import open_spiel

# The kind and version in a certificate's file.
_KIND = "spiel_cfr certificate 1"
_MOST_NODES = 2_000_000


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Certificate:
  """Proven bounds on the values of a policy.

  Attributes:
    compiled_game: `CompiledGame`. The game.
    probabilities: float64 (sequences,). The policy in behavioral form. Each float is taken as an exact dyadic
      rational; the policy divides them by their exact sum at each infoset.
    expected_values: one `Interval` a player. Bounds on its expected payoff.
    best_response_values: one `Interval` a player. Bounds on the value of its best response to the others.
    value: `Interval`. Bounds on the value of the game for player 0; None unless the game is two-player constant-sum.
    is_rational: bool. True if all payoffs and chance probabilities stand for rationals with small denominators. If
      False, the bounds hold for all numbers that differ from OpenSpiel's by at most 2^-48 of their size. Always False
      if `arithmetic` is "floats".
    arithmetic: "integers" or "floats". Integers are used on a list of histories. Floating-point bounds are widened by a
      bound on their rounding errors.
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
    """Bounds on each player's gain by a best response."""
    pairs = zip(self.best_response_values, self.expected_values, strict=True)
    return [best - expected for best, expected in pairs]

  @property
  def nash_conv(self) -> Interval:
    """Bounds on the sum of all gains."""
    return Interval.total(self.gains)

  def __repr__(self) -> str:
    """Returns the bounds on NashConv and on the value, on one line."""
    value = "" if self.value is None else f", value of the game in {self.value}"
    return f"<Certificate of {self.compiled_game.name}: NashConv in {self.nash_conv}{value}>"

  def save(self, path: str | os.PathLike[str]) -> None:
    """Writes a JSON file that `examples/check_certificate.py` checks without this library.

    The file claims bounds on each player's gain, on NashConv, and on the value of a two-player constant-sum game.

    Raises:
      UnsupportedGameError: OpenSpiel's string does not describe the whole game, not all of its numbers are rational,
        or it is too large to be checked history by history.
      OSError: the file can't be written.
    """
    game = self.compiled_game
    if self.arithmetic == "floats":
      raise errors.UnsupportedGameError(
        f"{game.name} is too large to be checked history by history. Save the policy, and certify it again."
      )
    if not game.view.is_whole or not self.is_rational:
      raise errors.UnsupportedGameError(
        "The file of a certificate needs a game that OpenSpiel's string describes, with rational payoffs and chance "
        f"probabilities. {game.name} has other numbers, an action filter, an endgame's deals, or infosets of its own. "
        "Save the policy, and certify it again."
      )
    claims = [*self.gains, self.nash_conv, *([] if self.value is None else [self.value])]
    content: dict[str, Any] = {
      "kind": _KIND,
      "game": game.game_string,
      "open_spiel": game.open_spiel_version,
      "claims": [claim.widened().decimals() for claim in claims],
      "policy": self._policy(),
      "sha256": "",
    }
    content["sha256"] = hashlib.sha256(_text(content)).hexdigest()
    with files.replacing(path) as file:
      file.write(_text(content))

  def _policy(self) -> list[dict[str, dict[str, float]]]:
    """Returns, for each player, the probabilities by infostate and action."""
    game = self.compiled_game
    numbers = iter(game.to_actions(self.probabilities).tolist())
    result = []
    for infosets in game.infosets:
      actions = map(str, infosets.actions.tolist())
      counts = zip(infosets.infostates, infosets.num_actions.tolist(), strict=True)
      result.append(
        {
          infostate: {next(actions): next(numbers) for _ in range(count)}
          for infostate, count in counts
        }
      )
    return result


def _text(content: dict[str, Any]) -> bytes:
  """Returns JSON without spaces and with sorted keys, which is hashed."""
  return json.dumps(content, sort_keys=True, separators=(",", ":")).encode()


@typed
def certify(
  game: AnyGame, policy: open_spiel.AnyPolicy, *, max_nodes: int = _MOST_NODES
) -> Certificate:
  """Returns proven bounds on NashConv of a policy, and on the value of the game.

      certify("kuhn_poker", spiel_cfr.solve_lp("kuhn_poker")).value  # around -1/18, 1e-15 wide

  docs/theory/certificates.md has the proof. Bounds in integers are about 10^-24 wide. A game with too many histories
  gets floating-point bounds, widened by a bound on rounding errors: about 10^-9 of the payoffs.

  Args:
    game: a compiled game, or an argument of `compile_game`; any number of players.
    policy: anything that `policies.from_policy` reads. It is divided by its exact sum at each infoset.
    max_nodes: the largest number of histories that are listed; a million takes about twenty seconds.

  Raises:
    PolicyError: the policy is not a policy of this game.
    NoStatesError: the game was made of arrays.
    UnsupportedGameError: the game has too many histories, and computes in float32 or with a user's form of payoffs.
    InvalidPayoffError: the game has too many histories, and payoffs that are too large or too small for floats.
    ArgumentError: `max_nodes` is not a positive integer.
    GameError: see `compile_game`.
  """
  compiled = compile_game(game).original
  max_nodes = arguments.positive_integer(max_nodes, "max_nodes")
  probabilities = open_spiel.from_policy(compiled, policy)
  in_floats = needs_floats(compiled, max_nodes)
  if in_floats and not arguments.is_built_in(compiled.payoff):
    raise errors.UnsupportedGameError(
      f"The rounding errors of {type(compiled.payoff).__name__} have no proven bound, and {compiled.name} has more "
      f"than max_nodes={max_nodes:,} histories: raise max_nodes."
    )
  if in_floats:
    bounds = rounded_bounds(compiled, probabilities)
  else:
    bounds = listed_bounds(compiled, compiled.to_actions(probabilities), max_nodes)
  value = None
  if compiled.num_players == 2 and bounds.constant_sum is not None:
    first, second = bounds.best_responses
    value = Interval(bounds.constant_sum.low - second.high, first.high)
    if value.low > value.high:
      raise errors.UnsupportedGameError(
        f"The payoffs of {compiled.name} don't sum to its constant_sum, {compiled.constant_sum:zg}: compile it again."
      )
  return Certificate(
    compiled,
    probabilities,
    tuple(bounds.expected),
    tuple(bounds.best_responses),
    value,
    bounds.is_rational,
    "floats" if in_floats else "integers",
  )
