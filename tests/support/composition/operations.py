"""Operations on solvers, with the properties that must hold."""

import copy
import dataclasses
import pathlib
import pickle
import tempfile
from collections.abc import Callable
from typing import Any

import explorer_pages
import numpy as np
import pyspiel
import pytest
from executors import Here
from open_spiel.python import policy as open_spiel_policy
from open_spiel.python.algorithms import exploitability

import spiel_cfr
from composition.forms import Form
from spiel_cfr import Solver, catalogue, stable_predictive
from spiel_cfr import policies as policy_forms
from spiel_cfr.deep_cfr.network import LeastSquares

ITERATIONS = 12
# Rounding of numbers that should be equal, and of numbers that solvers keep in float32.
_ROUNDING = 1e-12
_SINGLE = 1e-6
# Networks are compiled for every shape, which takes seconds a form; tests/deep_cfr has them.
_LEARNS_QUICKLY: dict[str, Any] = {"network": LeastSquares(), "num_traversals": 5}


@dataclasses.dataclass(frozen=True)
class Context:
  """A form and a solver for it.

  Attributes:
    form: the form of the game.
    name: the solver's name in the catalogue.
  """

  form: Form
  name: str

  @property
  def arguments(self) -> dict[str, Any]:
    """The constructor's arguments besides the game."""
    cls = catalogue.SOLVERS[self.name].family
    seed = {"seed": 0} if issubclass(cls, spiel_cfr.mccfr.MonteCarloSolver) else {}
    return {**seed, **(_LEARNS_QUICKLY if cls is spiel_cfr.DeepCFRSolver else {})}

  def solver(self, iterations: int = 0, game: spiel_cfr.CompiledGame | None = None) -> Any:
    """Returns a new solver of the form's game, or of another game, after some iterations."""
    result = catalogue.make(self.name, game or self.form.compiled, ITERATIONS, **self.arguments)
    if iterations:
      result.run(iterations)
    return result

  def close(self, value: float) -> Any:
    """Returns an approximation of a number in the game's units, to the form's tolerance."""
    return pytest.approx(value, abs=self.form.tolerance * self.form.scale)


def _assert_equal(solver: Solver, other: Solver) -> None:
  """Asserts that two solvers are the same, bit for bit."""
  assert type(solver) is type(other)
  assert solver.iteration == other.iteration
  for name in ("current_probabilities", "average_probabilities"):
    found, expected = getattr(solver, name)(), getattr(other, name)()
    assert found.tobytes() == expected.tobytes(), name
  state, expected_state = solver.state_dict(), other.state_dict()
  assert state.keys() == expected_state.keys()
  for name, value in state.items():
    if isinstance(value, np.ndarray):
      assert value.tobytes() == expected_state[name].tobytes(), name
    else:
      assert value == expected_state[name], name


def pieces(context: Context) -> None:
  """A run in pieces equals a run at once, bit for bit."""
  whole = context.solver(ITERATIONS)
  solver = context.solver()
  for count in (1, 4, ITERATIONS - 5):
    solver.run(count)
  _assert_equal(solver, whole)


def policies(context: Context) -> None:
  """Current and average policy agree as behavioral form, sequence form, dictionary and OpenSpiel's two classes."""
  for solver in (context.solver(), context.solver(ITERATIONS)):
    for which in ("current", "average"):
      _check_policy(context, solver, which)


