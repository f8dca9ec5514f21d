"""Node locking: regret minimization around a fixed part of the policy, against linear programs."""

import copy
import pickle

import numpy as np
import pytest
import random_games
from composition.forms import FORMS
from scipy import optimize, sparse

import spiel_cfr
from spiel_cfr import errors, policies
from spiel_cfr.policies import locked
from spiel_cfr.stable_predictive import check_proof

SOLVERS = {
  "cfr+": spiel_cfr.CFRPlusSolver,
  "pcfr+": spiel_cfr.PCFRPlusSolver,
  "dcfr": spiel_cfr.DCFRSolver,
  "adaptive": spiel_cfr.AdaptiveOptimisticCFRSolver,
}


def constrained_value(compiled, held, probabilities):
  """Returns player 0's value where some infosets of both players have no choice, by a linear program of its own."""
  payoffs = spiel_cfr.evaluation.payoff_matrix(compiled)
  rows, right = [], []
  for player, tree in enumerate(compiled.treeplexes):
    places = {int(s): i for i, s in enumerate(spiel_cfr.evaluation.sequences(compiled, player))}
    matrix = [spiel_cfr.evaluation.constraint_matrix(compiled, player).toarray()]
    for block, infosets in tree.infoset_groups():
      for i in range(block.shape[1]):
        if not held[tree.first_infoset + infosets.start + i]:
          continue
        for sequence in block[:, i]:
          row = np.zeros((1, len(places)))
          row[0, places[int(sequence)]] = 1.0
          row[0, places[int(tree.parent[infosets.start + i])]] -= probabilities[sequence]
          matrix.append(row)
    rows.append(np.vstack(matrix))
    right.append(np.eye(len(rows[-1]))[0])
  own, theirs = rows
  count = own.shape[1]
  found = optimize.linprog(
    np.concatenate([np.zeros(count), -right[1]]),
    A_ub=sparse.hstack([-payoffs.T, theirs.T]),
    b_ub=np.zeros(payoffs.shape[1]),
    A_eq=np.hstack([own, np.zeros((len(own), len(theirs)))]),
    b_eq=right[0],
    bounds=[(0, None)] * count + [(None, None)] * len(theirs),
  )
  assert found.status == 0
  return -found.fun


@pytest.mark.parametrize("name", SOLVERS)
@pytest.mark.parametrize("seed", [None, 2, 5])
def test_free_infosets_are_optimal(name, seed):
  source = "kuhn_poker" if seed is None else random_games.random_game(seed, max_histories=150)
  compiled, rng = spiel_cfr.compile_game(source), np.random.default_rng(0)
  solver = SOLVERS[name](compiled)
  names = rng.choice(
    list(compiled.table_rows), 1 + len(compiled.table_rows) // 3, replace=False
  ).tolist()
  probabilities = policies.behavioral_form(compiled, rng.random(compiled.end))
  part = policies.to_dict(compiled, probabilities)
  solver.lock({key: part[key] for key in names})
  expected = constrained_value(compiled, solver.state.locked, probabilities)
  free = spiel_cfr.solve_lp(compiled).value
  assert abs(expected - free) > 1e-3
  solver.run(3000)
  average = solver.average_policy_dict()
  for key in names:
    assert average[key] == pytest.approx(part[key], abs=1e-9) or not reached(solver, key)
    assert solver.current_policy_dict()[key] == pytest.approx(part[key], abs=1e-15)
  values = spiel_cfr.expected_values(compiled, solver.average_policy())
  low, high = compiled.payoff_range
  assert values[0] == pytest.approx(expected, abs=5e-4 * (high - low))


