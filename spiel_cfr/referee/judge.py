"""Function `judge`, which evaluates any policy exactly."""

import weakref

from spiel_cfr import errors
from spiel_cfr._util import arguments
from spiel_cfr.evaluation import evaluate
from spiel_cfr.evaluation.linear_program import solve_lp
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.compiling import AnyGame, compile_game
from spiel_cfr.policies import forms
from spiel_cfr.referee.reading import Answers, Anything, Observes, read_anything
from spiel_cfr.referee.verdict import Verdict

# The most sequences of games whose value a linear program computes, in about a second.
_MOST_SEQUENCES = 5_000
_VALUES: weakref.WeakKeyDictionary[CompiledGame, float] = weakref.WeakKeyDictionary()


def judge(
  game: AnyGame,
  policy: Anything,
  *,
  observes: Observes = "tensors",
  answers: Answers = "probabilities",
  batch_size: int = 4096,
  value: float | None = None,
) -> Verdict:
  """Evaluates a policy exactly: a table, a function, a network, a bot or a solver.

      >>> import numpy as np
      >>> def always_first(tensors, legal_actions):
      ...   return np.eye(legal_actions.shape[1])[legal_actions.argmax(axis=1)]
      >>> judge("kuhn_poker", always_first).nash_conv
      2.0

  A function is called with batches of one player's infosets:

      function(observed, legal_actions) -> a number for each action, shape (rows, actions of the game)

  `legal_actions` is bool, shape (rows, actions of the game).

  Args:
    game: a compiled game, or an argument of `compile_game`. A compiled game caches its tensors between calls.
    policy: such a function; an OpenSpiel policy, in Python or C++; a mapping infostate -> action -> probability; a
      solver or a solution, here or of OpenSpiel; or a list of these, one for each player. The list may have `rl_agent`s
      and bots that provide their policy.
    observes: the first argument of a function. "tensors": float32, shape (rows, length), OpenSpiel's information state
      tensors; for simultaneous moves, those of the simultaneous game. "strings": a list of infostates. "states": a list
      with one state of each infoset.
    answers: the result of a function, an array of NumPy, JAX or PyTorch: "probabilities", or "logits" of a softmax over
      the legal actions.
    batch_size: the most rows in a call of a function.
    value: the value of the game for player 0, if you know it. Small two-player constant-sum games are solved for it,
      once.

  Raises:
    PolicyError: an infoset gets no distribution over its legal actions, or agents are not in the order of players.
    FeaturesError: the game has no information state tensors, or several for one infoset.
    NoStatesError: states are needed, and the game was made of arrays.
    ArgumentError: an argument is invalid.
    GameError: see `compile_game`.
  """
  compiled = compile_game(game).original
  probabilities = read_anything(compiled, policy, observes, answers, batch_size)
  if value is not None:
    value = arguments.real_number(value, "value", *compiled.payoff_range)
    evaluate.check_two_player_constant_sum(compiled)
  elif compiled.is_two_player_constant_sum and compiled.end <= _MOST_SEQUENCES:
    value = _value(compiled)
  found = evaluate.evaluate(compiled, forms.sequence_form(compiled, probabilities))
  return Verdict(compiled, probabilities, found.expected_values, found.best_response_values, value)


def _value(compiled: CompiledGame) -> float | None:
  """Returns the value of a small game; None if the linear program fails, as for payoffs of very different sizes."""
  if compiled not in _VALUES:
    try:
      _VALUES[compiled] = solve_lp(compiled).value
    except errors.NoSolutionError:
      return None
  return _VALUES[compiled]
