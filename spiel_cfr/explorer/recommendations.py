"""Games with a mediator, in which recommendations are moves of chance and obedience is a policy; for the explorer.

At each decision the mediator draws a recommendation, given all earlier recommendations. The player then obeys or
deviates to another action. After a deviation, the player gets no further recommendations, and for the other players
recommendation and action are a single move of chance.

A best response to obedient players is therefore the best deviation. NashConv is the sum of the gains from deviations:
0 in an extensive-form correlated equilibrium (von Stengel and Forges 2008, definition 2.2).
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyspiel

from spiel_cfr import errors
from spiel_cfr._numba.arrays import Float64s
from spiel_cfr.correlated.correlated_policy import CorrelatedPolicy, next_recommendations
from spiel_cfr.evaluation import evaluate
from spiel_cfr.exchange.efg import distinct, one_line
from spiel_cfr.explorer.move_names import MoveNames
from spiel_cfr.games.compiled.compiled_game import CompiledGame
from spiel_cfr.games.compiling import compile_game
from spiel_cfr.games.openspiel.checked_calls import CHANCE, TERMINAL
from spiel_cfr.policies import forms

# Recommendations with smaller probabilities are rounding errors, and left out.
_NEGLIGIBLE = 1e-12


class _Node(NamedTuple):
  """History of the game with its mediator.

  Attributes:
    state: OpenSpiel state. The state of the game without mediator.
    last: tuple of int. The sequence last recommended to each player.
    deviator: tuple of int and str. The player who has deviated, and a description of the deviation; None before one.
    recommended: int. The recommendation to the player to move, as an index of the legal actions; None before it.
  """

  state: Any
  last: tuple[int, ...]
  deviator: tuple[int, str] | None = None
  recommended: int | None = None


class _Writer:
  """Writer of the game with its mediator in Gambit's extensive form, which OpenSpiel reads.

  Attributes:
    lines: list of str. One line for the game, then one for each history.
    infosets: one dict from str to tuple a player. For each infostate, its number and the recommendation there; None as
      the recommendation to a deviator.
    numbers: dict from str to int. The number of each name of a player's action.
  """

  def __init__(self, policy: CorrelatedPolicy) -> None:
    game = policy.compiled_game
    self._policy, self._view, self._namer = policy, game.view, MoveNames(game.game)
    players = " ".join(f'"{player}"' for player in range(game.num_players))
    self.lines = [f'EFG 2 R "" {{ {players} }} ""']
    self.infosets: list[dict[str, tuple[int, str | None]]] = [{} for _ in range(game.num_players)]
    # OpenSpiel numbers names of moves in order of appearance, those of chance separately, and sorts moves by number.
    self.numbers: dict[str, int] = {}
    self._chance_numbers: dict[str, int] = {}

  def write(self, node: _Node) -> list[_Node]:
    """Writes the line of a node; returns its children."""
    state = node.state
    player = self._view.mover(state)
    if player == TERMINAL:
      payoffs = " ".join(repr(float(payoff)) for payoff in self._view.returns(state))
      self.lines.append(f't "" {len(self.lines)} "" {{ {payoffs} }}')
      return []
    if player == CHANCE:
      actions, chances = zip(*self._view.chance_outcomes(state), strict=True)
      children = [node._replace(state=self._view.child(state, action)) for action in actions]
      return self._chance(list(zip(self._words(state, actions), chances, children, strict=True)))
    deviator = node.deviator
    infostate, legal = self._view.look_up(state)
    words = self._words(state, legal)
    children = [_Node(self._view.child(state, action), node.last, deviator) for action in legal]
    if deviator is not None and deviator[0] == player:
      moves = list(zip(words, children, strict=True))
      return self._decision(player, f"{infostate}\n{deviator[1]}", None, moves)
    if node.recommended is not None:
      recommended = words[node.recommended]
      deviation = player, f"[left when told {recommended}] at {infostate}"
      moves = [
        (word, child if word == recommended else child._replace(deviator=deviation))
        for word, child in zip(words, children, strict=True)
      ]
      return self._decision(player, f"{infostate}\n[told {recommended}]", recommended, moves)
    return self._recommend(node, infostate, words, children)

  def _recommend(
    self, node: _Node, infostate: str, words: list[str], children: list[_Node]
  ) -> list[_Node]:
    """Writes the mediator's draw of a recommendation; after another player's deviation, with the obedient action."""
    player = node.state.current_player()
    sequences, chances = next_recommendations(self._policy, node.last, player, infostate)
    outcomes = []
    for index, (word, chance) in enumerate(zip(words, chances.tolist(), strict=True)):
      last = (*node.last[:player], int(sequences[index]), *node.last[player + 1 :])
      if node.deviator is None:
        outcomes.append((f"P{player} is told {word}", chance, _Node(node.state, last, None, index)))
      else:
        child = children[index]._replace(last=last)
        outcomes.append((f"P{player} is told {word} and does", chance, child))
    return self._chance(outcomes)

  def _words(self, state: Any, actions: Sequence[int]) -> list[str]:
    """Returns a different name for each move."""
    names = {action: one_line(self._namer.name(state, action)) for action in actions}
    return list(distinct(names).values())

  def _chance(self, moves: list[tuple[str, float, _Node]]) -> list[_Node]:
    """Writes the line of a chance node with moves (name, probability, child); returns the children in its order."""
    numbers = self._chance_numbers
    moves = sorted(
      (move for move in moves if move[1] > _NEGLIGIBLE),
      key=lambda move: numbers.setdefault(move[0], len(numbers)),
    )
    total = sum(chance for _, chance, _ in moves)
    words = " ".join(f'"{word}" {chance / total!r}' for word, chance, _ in moves)
    self.lines.append(f'c "" {len(self.lines)} "" {{ {words} }} 0')
    return [node for _, _, node in moves]

  def _decision(
    self, player: int, infostate: str, recommended: str | None, moves: list[tuple[str, _Node]]
  ) -> list[_Node]:
    """Writes the line of a decision with moves (name, child); returns the children in its order."""
    moves.sort(key=lambda move: self.numbers.setdefault(move[0], len(self.numbers)))
    infosets = self.infosets[player]
    number, _ = infosets.setdefault(infostate, (len(infosets) + 1, recommended))
    words = " ".join(f'"{word}"' for word, _ in moves)
    self.lines.append(f'p "" {player + 1} {number} "{player} {number}" {{ {words} }} 0')
    return [node for _, node in moves]


def game_with_mediator(policy: CorrelatedPolicy, max_nodes: int) -> tuple[CompiledGame, Float64s]:
  """Returns a game with its mediator, and the policy of players who obey, and who play a best response after deviating.

  Args:
    policy: the distribution of recommendations.
    max_nodes: the largest number of histories that the game with its mediator may have.

  Returns:
    The game, and the policy in behavioral form, shape (sequences,).

  Raises:
    GameTooLargeError: the game with its mediator has more than `max_nodes` histories.
    NoStatesError: the game has no states.
  """
  game, writer = policy.compiled_game, _Writer(policy)
  stack = [_Node(game.view.new_initial_state(), tuple(tree.root for tree in game.treeplexes))]
  while stack:
    stack += reversed(writer.write(stack.pop()))
    if len(writer.lines) > max_nodes:
      raise errors.GameTooLargeError(
        f"{game} has more than max_nodes={max_nodes:,} histories with its mediator, which adds one for each way to "
        "leave it. Raise max_nodes."
      )
  names = [list(infosets) for infosets in writer.infosets]

  def infostate(state: Any, player: int) -> str:
    """Returns the infostate of the game with its mediator, given OpenSpiel's state of the written game."""
    # The third part of OpenSpiel's string is the number of the infoset.
    return names[player][int(state.information_state_string().split("-")[2]) - 1]

  efg = pyspiel.load_efg_game("\n".join(writer.lines) + "\n")
  compiled = compile_game(efg, max_nodes=max_nodes, vector_form=False, infostate=infostate)
  words = [
    infosets[name][1]
    for infosets, infostates in zip(writer.infosets, compiled.infostates, strict=True)
    for name in infostates
  ]
  numbers = [-1 if word is None else writer.numbers[word] for word in words]
  recommended = np.repeat(numbers, np.concatenate(compiled.num_actions))

  def obey(after_deviation: Float64s) -> Float64s:
    """Returns the policy that obeys, and plays `after_deviation` after its deviation; both in behavioral form."""
    is_recommended = recommended == np.concatenate(compiled.actions)
    return compiled.from_actions(
      np.where(recommended < 0, compiled.to_actions(after_deviation), is_recommended)
    )

  obeying = forms.sequence_form(compiled, obey(forms.uniform(compiled)))
  responses = evaluate.evaluate(compiled, obeying, responses=True).best_responses
  return compiled, obey(responses)