def test_infosets_are_locked_by_their_sequences():
  game = spiel_cfr.compile_game("leduc_poker")
  probabilities = policies.behavioral_form(game, np.random.default_rng(0).random(game.end))
  infosets, part = game.infosets[1], policies.to_dict(game, probabilities)
  chosen = [3, 50, 200]
  by_name, by_sequence = spiel_cfr.CFRPlusSolver(game), spiel_cfr.CFRPlusSolver(game)
  by_name.lock({infosets.infostates[index]: part[infosets.infostates[index]] for index in chosen})
  # One sequence of an infoset stands for all.
  starts = np.cumsum(infosets.num_actions) - infosets.num_actions
  sequences = infosets.action_sequences[starts[chosen]].astype(np.int64)
  by_sequence.lock(probabilities, sequences)
  for solver in (by_name, by_sequence):
    solver.run(20)
  assert (by_name.state.locked == by_sequence.state.locked).all()
  assert by_name.average_sequence_form() == pytest.approx(by_sequence.average_sequence_form())
  # A solver of the game is a policy, too.
  again = spiel_cfr.CFRPlusSolver(game)
  again.lock(by_sequence, sequences)
  assert again.state.locked.sum() == len(chosen)
  with pytest.raises(errors.ArgumentError, match="are from 0 to"):
    again.lock(probabilities, np.array([game.end]))
  with pytest.raises(errors.PolicyError, match="probabilities sum to 1"):
    again.lock(2 * probabilities, sequences)


def reached(solver, infostate):
  """Whether the average's owner plays to an infoset; where not, the average is uniform."""
  game = solver.compiled_game
  held, _ = locked.locked_part(game, {infostate: game_policy(game)[infostate]})
  sequences = locked.locked_sequences(game, held)
  return solver.average_sequence_form()[sequences].sum() > 0


def game_policy(game):
  return policies.to_dict(game, policies.uniform(game))


@pytest.mark.parametrize("form", [form for form in FORMS if not form.is_large], ids=str)
def test_forms_of_games(form):
  """Results equal those of the enumerated game, also after saving, copying and resetting, in parts and threads."""
  rng = np.random.default_rng(1)
  game = form.compiled
  # Infosets that are one in an abstraction are held together.
  places = np.concatenate(
    [
      tree.first_infoset + own.position.astype(np.int64)
      for tree, own in zip(game.treeplexes, game.infosets, strict=True)
    ]
  )
  chosen = np.isin(places, rng.choice(places, 5, replace=False))
  names = [name for name, held in zip(game.table_rows, chosen, strict=True) if held]
  probabilities = policies.behavioral_form(game, rng.random(game.end))
  part = policies.to_dict(game, probabilities)
  solvers = [spiel_cfr.CFRPlusSolver(game) for game in (form.compiled, form.enumerated)]
  if form.compiled.shared_infosets is not None:
    with pytest.raises(errors.LockError, match="or the full game"):
      solvers[0].lock(part, names)
    return
  for solver in solvers:
    solver.lock(part, names)
    solver.run(5)
  duplicates = [copy.copy(solvers[0]), pickle.loads(pickle.dumps(solvers[0]))]
  anew = copy.copy(solvers[0])
  anew.reset()
  anew.run(5)
  for solver in (*solvers, *duplicates, anew):
    solver.run(10)
    current = solver.current_policy_dict()
    for key in names:
      assert current[key] == pytest.approx(part[key], abs=1e-7)
  states = [each.average_probabilities().tobytes() for each in (solvers[0], *duplicates, anew)]
  assert len(set(states)) == 1
  found, expected = (
    policies.sequence_form(
      form.enumerated, policies.from_policy(form.enumerated, each.average_policy_dict())
    )
    for each in solvers
  )
  np.testing.assert_allclose(found, expected, atol=10 * form.tolerance)


def test_checkpoints_keep_locks(tmp_path):
  solver = spiel_cfr.CFRPlusSolver("kuhn_poker")
  solver.lock({"0": {0: 0.9, 1: 0.1}})
  solver.run(5)
  solver.save(tmp_path / "solver.npz")
  other = spiel_cfr.Solver.load(tmp_path / "solver.npz", "kuhn_poker")
  for each in (solver, other):
    each.run(20)
  assert other.current_policy_dict() == solver.current_policy_dict()
  assert other.current_policy_dict()["0"] == {0: 0.9, 1: 0.1}


