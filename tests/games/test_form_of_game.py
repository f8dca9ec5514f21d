"""A user's form of game with its own payoffs: a zero-sum matrix that is never listed."""

import hashlib
import pickle
from typing import NamedTuple

import numpy as np
import pytest

import spiel_cfr
from spiel_cfr import errors
from spiel_cfr.games import game_from_arrays
from spiel_cfr.games.own_forms import (
  CompiledGame,
  Count,
  DoubleTable,
  GameFacts,
  Indices,
  Infosets,
  Leaves,
  Line,
  Payoff,
  build_treeplexes,
  step,
)
from spiel_cfr.games.payoffs.leaf_rows import LeafRows


class _MatrixGradient(NamedTuple):
  """The arguments of the kernel: the sequences of both players' actions, and the payoffs of each pair of them."""

  root: Count
  own: Indices
  others: Indices
  payoffs: DoubleTable
  sequence_form: Line
  utility: Line


@step(_MatrixGradient)
def _matrix_gradient(record):
  record.utility[record.root] = 0.0
  for action in range(record.own.shape[0]):
    total = 0.0
    for reply in range(record.others.shape[0]):
      total += record.payoffs[action, reply] * record.sequence_form[record.others[reply]]
    record.utility[record.own[action]] = total


class _Matrix(Payoff):
  form = "matrix"

  def __init__(self, payoffs, treeplexes, infosets):
    super().__init__((payoffs, np.ascontiguousarray(-payoffs.T)))
    self._roots = [tree.root for tree in treeplexes]
    self._sequences = [of_player.action_sequences for of_player in infosets]

  def gradient_step(self, player, sequence_form, utility):
    own, others = self._sequences[player], self._sequences[1 - player]
    payoffs, root = self.arrays[player], self._roots[player]
    record = _MatrixGradient(root, own, others, payoffs, sequence_form, utility)
    return _matrix_gradient.on(record, utility.dtype)

  def leaves(self, player):
    payoffs = self.arrays[player]
    actions, replies = np.nonzero(payoffs)
    own, others = self._sequences[player][actions], self._sequences[1 - player][replies]
    return Leaves(own, others[None], payoffs[payoffs != 0])


class MatrixGame(CompiledGame):
  """A zero-sum matrix game; `payoffs` are those of player 0."""

  def __init__(self, payoffs):
    no_parents = [np.zeros(1, np.int64)] * 2
    placements = build_treeplexes(no_parents, [np.array([count]) for count in payoffs.shape])
    self._infosets = tuple(
      Infosets(
        [f"player {player}"],
        np.arange(count),
        np.array([count]),
        place.sequences,
        place.position,
      )
      for player, (count, place) in enumerate(zip(payoffs.shape, placements, strict=True))
    )
    treeplexes = tuple(place.treeplex for place in placements)
    self._payoff = _Matrix(payoffs, treeplexes, self._infosets)
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
    super().__init__(facts, treeplexes)

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


def test_a_listed_game_takes_a_form_of_payoffs_of_a_user(tmp_path):
  _, listed = _pair()
  payoffs = np.random.default_rng(0).normal(size=(3, 5))
  game = listed.with_payoff(_Matrix(payoffs, listed.treeplexes, listed.infosets))
  assert game.digest != listed.digest
  assert game.decisions.payoff.form == "matrix"
  found, expected = spiel_cfr.CFRPlusSolver(game), spiel_cfr.CFRPlusSolver(listed)
  found.run(50)
  expected.run(50)
  assert np.allclose(found.average_sequence_form(), expected.average_sequence_form(), atol=1e-9)
  assert spiel_cfr.nash_conv(listed, found) == pytest.approx(expected.nash_conv(), abs=1e-9)
  assert spiel_cfr.solve_lp(game).value == pytest.approx(spiel_cfr.solve_lp(listed).value)
  with pytest.raises(errors.UnsupportedGameError, match="form 'matrix'"):
    game.save(tmp_path / "game.npz")


