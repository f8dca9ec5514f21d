"""A user's form of game with its own payoffs: a zero-sum matrix that is never listed."""

import hashlib

import numpy as np
import pytest

import spiel_cfr
from spiel_cfr import errors
from spiel_cfr.games import game_from_arrays
from spiel_cfr.games.compiled.game_facts import GameFacts
from spiel_cfr.games.compiled.infosets import Infosets
from spiel_cfr.games.payoffs.payoff import NO_PLAYERS, Payoff, PayoffArrays, gradient_kernel
from spiel_cfr.games.payoffs.utility_bounds import Leaves
from spiel_cfr.games.sequence_form.treeplex import build_treeplex

# Columns of `PayoffArrays.runs`, a row for each player: the sequence of action 0, the distance of the sequences of two
# actions, the number of actions, the empty sequence.
_FIRST, _STRIDE, _ACTIONS, _ROOT = range(4)


@gradient_kernel
def _matrix_gradient(record):
  player, runs = record.player, record.arrays.runs
  first, stride, actions = runs[player, _FIRST], runs[player, _STRIDE], runs[player, _ACTIONS]
  other = np.uint64(1) - player
  others = runs[other, _ACTIONS]
  # The matrices of both players, one after the other; the rows are the player's actions.
  begin = player * actions * others
  for action in range(actions):
    total = 0.0
    for reply in range(others):
      reach = record.sequence_form[runs[other, _FIRST] + reply * runs[other, _STRIDE]]
      total += record.arrays.values[begin + action * others + reply] * reach
    record.utility[first + action * stride] = total
  record.utility[runs[player, _ROOT]] = 0.0


class _Matrix(Payoff):
  form = "matrix"
  gradient = _matrix_gradient

  def __init__(self, payoffs, placements):
    self._payoffs = payoffs, -payoffs.T
    runs = [
      (place.first_sequence[0], place.stride[0], count, place.treeplex.root)
      for place, count in zip(placements, payoffs.shape, strict=True)
    ]
    none = np.zeros(0, np.uint32)
    values = np.concatenate([each.ravel() for each in self._payoffs])
    super().__init__(
      PayoffArrays(NO_PLAYERS, np.array(runs, np.uint64), none, none.reshape(0, 0), values)
    )

  def leaves(self, player):
    payoffs, (own, other) = self._payoffs[player], self.arrays.runs[[player, 1 - player]]
    actions, replies = (each.astype(np.uint64) for each in np.nonzero(payoffs))
    return Leaves(
      (own[_FIRST] + actions * own[_STRIDE]).astype(np.uint32),
      (other[_FIRST] + replies * other[_STRIDE]).astype(np.uint32)[None],
      payoffs[payoffs != 0],
    )


class MatrixGame(spiel_cfr.CompiledGame):
  """A zero-sum matrix game; `payoffs` are those of player 0."""

  def __init__(self, payoffs):
    no_parent, end, placements = np.zeros(1, np.int64), 0, []
    for player, count in enumerate(payoffs.shape):
      placements.append(build_treeplex(no_parent, np.array([count]), end, player))
      end = placements[-1].treeplex.end
    self._payoff = _Matrix(payoffs, placements)
    self._infosets = tuple(
      Infosets(
        [f"player {player}"],
        np.arange(count),
        np.array([count]),
        place.position,
        place.first_sequence,
        place.stride,
      )
      for player, (count, place) in enumerate(zip(payoffs.shape, placements, strict=True))
    )
    self._digest = hashlib.sha256(payoffs.tobytes()).hexdigest()
    most = float(np.abs(payoffs).max())
    num_terminals = payoffs.size
    facts = GameFacts(
      game_string="matrix",
      num_distinct_actions=max(payoffs.shape),
      payoff_range=(-most, most),
      constant_sum=0.0,
      num_states=1 + len(payoffs) + num_terminals,
      num_terminals=num_terminals,
      open_spiel_version=None,
    )
    super().__init__(facts, tuple(place.treeplex for place in placements))

  payoff = property(lambda self: self._payoff)
  infosets = property(lambda self: self._infosets)
  digest = property(lambda self: self._digest)


def _pair():
  payoffs = np.random.default_rng(0).normal(size=(3, 5))
  rows, columns = np.indices(payoffs.shape).reshape(2, -1)
  listed = game_from_arrays([[0], [0]], [[3], [5]], [1 + rows, 1 + columns], payoffs.ravel())
  return MatrixGame(payoffs), listed


def test_solvers_take_a_form_of_a_user():
  game, listed = _pair()
  assert game.num_leaves == listed.num_leaves == 15
  for solver in (
    spiel_cfr.CFRPlusSolver,
    spiel_cfr.RestartedCFRSolver,
    spiel_cfr.StablePredictiveCFRSolver,
  ):
    found, expected = solver(game), solver(listed)
    found.run(50)
    expected.run(50)
    assert found.nash_conv() == pytest.approx(expected.nash_conv(), abs=1e-9)
    assert np.allclose(found.average_sequence_form(), expected.average_sequence_form(), atol=1e-9)
  assert spiel_cfr.solve_lp(game).value == pytest.approx(spiel_cfr.solve_lp(listed).value)
  assert spiel_cfr.solve(game, exploitability=1e-6).exploitability < 1e-6


def test_what_a_form_does_not_have_is_refused():
  game, _ = _pair()
  assert repr(game) == "<MatrixGame matrix: 1 + 1 infosets>"
  for use in (lambda: game.view, lambda: game.save("x.npz")):
    with pytest.raises(errors.UnsupportedGameError):
      use()
