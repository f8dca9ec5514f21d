"""The call that evaluates any policy."""

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

# So many sequences, all players' together, a linear program does in about a second.
_FEW = 5_000
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

  A function is asked about the infosets of one player at a time, in batches:

      function(observed, legal_actions) -> a number for each action, shape (rows, actions of the game)

  Args:
    game: a compiled game, or what `compile_game` takes. Compile it once: it keeps what is seen of its infosets.
    policy: such a function; OpenSpiel's policies, in Python or C++; a mapping from infostates to action -> probability;
      a solver or a solution, here or of OpenSpiel; or a list of such things, `rl_agent`s or bots that provide their
      policy among them, one for each player.
    observes: what a function gets: float32 "tensors", shape (rows, length), which are OpenSpiel's information state
      tensors, where moves are simultaneous those of the simultaneous game; infostate "strings", in a list; or
      "states", one of each infoset, in a list. The second argument is bool, shape (rows, actions of the game).
    answers: what a function returns: "probabilities", or "logits" of a softmax over the legal actions. As an array of
      NumPy, JAX or PyTorch.
    batch_size: the most rows that a function gets.
    value: what the game is worth to player 0, if it is known; small constant-sum games of two players are solved for
      it, once.

  Raises:
    PolicyError: some infoset gets no distribution over its legal actions, or agents are in another order than players.
    FeaturesError: the game has no information state tensors, or several for one infoset.
    NoStatesError: states are needed, and the game was made of arrays.
    ArgumentError: an argument makes no sense.
    GameError: see `compile_game`.
  """
  compiled = compile_game(game).original
  probabilities = read_anything(compiled, policy, observes, answers, batch_size)
  if value is not None:
    value = arguments.real_number(value, "value", *compiled.payoff_range)
    evaluate.check_two_player_constant_sum(compiled)
  elif compiled.is_two_player_constant_sum and compiled.end <= _FEW:
    value = _value(compiled)
  found = evaluate.evaluate(compiled, forms.sequence_form(compiled, probabilities))
  return Verdict(compiled, probabilities, found.expected_values, found.best_response_values, value)


def _value(compiled: CompiledGame) -> float | None:
  """Returns the value of a small game, or None where its payoffs are too different for a linear program."""
  if compiled not in _VALUES:
    try:
      _VALUES[compiled] = solve_lp(compiled).value
    except errors.NoSolutionError:
      return None
  return _VALUES[compiled]