def _check_policy(context: Context, solver: Any, which: str) -> None:
  game = solver.compiled_game
  probabilities = getattr(solver, f"{which}_probabilities")()
  assert probabilities.dtype == np.float64
  assert probabilities.shape == (game.end,)
  rounding = _ROUNDING if context.form.tolerance < _SINGLE else _SINGLE
  for treeplex in game.treeplexes:
    for sequences, _ in treeplex.infoset_groups():
      assert (probabilities[sequences] >= 0).all()
      sums = probabilities[sequences].sum(axis=0)
      np.testing.assert_allclose(sums, 1, atol=rounding)

  sequence_form = getattr(solver, f"{which}_sequence_form")()
  assert sequence_form.dtype in (np.float64, game.dtype)
  assert sequence_form.shape == (game.end,)
  expected = policy_forms.sequence_form(game, probabilities)
  np.testing.assert_allclose(sequence_form, expected, atol=rounding)

  dictionary = getattr(solver, f"{which}_policy_dict")()
  in_python = getattr(solver, f"{which}_policy")()
  in_cpp = getattr(solver, f"tabular_{which}_policy")()
  assert isinstance(in_python, open_spiel_policy.TabularPolicy)
  assert isinstance(in_cpp, pyspiel.TabularPolicy)
  cells = policy_forms.to_dict(game, probabilities)
  assert list(dictionary) == list(in_python.state_lookup) == list(cells)
  assert dictionary == cells
  assert {key: dict(entries) for key, entries in in_cpp.policy_table().items()} == cells
  for key, distribution in cells.items():
    row = in_python.policy_for_key(key)
    assert {action: row[action] for action in distribution} == distribution
    assert sum(row) == pytest.approx(1, abs=rounding)

  # The results are copies.
  probabilities[:] = sequence_form[:] = in_python.action_probability_array[:] = np.nan
  assert np.isfinite(getattr(solver, f"{which}_probabilities")()).all()
  assert np.isfinite(getattr(solver, f"{which}_sequence_form")()).all()
  assert np.isfinite(getattr(solver, f"{which}_policy")().action_probability_array).all()


def nash_conv(context: Context) -> None:
  """NashConv equals that of the same policy in the enumerated game."""
  for solver in (context.solver(), context.solver(1), context.solver(ITERATIONS)):
    by_dict = spiel_cfr.nash_conv(context.form.enumerated, solver.average_policy_dict())
    assert solver.nash_conv() == context.close(by_dict)
    own = spiel_cfr.nash_conv(context.form.compiled, solver.average_policy())
    assert own == context.close(by_dict)
    if context.form.enumerated.is_two_player_constant_sum:
      assert solver.exploitability() == context.close(by_dict / 2)


