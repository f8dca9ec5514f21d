"""Search that stops before the end: a trunk solved against the opponent's choice among continuations."""

import time
from collections.abc import Sequence
from typing import Literal

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s
from spiel_cfr._util import arguments
from spiel_cfr.evaluation import evaluate
from spiel_cfr.games.compiling import AnyGame
from spiel_cfr.policies import forms, open_spiel
from spiel_cfr.search.gadgets import GADGETS
from spiel_cfr.search.public_states import DEFAULT_MAX_HISTORIES, PublicState, PublicTree, cut_of
from spiel_cfr.search.resolve import Resolved, resolved
from spiel_cfr.search.search_step import Step, solve_subgame
from spiel_cfr.search.standing import Standing
from spiel_cfr.search.subgames import Limit, cut_out

Continuations = Literal["best_responses", "pure"]


def solve_trunk(
  game: AnyGame,
  blueprint: open_spiel.AnyPolicy,
  *,
  cut: Sequence[PublicState] | None = None,
  continuations: Continuations | Sequence[open_spiel.AnyPolicy] = "best_responses",
  number: int = 10,
  player: int | None = None,
  seed: int = 0,
  max_histories: int = DEFAULT_MAX_HISTORIES,
) -> Resolved:
  """Solves a game from its first move to a cut, where each player's opponent chooses how it goes on.

  Below the cut the searcher plays the blueprint, and the opponent, at what it knows there, chooses one of some
  strategies for all of the rest. Solve what is below again with `resolve(game, result.policy, cut=cut)`. With one
  continuation, the blueprint, this ruins even an equilibrium: the opponent could not choose otherwise, so that the
  searcher need not keep it from choosing. No number is safe. Brown, Sandholm and Amos, "Depth-Limited Solving for
  Imperfect-Information Games" (2018).

  Args:
    game: a compiled game, or what `compile_game` takes.
    blueprint: a policy of both players.
    cut: public states, none below another; by default `PublicTree.natural_cut`.
    continuations: "best_responses": the blueprint, then best responses to what the searcher has found with those
      before; "pure": the blueprint, then pure strategies drawn from it; or policies of your own.
    number: how many continuations, the blueprint included; not for your own.
    player: who searches; None for both.
    seed: of what is drawn.
    max_histories: how many histories the game may have.

  Returns:
    The policy: solved above the cut, the blueprint below.

  Raises:
    UnsupportedGameError: the game is not a constant-sum game of two players, or infosets span lengths.
    PolicyError: a policy does not know the game's infosets.
    ArgumentError: an argument is not as above.
    NoSolutionError: a linear program was not solved.
    GameError: see `compile_game`.
  """
  arguments.positive_integer(number, "number")
  rng = np.random.default_rng(arguments.integer(seed, "seed", 0))
  searchers = (0, 1) if player is None else (arguments.integer(player, "player", 0, 1),)
  states = cut_of(game, cut, max_histories)
  tree = states[0].tree
  start = tree.entries(blueprint)
  if isinstance(continuations, str):
    arguments.one_of(continuations, "continuations", ["best_responses", "pure"])
  elif not len(continuations):
    raise errors.ArgumentError("continuations must be at least one policy.")
  result, steps = start.copy(), []
  for searcher in searchers:
    begin = time.perf_counter()
    trunk = _Trunk(tree, start, searcher, states)
    if continuations == "best_responses":
      worth = [trunk.worth(start)]
      played = trunk.solve(worth)
      for _ in range(number - 1):
        worth.append(trunk.worth(_best_response(tree, played)))
        played = trunk.solve(worth)
    elif continuations == "pure":
      drawn = [start, *(_drawn(tree, start, rng) for _ in range(number - 1))]
      played = trunk.solve([trunk.worth(each) for each in drawn])
    else:
      played = trunk.solve([trunk.worth(tree.entries(each)) for each in continuations])
    mine = tree.histories.player_of_entry == searcher
    result[mine] = played[mine]
    before = trunk.standing.opponent_gets
    after = trunk.standing.playing(played).opponent_gets
    seconds = time.perf_counter() - begin
    steps.append(Step(searcher, 0, 1, 0, 0, before - after, before, after, seconds))
  return resolved(tree, start, result, steps)


def _drawn(tree: PublicTree, entries: Float64s, rng: np.random.Generator) -> Float64s:
  """Returns a pure strategy at each infoset, drawn by what a policy plays there."""
  found = tree.histories
  # The largest of log probabilities with Gumbel noise is a draw; what is never played is not ruled out altogether.
  scores = np.log(entries + 1e-3) + rng.gumbel(size=len(entries))
  best = np.maximum.reduceat(scores, found.first_entry)[found.infoset_of_entry]
  result: Float64s = (scores == best).astype(np.float64)
  return result


def _best_response(tree: PublicTree, entries: Float64s) -> Float64s:
  """Returns every player's best response to a policy."""
  sequence_form = forms.sequence_form(tree.game, tree.game.from_actions(entries))
  found = evaluate.evaluate(tree.game, sequence_form, responses=True)
  return tree.game.to_actions(found.best_responses)


class _Trunk:
  """A game from its first move to a cut, for one searcher.

  Attributes:
    standing: what is played before.
  """

  def __init__(
    self, tree: PublicTree, entries: Float64s, searcher: int, cut: Sequence[PublicState]
  ) -> None:
    self.standing = Standing(tree.histories, entries, searcher)
    self._leaves = np.concatenate([state.histories for state in cut])
    roots = self.standing.bounds(tree[0].histories, GADGETS["unsafe"])
    assert roots is not None
    self._roots = roots

  def worth(self, continuation: Float64s) -> Float64s:
    """Returns what player 0 gets from each leaf if the opponent goes on like this, shape (leaves,)."""
    found, entries = self.standing.histories, self.standing.entries
    mine = found.player_of_entry == self.standing.searcher
    result: Float64s = found.values(np.where(mine, entries, continuation))[self._leaves]
    return result

  def solve(self, worth: Sequence[Float64s]) -> Float64s:
    """Returns what is played when the opponent chooses among continuations that are worth so much."""
    limit = Limit(self._leaves, np.array(worth))
    subgame = cut_out(self.standing, self._roots, GADGETS["unsafe"], limit=limit)
    played = self.standing.entries.copy()
    subgame.write(solve_subgame(subgame, "lp", 1), played)
    return played
