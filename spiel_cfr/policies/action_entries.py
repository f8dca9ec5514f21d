"""Entries of a policy: the probability of every action of every infoset, end to end, in OpenSpiel's order.

Entries are what any policy is read into: tables and policies of OpenSpiel, mappings, bots. `from_entries` checks them
and returns behavioral form.
"""

import itertools
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import pyspiel
from open_spiel.python import policy as open_spiel_policy

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s
from spiel_cfr._util import arguments
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.policies.bot_calls import bot_distribution
from spiel_cfr.policies.infostate_names import TOLERANCE, names_in_table, tabular_names


def from_entries(compiled: CompiledGame, entries: Float64s) -> Float64s:
  """Returns the behavioral form of entries, shape (sequences,).

  Args:
    compiled: the game.
    entries: shape (actions of all infosets,), the probability of every action of all players, in order of discovery.

  Raises:
    PolicyError: the entries of an infoset are not a distribution, or differ between infosets of one bucket.
  """
  _check_distributions(compiled, entries)
  result = compiled.from_actions(entries)
  differs = np.abs(compiled.to_actions(result) - entries) > TOLERANCE
  if differs.any():
    row = int(compiled.action_cells[0][np.flatnonzero(differs)[0]])
    raise errors.PolicyError(
      f"At infostate {_infostate(compiled, row)!r} the policy differs from that at other infostates of the same "
      "bucket. Read it for the full game, `original`."
    )
  return result


def read_entries(compiled: CompiledGame, policy: Any, player: int) -> Float64s:
  """Returns a player's part of a policy, shape (actions of the player's infosets,), in order of discovery.

  The probabilities of an infoset may still be negative or not sum to 1; `from_entries` checks that.

  Args:
    compiled: the game.
    policy: a policy of OpenSpiel, in Python or C++, a mapping or a bot, see `open_spiel.from_policy`.
    player: the player.

  Raises:
    PolicyError: `policy` is not a policy, or has no numbers for an infoset.
  """
  if isinstance(policy, open_spiel_policy.TabularPolicy):
    return _tabular_entries(compiled, policy, player)
  result: list[float] = []
  actions = iter(compiled.actions[player].tolist())
  for distribution, count, infostate in zip(
    _distributions(compiled, policy, player),
    compiled.num_actions[player].tolist(),
    compiled.infostates[player],
    strict=True,
  ):
    probabilities = _read_distribution(distribution, infostate)
    legal = list(itertools.islice(actions, count))
    result += [probabilities.pop(action, 0.0) for action in legal]
    illegal = sorted(action for action, probability in probabilities.items() if probability)
    if illegal:
      raise errors.PolicyError(
        f"At infostate {infostate!r} the policy plays {illegal}, which are not among the legal actions {legal}; the "
        "game's action filter may have removed them."
      )
  return np.array(result, np.float64)


def _tabular_entries(
  compiled: CompiledGame, policy: open_spiel_policy.TabularPolicy, player: int
) -> Float64s:
  """Returns a player's entries in the array of OpenSpiel's tabular policy, see `read_entries`."""
  array, lookup = policy.action_probability_array, policy.state_lookup
  names = names_in_table(
    compiled,
    player,
    tabular_names(compiled, policy, player),
    lookup,
    lambda name: _read_distribution(enumerate(array[lookup[name]]), name),
  )
  rows = np.array([_look_up(lookup.__getitem__, name) for name in names], np.int64)
  try:
    entries: Float64s = np.asarray(
      array[np.repeat(rows, compiled.num_actions[player]), compiled.actions[player]], np.float64
    )
  except (TypeError, ValueError, IndexError) as error:
    raise errors.PolicyError(
      f"The policy's action_probability_array, of shape {np.shape(array)}, does not have a number "
      f"for each of the {len(rows)} infosets of player {player} and {compiled.num_distinct_actions} actions. "
      "It is for another game."
    ) from error
  return entries


def _distributions(compiled: CompiledGame, policy: Any, player: int) -> Iterable[Any]:
  """Returns what a policy has for each infoset of a player, in order of discovery, unchecked."""
  if isinstance(policy, pyspiel.TabularPolicy):
    # Each call copies the whole table.
    policy = policy.policy_table()
  if isinstance(policy, Mapping):
    names = names_in_table(
      compiled,
      player,
      compiled.infostates[player],
      policy,
      lambda name: _read_distribution(policy[name], name),
    )
    return (_look_up(policy.__getitem__, name) for name in names)
  if isinstance(policy, pyspiel.Policy):
    return (policy.get_state_policy(state) for state in compiled.first_states(player))
  if isinstance(policy, open_spiel_policy.Policy):
    return (policy.action_probabilities(state) for state in compiled.first_states(player))
  if isinstance(policy, pyspiel.Bot) and policy.provides_policy():
    return (bot_distribution(policy, state) for state in compiled.first_states(player))
  raise errors.PolicyError(
    f"{arguments.shortened(policy)} is not a policy. Give an OpenSpiel policy, in Python or C++, a dictionary "
    "infostate -> {action: probability}, a solver, or its result."
  )


def _read_distribution(distribution: Any, infostate: str) -> dict[int, float]:
  """Returns action -> probability for what a policy has for an infoset: a mapping, or a list of pairs."""
  try:
    return {int(action): float(chance) for action, chance in dict(distribution).items()}
  except (TypeError, ValueError, OverflowError):
    raise errors.PolicyError(
      f"At infostate {infostate!r} the policy has {distribution!r} instead of a probability for "
      "each action."
    ) from None


def _look_up(getitem: Callable[[str], Any], infostate: str) -> Any:
  try:
    return getitem(infostate)
  except KeyError:
    raise errors.PolicyError(
      f"The policy has no probabilities for infostate {infostate!r}. It is incomplete, or for "
      "another game."
    ) from None


def _check_distributions(compiled: CompiledGame, entries: Float64s) -> None:
  """Raises PolicyError unless the entries of each infoset are a distribution."""
  counts = np.concatenate(compiled.num_actions)
  if not len(counts):
    return
  starts = np.cumsum(counts) - counts
  # Numbers that are not probabilities become 2, so that no sum with them is 1.
  chances = np.where((entries >= 0) & (entries <= 1 + TOLERANCE), entries, 2.0)
  is_wrong = np.abs(np.add.reduceat(chances, starts) - 1) > TOLERANCE
  if is_wrong.any():
    row = int(np.flatnonzero(is_wrong)[0])
    probabilities = entries[starts[row] : starts[row] + counts[row]].tolist()
    raise errors.PolicyError(
      f"At infostate {_infostate(compiled, row)!r} the policy's probabilities are {probabilities}; they must be "
      "non-negative and sum to 1."
    )


def _infostate(compiled: CompiledGame, row: int) -> str:
  """Returns the information state string of a row, with rows numbered over all players in order of discovery."""
  return next(itertools.islice(itertools.chain(*compiled.infostates), row, None))
