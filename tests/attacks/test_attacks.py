"""Attacks on everything public: each ends with what is right, or with an error that says what is wrong."""

import os
import re
import signal
import time
import warnings

import numpy as np
import pyspiel
import pytest
from attacks import kinds, odd_games, outcomes, targets
from attacks.outcomes import Attack, judge
from open_spiel.python.algorithms import exploitability

import spiel_cfr
from spiel_cfr import errors

# What is left: methods of compiled games that take arrays in the order of their layout as they are, and NumPy's words
# where a flag is an array.
_LEFT = re.compile("truth value of an (empty )?array")


@pytest.mark.slow
@pytest.mark.parametrize("kind", kinds.KINDS)
def test_nothing_is_wrong(kind):
  found = list(outcomes.outcomes(kinds.attacks_of([kind], seed=0, most=1_000), seconds=25.0))
  assert len(found) > 10
  wrong = [outcome for outcome in found if outcome.verdict == "wrong"]
  assert not [outcome for outcome in wrong if not _LEFT.search(f"{outcome.name} {outcome.why}")]


def _named():
  spiel_cfr.CFRSolver("kuhn_poker").run(-1)


def _bare():
  return str([][1])


def _warns():
  return str(np.float64(1e308) * 10)


def _warns_by_name():
  warnings.warn(errors.DoubtfulGameWarning("really?"), stacklevel=1)
  return ""


@pytest.mark.parametrize(
  ("strike", "verdict", "why"),
  [
    (lambda: "", "right", ""),
    (lambda: "3 is not 4", "wrong", "3 is not 4"),
    (_named, "named", "ArgumentError"),
    (_bare, "wrong", "IndexError"),
    (_warns, "wrong", "overflow"),
    (_warns_by_name, "right", ""),
    (lambda: open("no such folder/file"), "named", "FileNotFoundError"),  # noqa: SIM115
  ],
)
def test_verdicts(strike, verdict, why):
  found, words = judge(Attack("cfr", "an attack", strike))
  assert found == verdict
  assert why in words


def test_a_process_that_dies_or_hangs_is_noted_and_the_next_attack_struck(monkeypatch):
  monkeypatch.setattr(outcomes, "_SECONDS", 0.2)
  monkeypatch.setattr(outcomes, "_WALL_SECONDS", 2.0)

  def loops():
    while True:
      pass

  strikes = [
    lambda: "",
    lambda: os.kill(os.getpid(), signal.SIGKILL),
    loops,
    lambda: time.sleep(60),
    lambda: "",
  ]
  attacks = [Attack("cfr", str(number), strike) for number, strike in enumerate(strikes)]
  found = list(outcomes.outcomes(attacks, 60.0))
  assert [outcome.verdict for outcome in found] == ["right", "wrong", "wrong", "wrong", "right"]
  assert "dies" in found[1].why
  assert "seconds" in found[2].why


def test_the_same_seed_makes_the_same_attacks():
  first, second = (
    [attack[:2] for attack in kinds.attacks_of(["by_type", "scales"], 3, 50)] for _ in range(2)
  )
  assert first == second
  other = [attack[:2] for attack in kinds.attacks_of(["by_type", "scales"], 4, 50)]
  assert first != other


def test_the_table_counts_by_room():
  found = [
    outcomes.Outcome("cfr", "one", "right", ""),
    outcomes.Outcome("cfr", "two", "wrong", "3"),
    outcomes.Outcome("search", "three", "named", "ArgumentError"),
  ]
  assert kinds.table(found).splitlines()[2:] == [
    "| cfr | 2 | 1 | 0 | 1 |",
    "| search | 1 | 0 | 1 | 0 |",
    "| all | 3 | 1 | 1 | 1 |",
  ]


def test_every_public_callable_is_a_target():
  names = {target.name for target in targets.targets()}
  assert {
    "certify",
    "compile_game",
    "exploitation.frontier",
    "poker.bet_sizes",
    "search.Subgame",
    "FullWidthSolver.warm_start",
    "games.compile_private_moves_game",
  } <= names


def test_the_game_without_a_flaw_is_a_game():
  game = odd_games.LyingGame()
  solver = spiel_cfr.CFRSolver(game)
  solver.run(10)
  wanted = exploitability.nash_conv(game, solver.average_policy())
  assert solver.nash_conv() == pytest.approx(wanted, abs=1e-9)


@pytest.mark.parametrize("question", odd_games.QUESTIONS)
def test_flaws_are_asked_for(question):
  """A game played move by move shows its flaw."""
  flaw = odd_games.Flaw(question, "raises", late=False)
  state = odd_games.LyingGame(flaw).new_initial_state()
  with pytest.raises(ZeroDivisionError):
    getattr(state, question)(pyspiel.PlayerId.CHANCE, 0)