def test_iterations_with_payoffs_of_a_user_visit_infosets_of_one_action():
  """Leaves of a user's payoffs are not moved to the sequences above forced moves."""
  payoffs = np.random.default_rng(0).normal(size=(3, 1))
  rows, columns = np.indices(payoffs.shape).reshape(2, -1)
  listed = game_from_arrays([[0], [0]], [[3], [1]], [1 + rows, 1 + columns], payoffs.ravel())
  game = listed.with_payoff(_Matrix(payoffs, listed.treeplexes, listed.infosets))
  solver = spiel_cfr.CFRPlusSolver(game)
  solver.run(50)
  assert solver.average_policy_dict()["0:0"][int(payoffs.argmax())] > 0.9
  assert game.decisions.payoff.form == "matrix"


class _Elsewhere(_Matrix):
  """Leaves at the second of the numbers that a padded infoset has, where it has no action."""

  def leaves(self, player):
    result = super().leaves(player)
    return result._replace(own=result.own + np.uint32(1))


class _Doubled(_Matrix):
  def leaves(self, player):
    result = super().leaves(player)
    return result._replace(values=2.0 * result.values)


@pytest.mark.parametrize(
  ("form", "match"),
  [(_Elsewhere, "no sequence of player 0"), (_Doubled, "the sum over the leaves")],
)
def test_a_gradient_that_is_not_that_of_the_leaves_is_refused(form, match):
  _, listed = _pair()
  payoffs = np.random.default_rng(0).normal(size=(3, 5))
  spiel_cfr.evaluation.check_payoff(
    listed.with_payoff(_Matrix(payoffs, listed.treeplexes, listed.infosets))
  )
  with pytest.raises(errors.ArgumentError, match=match):
    spiel_cfr.evaluation.check_payoff(
      listed.with_payoff(form(payoffs, listed.treeplexes, listed.infosets))
    )


def test_built_in_forms_have_the_gradients_of_their_leaves():
  for game in (
    spiel_cfr.compile_game("kuhn_poker(players=3)"),
    spiel_cfr.games.compile_vector_game("leduc_poker", partitioned=True),
    spiel_cfr.games.compile_private_moves_game("dark_hex(board_size=2)"),
    spiel_cfr.poker.compile_public_game("leduc_poker", dtype="float32"),
  ):
    spiel_cfr.evaluation.check_payoff(game)


def test_replaced_payoffs_take_the_returns_of_states_away():
  """A certificate of the old payoffs was given for the new ones."""
  kuhn = spiel_cfr.compile_game("kuhn_poker", vector_form=False)
  leaves = kuhn.payoff.leaves(0)
  payoffs = np.random.default_rng(0).normal(size=len(leaves.values))
  both = np.stack([payoffs, -payoffs], axis=1)
  built = LeafRows.build(np.stack([leaves.own, *leaves.others]), both, kuhn.treeplexes)
  other = kuhn.with_payoff(built, payoff_range=(-9.0, 9.0))
  policy = spiel_cfr.CFRPlusSolver(other).average_policy_dict()
  for game in (other, pickle.loads(pickle.dumps(other)), other.with_payoff(built)):
    with pytest.raises(errors.NoStatesError, match="with_payoff has replaced the payoffs"):
      spiel_cfr.certify(game, policy)
    with pytest.raises(errors.NoStatesError, match="with_payoff has replaced the payoffs"):
      spiel_cfr.search.resolve(game, policy)
  same = kuhn.with_payoff(built, view=kuhn.view)
  assert spiel_cfr.certify(same, policy).nash_conv


def test_payoffs_of_another_game_are_refused():
  """Kernels do not check their indices: this ended the process."""
  kuhn, leduc = (
    spiel_cfr.compile_game("kuhn_poker", vector_form=False),
    spiel_cfr.compile_game("leduc_poker"),
  )
  with pytest.raises(errors.ArgumentError, match="of another game"):
    kuhn.with_payoff(leduc.payoff)
  for nothing in (None, "x", 5):
    with pytest.raises(errors.ArgumentError, match="payoff must be of type Payoff"):
      kuhn.with_payoff(nothing)
  with pytest.raises(errors.ArgumentError, match="payoff_range"):
    kuhn.with_payoff(kuhn.payoff, payof_range=(0.0, 1.0))


def test_what_a_form_does_not_have_is_refused():
  game, _ = _pair()
  assert repr(game) == "<MatrixGame matrix: 1 + 1 infosets>"
  for name, use in (("view", lambda: game.view), ("save", lambda: game.save("x.npz"))):
    with pytest.raises(errors.UnsupportedGameError, match=f"MatrixGame has no `{name}`"):
      use()
