"""Search with limited depth: a game solved down to a cut, with the opponent's choice or values for what is below."""

import time
from collections.abc import Sequence
from typing import Literal

import numpy as np

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s
from spiel_cfr._util import arguments
from spiel_cfr._util.doors import typed
from spiel_cfr.evaluation import evaluate
from spiel_cfr.games.compiling import AnyGame
from spiel_cfr.policies import forms, open_spiel
from spiel_cfr.search.cut_outs import Start, SubgameSolver
from spiel_cfr.search.forest_tree import ForestBlueprint
from spiel_cfr.search.gadgets import GADGETS
from spiel_cfr.search.listed_cut_out import Limit, cut_out
from spiel_cfr.search.listed_tree import ListedTree
from spiel_cfr.search.public_state_values import PublicStateValues, solve_above
from spiel_cfr.search.public_states import DEFAULT_MAX_HISTORIES, check_cut, list_histories
from spiel_cfr.search.resolve import Resolved, resolved
from spiel_cfr.search.search_step import step_between
from spiel_cfr.search.search_tree import PublicState

Continuations = Literal["best_responses", "pure"]


@typed
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
    cut: public states, none below another; by default `ListedTree.natural_cut`.
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
  states = cut
  if states is None:
    states = list_histories(game, max_histories).natural_cut()
  states = check_cut(game, states)
  tree: ListedTree = states[0].tree.as_listed()
  start = tree.entries(blueprint)
  if isinstance(continuations, str):
    arguments.one_of(continuations, "continuations", ["best_responses", "pure"])
  elif not len(continuations):
    raise errors.ArgumentError("continuations must be at least one policy.")
  result, steps = start.copy(), []
  for searcher in searchers:
    begin = time.perf_counter()
    before = tree.blueprint(start, searcher)
    if continuations == "best_responses":
      chosen = [start]
      played = _solve_above(tree, before, states, chosen)
      for _ in range(number - 1):
        chosen.append(_best_response(tree, played))
        played = _solve_above(tree, before, states, chosen)
    elif continuations == "pure":
      drawn = [start, *(_drawn(tree, start, rng) for _ in range(number - 1))]
      played = _solve_above(tree, before, states, drawn)
    else:
      played = _solve_above(tree, before, states, [tree.entries(each) for each in continuations])
    mine = tree.owned(searcher)
    result[mine] = played[mine]
    steps.append(step_between(before, before.playing(played), tree[:1], begin, solved=1))
  return resolved(tree, start, result, steps)


def _solve_above(
  tree: ListedTree,
  before: ForestBlueprint,
  cut: Sequence[PublicState],
  continuations: Sequence[Float64s],
) -> Float64s:
  """Returns the policy that is played if the opponent chooses among continuations below a cut."""
  searcher, unsafe = before.searcher, GADGETS["unsafe"]
  mine = tree.owned(searcher)
  begins = {
    state.number: (
      np.ones(len(tree.rows(state.number, 0))),
      np.ones(len(tree.rows(state.number, 1))),
    )
    for state in cut
  }
  reach = [tree.reach(np.where(mine, before.entries, each), begins) for each in continuations]
  start = before.start(0, unsafe)
  assert start is not None
  limit = Limit(np.array([state.number for state in cut]), reach)
  subgame = cut_out(tree.listed, [start], unsafe, limit=limit)
  played = before.entries.copy()
  subgame.write(SubgameSolver("lp").solve(subgame), played, searcher)
  return played


def _drawn(tree: ListedTree, entries: Float64s, rng: np.random.Generator) -> Float64s:
  """Returns a pure strategy at each infoset, drawn by what a policy plays there."""
  # The largest of log probabilities with Gumbel noise is a draw; what is never played is not ruled out altogether.
  scores = np.log(entries + 1e-3) + rng.gumbel(size=len(entries))
  return np.asarray(scores == tree.per_infoset(scores, np.maximum), np.float64)


def _best_response(tree: ListedTree, entries: Float64s) -> Float64s:
  """Returns every player's best response to a policy."""
  sequence_form = forms.sequence_form(tree.game, tree.game.from_actions(entries))
  found = evaluate.evaluate(tree.game, sequence_form, responses=True)
  return tree.game.to_actions(found.best_responses)


@typed
def solve_by_values(
  blueprint: open_spiel.AnyPolicy, values: PublicStateValues, *, iterations: int = 1000
) -> Resolved:
  """Solves a game from its first move to a cut by CFR+, with values for what is below; then what is below, once.

  What is below is solved by the gadget of `"follow"`, whose bounds are the opponent's average values there while CFR
  ran. With exact values the policy comes as close to an equilibrium as one likes; a network's errors promise nothing,
  and the result is measured.

  Args:
    blueprint: a policy of both players, for the parts of the game to which no player plays.
    values: what `learn_values` returns, or `SolvedValues`.
    iterations: the number of iterations.

  Raises:
    PolicyError: the blueprint does not know the game's infosets.
    ArgumentError: `iterations` is not a positive integer.
    NoSolutionError: a linear program was not solved.
  """
  arguments.positive_integer(iterations, "iterations")
  if not isinstance(values, PublicStateValues):
    raise errors.ArgumentError(
      f"values must be what learn_values returns, or SolvedValues, not {arguments.shortened(values)}."
    )
  tree, gadget, solver = values.tree, GADGETS["follow"], SubgameSolver("lp")
  start = tree.entries(blueprint)
  ones = np.ones(tree.num_private_states(0)[0]), np.ones(tree.num_private_states(0)[1])
  above = solve_above(tree[0], ones, values, iterations)
  played = np.where(np.isnan(above.entries), start, above.entries)
  result, steps = played.copy(), []
  for searcher in (0, 1):
    begin, opponent, solved = time.perf_counter(), 1 - searcher, list[Start]()
    before = tree.blueprint(played, searcher)
    for state, bounds in zip(values.states, above.expectations, strict=True):
      # Bounds are no best response values: the policy is the blueprint's below.
      ranges, bound = before.ranges(state.number), bounds[opponent]
      beginning = tree.start(state.number, ranges, searcher, gadget, bound)
      if beginning is not None:
        cut = tree.cut_out([beginning], gadget, program=True)
        cut.write(solver.solve(cut), result, searcher)
        solved.append(beginning)
    after = tree.blueprint(result, searcher)
    step = step_between(
      before,
      after,
      values.states,
      begin,
      solved=len(solved),
      unreached=len(values.states) - len(solved),
      margins=[after.margins(start) for start in solved],
    )
    steps.append(step)
  return resolved(tree, start, result, steps)