def iterates(context: Context) -> None:
  """Policies equal those of the solver on the enumerated game (not CFR-BR, RTCFR+, or steps from bounds on losses)."""
  game = context.form.enumerated
  solver, expected = context.solver(), context.solver(game=game)
  for _ in range(3):
    solver.run(ITERATIONS // 3)
    expected.run(ITERATIONS // 3)
    for name in ("current_policy_dict", "average_policy_dict"):
      # In sequence form, because rounding decides at infosets with a tiny reach.
      found, wanted = (
        policy_forms.sequence_form(game, policy_forms.from_policy(game, getattr(each, name)()))
        for each in (solver, expected)
      )
      np.testing.assert_allclose(found, wanted, atol=10 * context.form.tolerance, err_msg=name)


def open_spiel(context: Context) -> None:
  """OpenSpiel's `nash_conv` of the average policy equals the solver's."""
  solver = context.solver(ITERATIONS)
  game = context.form.open_spiel_game
  found = exploitability.nash_conv(game, solver.average_policy(), use_cpp_br=False)
  assert solver.nash_conv() == context.close(found)
  if isinstance(game, pyspiel.Game):
    in_cpp = pyspiel.nash_conv(game, solver.tabular_average_policy())
    assert in_cpp == context.close(found)


def files(context: Context) -> None:
  """A saved solver, restored or loaded, continues bit for bit."""
  whole = context.solver(ITERATIONS)
  stopped = context.solver(5)
  with tempfile.TemporaryDirectory() as folder:
    path = pathlib.Path(folder, "solver.npz")
    stopped.save(path)
    restored = context.solver()
    restored.restore(path)
    loaded = Solver.load(path, context.form.compiled)
    same_class = type(stopped).load(path, context.form.compiled)
  for solver in (stopped, restored, loaded, same_class):
    assert solver.compiled_game is context.form.compiled
    solver.run(ITERATIONS - 5)
    _assert_equal(solver, whole)


def copies(context: Context) -> None:
  """`copy.copy`, `copy.deepcopy` and `pickle` give independent solvers that continue bit for bit."""
  whole = context.solver(ITERATIONS)
  for make in (copy.copy, copy.deepcopy, lambda solver: pickle.loads(pickle.dumps(solver))):
    solver, stopped = context.solver(5), context.solver(5)
    duplicate = make(solver)
    if make in (copy.copy, copy.deepcopy):
      assert duplicate.compiled_game is solver.compiled_game
    assert duplicate.compiled_game.digest == solver.compiled_game.digest
    solver.run(ITERATIONS - 5)
    _assert_equal(duplicate, stopped)
    duplicate.run(ITERATIONS - 5)
    _assert_equal(duplicate, whole)
    _assert_equal(solver, whole)
    duplicate.run(1)
    _assert_equal(solver, whole)


def proof_check(context: Context) -> None:
  """All inequalities of the proof hold, and are the same on the enumerated game."""
  solver = context.solver(ITERATIONS)
  found = stable_predictive.check_proof(solver)
  assert found.iterations == ITERATIONS
  in_game = spiel_cfr.evaluation.evaluate.evaluate(
    solver.compiled_game, solver.average_sequence_form()
  )
  assert found.gap == context.close(in_game.nash_conv)
  assert found.checks
  for check in found.checks:
    assert np.isfinite([check.ratio, check.value, check.bound]).all(), check
    assert check.holds, check
  is_same = context.form.is_vector and not context.form.is_abstraction
  if is_same and _has_the_same_steps(catalogue.SOLVERS[context.name]):
    enumerated = context.solver(ITERATIONS, context.form.enumerated)
    expected = stable_predictive.check_proof(enumerated)
    assert [check.name for check in found.checks] == [check.name for check in expected.checks]
    assert found.gap == context.close(expected.gap)
    assert (found.guarantee is None) == (expected.guarantee is None)


def warm_start(context: Context) -> None:
  """Solvers continue from a policy, from a file and with other payoffs; a policy's weight is equal in all forms."""
  game, enumerated = context.form.compiled, context.form.enumerated
  source = catalogue.make("cfr", enumerated, ITERATIONS)
  source.run(5)
  given = source.average_policy_dict()
  solver, expected = context.solver(3), context.solver(game=enumerated)
  start = solver.warm_start(given)
  assert start.nash_conv == context.close(source.nash_conv())
  assert solver.nash_conv() <= source.nash_conv() + context.form.tolerance * context.form.scale
  assert solver.iteration == start.iterations
  assert start.iterations == pytest.approx(expected.warm_start(given).iterations, rel=0.01, abs=1)
  with tempfile.TemporaryDirectory() as folder:
    path = pathlib.Path(folder, "solver.npz")
    solver.save(path)
    loaded = Solver.load(path, game)
  whole = context.solver()
  whole.warm_start(given)
  for each in (solver, loaded, whole, copy.copy(solver)):
    each.run(ITERATIONS)
  _assert_equal(solver, whole)
  _assert_equal(loaded, whole)
  assert np.isfinite(solver.nash_conv())
  assert type(spiel_cfr.cfr.transfer(solver, game)) is type(solver)


def pruning(context: Context) -> None:
  """Inside a window, NashConv is that of the average's dictionary, and a file continues bit for bit."""
  solver = context.solver()
  minimizer, averaging = (solver._inner_arguments[name] for name in ("minimizer", "averaging"))
  inner = spiel_cfr.FullWidthSolver(context.form.compiled, minimizer.minimizer, averaging=averaging)
  whole, pruned = (spiel_cfr.Pruned(inner, min_window=10) for _ in range(2))
  whole.run(100)
  pruned.run(43)
  by_dict = spiel_cfr.nash_conv(context.form.enumerated, pruned.average_policy_dict())
  assert pruned.nash_conv() == context.close(by_dict)
  with tempfile.TemporaryDirectory() as folder:
    path = pathlib.Path(folder, "solver.npz")
    pruned.save(path)
    loaded = Solver.load(path, context.form.compiled)
  loaded.run(57)
  _assert_equal(loaded, whole)


def explore(context: Context) -> None:
  """The page of the average policy has all infosets, and the values and NashConv of the enumerated game."""
  solver = context.solver(ITERATIONS)
  enumerated, table = context.form.enumerated, solver.average_policy_dict()
  with tempfile.TemporaryDirectory() as folder:
    found = spiel_cfr.explore(solver, pathlib.Path(folder, "page.html"))
    page = explorer_pages.read(found.path)
  assert found.cut == ()
  assert found.num_infosets == enumerated.num_infosets
  values = spiel_cfr.expected_values(enumerated, table)
  assert page["header"]["values"] == [context.close(value) for value in values.tolist()]
  assert page["header"]["nash_conv"] == context.close(spiel_cfr.nash_conv(enumerated, table))
  # The tree's values are computed in another way, and rounded.
  shown = page["tree"]["values"][: len(values)]
  np.testing.assert_allclose(shown, values, rtol=1e-3, atol=1e-4 * context.form.scale)


def sweep(context: Context) -> None:
  """A run of a sweep ends with the same bits, also on a read-only game shared by processes."""
  whole = context.solver(ITERATIONS)
  buffers: list[pickle.PickleBuffer] = []
  head = pickle.dumps(context.form.compiled, 5, buffer_callback=buffers.append)
  read_only = pickle.loads(head, buffers=[bytes(buffer.raw()) for buffer in buffers])
  _assert_equal(context.solver(ITERATIONS, read_only), whole)
  given = {name: [value] for name, value in context.arguments.items()}
  grid = {"game": [context.form.compiled], "solver": [context.name], **given}
  with tempfile.TemporaryDirectory() as folder:
    table = spiel_cfr.sweep(
      grid, folder=folder, iterations=ITERATIONS, executor=Here(), progress=False
    )
    (row,) = table.rows
    assert not row["error"]
    assert row["nash_conv"] == whole.nash_conv()
    solver = table.solver(row, context.form.compiled)
  _assert_equal(solver, whole)


@dataclasses.dataclass(frozen=True)
class Operation:
  """An operation on a solver.

  Attributes:
    name: the operation's name.
    check: runs the operation; raises AssertionError if a property does not hold.
    solvers: returns whether an entry of the catalogue has the operation.
    forms: returns whether a form has the operation.
  """

  name: str
  check: Callable[[Context], None]
  solvers: Callable[[catalogue.SolverEntry], bool] = lambda _: True
  forms: Callable[[Form], bool] = lambda _: True

  def __str__(self) -> str:
    return self.name

  @property
  def summary(self) -> str:
    """The property, as a sentence."""
    assert self.check.__doc__ is not None
    return self.check.__doc__

  def applies(self, form: Form, entry: catalogue.SolverEntry) -> bool:
    """Whether the operation exists for a form and a solver."""
    return self.forms(form) and self.solvers(entry)


def _is_stable_predictive(entry: catalogue.SolverEntry) -> bool:
  return entry.solver is spiel_cfr.StablePredictiveCFRSolver


def _computes_the_same(form: Form) -> bool:
  """Whether the form is a vector form with the infosets of the enumerated game.

  Not in float32, whose rounding decides ties of predicted regrets.
  """
  return form.is_vector and form.tolerance < _SINGLE and not form.is_abstraction


def _has_the_same_steps(entry: catalogue.SolverEntry) -> bool:
  """Whether steps do not depend on bounds on losses, which differ in vector form."""
  return not _is_stable_predictive(entry)


def _has_the_same_iterates(entry: catalogue.SolverEntry) -> bool:
  """Whether the solver has the same steps, and rounding decides nothing.

  Rounding decides between equally good best responses, and at infosets that only trembles of 1e-10 reach.
  """
  decided = spiel_cfr.cfr.CFRBRSolver, spiel_cfr.first_order.RTCFRPlusSolver
  return _has_the_same_steps(entry) and entry.solver not in decided


def _starts_warm(entry: catalogue.SolverEntry) -> bool:
  """Whether the solver is a full-width solver without pruning."""
  return issubclass(
    entry.family, spiel_cfr.FullWidthSolver | spiel_cfr.Restarted
  ) and not _is_pruned(entry)


def _is_pruned(entry: catalogue.SolverEntry) -> bool:
  return entry.family is spiel_cfr.Pruned


OPERATIONS = (
  Operation("run in pieces", pieces),
  Operation("policies", policies),
  Operation("NashConv", nash_conv),
  Operation("iterates", iterates, _has_the_same_iterates, _computes_the_same),
  Operation("OpenSpiel's NashConv", open_spiel),
  Operation("save, restore, load", files),
  Operation("copy, deepcopy, pickle", copies),
  Operation("explore", explore),
  Operation("sweep", sweep),
  Operation(
    "proof check",
    proof_check,
    lambda entry: _is_stable_predictive(entry) and entry.wrapper is None,
  ),
  Operation("warm start, transfer", warm_start, _starts_warm),
  Operation("pruning", pruning, _is_pruned),
)