def test_restarts_keep_locks():
  solver = spiel_cfr.DCFRSolver("leduc_poker")
  name = next(iter(solver.compiled_game.table_rows))
  part = {name: game_policy(solver.compiled_game)[name]}
  solver.lock(part)
  locked_before, locked_after = (
    spiel_cfr.Restarted(solver),
    spiel_cfr.RestartedCFRSolver("leduc_poker"),
  )
  locked_after.lock(part)
  for restarted in (locked_before, locked_after):
    # Past the first restart.
    restarted.run(600)
    assert restarted.current_policy_dict()[name] == part[name]


@pytest.mark.parametrize(
  "form",
  [form for form in FORMS if form.name in ("leaf rows", "parts, 2 threads", "parts, float32")],
  ids=str,
)
@pytest.mark.parametrize("name", ["cfr+", "pcfr+"])
@pytest.mark.parametrize("way", ["substitute", "proportional"])
def test_warm_starts_keep_locks(form, name, way):
  """A warm start may differ at locked infosets; play and averages do not."""
  game = form.compiled
  solver = spiel_cfr.catalogue.make(name, game, 30)
  if way not in solver.minimizer.warm_forms:
    pytest.skip("there is no such form")
  uniform = game_policy(game)
  key = next(key for key, chances in uniform.items() if len(chances) > 1)
  first, second, *_ = uniform[key]
  part = dict.fromkeys(uniform[key], 0.0) | {first: 0.25, second: 0.75}
  solver.lock({key: part})
  start = solver.warm_start(uniform, 20, way)
  assert start.iterations == 20
  for count in (0, 10):
    if count:
      solver.run(count)
    assert solver.current_policy_dict()[key] == part
    assert solver.average_policy_dict()[key] == pytest.approx(part, abs=form.tolerance)


@pytest.mark.parametrize("name", ["cfr_br", "egt", "external_sampling"])
def test_solvers_that_can_not(name):
  with pytest.raises(errors.LockError, match="CFRPlusSolver"):
    spiel_cfr.catalogue.make(name, "kuhn_poker", 10).lock({"0": {0: 1.0}})


def test_no_proof_check_without_a_theory():
  solver = spiel_cfr.StablePredictiveCFRSolver("kuhn_poker")
  solver.lock({"0": {0: 0.5, 1: 0.5}})
  solver.run(5)
  with pytest.raises(errors.LockError, match="lock nothing"):
    check_proof(solver)


def test_mistakes():
  solver = spiel_cfr.CFRPlusSolver("kuhn_poker")
  for part, names, words in (
    ({"7": {0: 1.0}}, None, "no infostate '7'"),
    ({"0": {0: 0.7}}, None, "sum to 1"),
    ({"0": {0: 1.0}}, ["1"], "no probabilities"),
    ({"0": {0: 1.0}}, [3], "no infostate 3"),
    (solver.average_policy(), None, "Give the infostates"),
  ):
    with pytest.raises(errors.PolicyError, match=words):
      solver.lock(part, names)
  assert not solver.state.locked.any()
  solver.run(1)
  with pytest.raises(errors.LockError, match="before the first iteration"):
    solver.lock({"0": {0: 1.0}})


@pytest.mark.parametrize("wrap", [spiel_cfr.Restarted, spiel_cfr.Pruned])
def test_messages_name_the_solver_that_was_made(wrap):
  solver = wrap(spiel_cfr.CFRPlusSolver("kuhn_poker"))
  assert solver._runtime.solver.recipe.name == wrap.__name__
  solver.run(1)
  with pytest.raises(errors.LockError, match=rf"<{wrap.__name__} of "):
    solver.lock({"0": {0: 1.0}})
