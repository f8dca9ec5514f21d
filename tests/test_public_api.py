"""Every numeric argument of the public interface is checked."""

import inspect
import itertools
import math

import public_api
import pytest

import spiel_cfr

_CASES = list(public_api.cases())
# One of these is right for every number.
_RIGHT = (1, 1.0, 500, 0, 4, 20_000, 0.5, math.inf)


def test_objects_of_every_class_can_be_made() -> None:
  for cls in public_api.concrete_classes():
    assert isinstance(public_api.instance(cls), cls)


def test_abstract_classes_are_covered_by_others() -> None:
  for cls in public_api.abstract_classes():
    if public_api.methods_with_numbers(cls):
      assert any(issubclass(other, cls) for other in public_api.concrete_classes()), cls


def test_inspection_finds_all_parameters() -> None:
  names = {case.name for case in _CASES}
  assert {
    "run(seconds)",
    "compile_game(max_nodes)",
    "catalogue.make(iterations)",
    "FullWidthSolver.run(iterations)",
    "ExternalSamplingSolver(seed)",
    "ExternalSamplingSolver(max_infosets)",
    "RegretMatching.discounted(alpha)",
    "Checkpoints(keep)",
    "runs.Powers.__call__(iteration)",
    "poker.PublicGame.memory_estimate(action_lines)",
    "poker.Endgame(starting_stack)",
  } <= names
  for name in spiel_cfr.__all__:
    thing = getattr(spiel_cfr, name)
    if inspect.isclass(thing) and issubclass(thing, spiel_cfr.Solver):
      assert inspect.isabstract(thing) or f"{name}.run(iterations)" in names


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
  "values", [2, pytest.param(len(public_api.BAD), marks=pytest.mark.slow)], ids=["some", "all"]
)
def test_every_number(values: int) -> None:
  """Each parameter is tried with some values, the next parameter with the next values."""
  wrong = {}
  names = itertools.cycle(public_api.BAD)
  for case in _CASES:
    for name in itertools.islice(names, values):
      value = public_api.BAD[name]
      try:
        refused = public_api.refused(case, value)
      except Exception as error:
        wrong[case.name, name] = repr(error)[:200]
      else:
        if not refused and (name in public_api.NEVER or (value is None and not case.may_be_none)):
          wrong[case.name, name] = "accepted"
  assert not wrong


@pytest.mark.slow
def test_valid_arguments_are_accepted() -> None:
  """Otherwise all calls might be refused for another reason."""
  accepted = [
    case for case in _CASES if any(not public_api.refused(case, value) for value in _RIGHT)
  ]
  assert {case.name for case in _CASES} == {case.name for case in accepted}
