"""Exact evaluation of any policy by `judge`: of a table, a function, a network, an agent, a bot or a solver."""

import weakref

from spiel_cfr import errors
from spiel_cfr._util import arguments
from spiel_cfr.evaluation import evaluate
from spiel_cfr.evaluation.linear_program import solve_lp
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.compiling import AnyGame, compile_game
from spiel_cfr.policies import forms
from spiel_cfr.referee.policy_conversion import Answers, Observes, PolicyLike, to_behavioral_form
from spiel_cfr.referee.verdict import Verdict

# A linear program computes the value of games with at most this many sequences, in about a second.
_MOST_SEQUENCES = 5_000
# The values of games that have been solved.
_VALUES: weakref.WeakKeyDictionary[CompiledGame, float] = weakref.WeakKeyDictionary()


def judge(
  game: AnyGame,
  policy: PolicyLike,
  *,
  observes: Observes = "tensors",
  answers: Answers = "probabilities",
  batch_size: int = 4096,
  value: float | None = None,
) -> Verdict:
  """Returns the exact evaluation of a policy: of a table, a function, a network, an agent, a bot or a solver.

      >>> import numpy as np
      >>> def always_first(tensors, legal_actions):
      ...   return np.eye(legal_actions.shape[1])[legal_actions.argmax(axis=1)]
      >>> judge("kuhn_poker", always_first).nash_conv
      2.0

  A policy can be a function of a batch of infosets of one player, such as a network:

      function(observed, legal_actions) -> a number for each action, shape (rows, actions of the game)

  `legal_actions` is bool, shape (rows, actions of the game). `observes` chooses the first argument.

  Args:
    game: a compiled game, or an argument of `compile_game`. A compiled game caches its tensors between calls.
    policy: such a function; an OpenSpiel policy, in Python or C++; a mapping infostate -> action -> probability; a
      solver or a solution of this library or of OpenSpiel; or a list of these, one for each player. The list may also
      contain agents (`rl_agent`), and bots that provide their policy.
    observes: the first argument of a function. "tensors": float32, shape (rows, length), OpenSpiel's information state
      tensors; for simultaneous moves, those of the simultaneous game. "strings": a list of infostates. "states": a list
      with one state of each infoset.
    answers: the result of a function, an array of NumPy, JAX or PyTorch: "probabilities", or "logits" of a softmax over
      the legal actions.
    batch_size: the largest number of infosets in one call of a function.
    value: the value of the game for player 0, if it is known. The value of a small two-player constant-sum game is
      computed once.

  Raises:
    PolicyError: the policy has no distribution over the legal actions of an infoset, or agents are not in the order of
      players.
    FeaturesError: the game has no information state tensors, or several different ones at one infoset.
    NoStatesError: the policy needs states, and the game was made of arrays.
    ArgumentError: an argument is invalid.
    GameError: see `compile_game`.
  """
  compiled = compile_game(game).original
  probabilities = to_behavioral_form(compiled, policy, observes, answers, batch_size)
  if value is not None:
    value = arguments.real_number(value, "value", *compiled.payoff_range)
    evaluate.check_two_player_constant_sum(compiled)
  elif compiled.is_two_player_constant_sum and compiled.end <= _MOST_SEQUENCES:
    value = _value(compiled)
  evaluation = evaluate.evaluate(compiled, forms.sequence_form(compiled, probabilities))
  return Verdict(
    compiled, probabilities, evaluation.expected_values, evaluation.best_response_values, value
  )


def _value(compiled: CompiledGame) -> float | None:
  """Returns the value of a small game; None if the linear program fails, as it can on payoffs of different sizes."""
  if compiled not in _VALUES:
    try:
      _VALUES[compiled] = solve_lp(compiled).value
    except errors.NoSolutionError:
      return None
  return _VALUES[compiled]
