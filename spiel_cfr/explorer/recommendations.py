"""A game with a mediator in it, for the explorer: recommendations are moves, and obedience is a policy.

At each decision the mediator draws a recommendation as a move of chance, given all earlier ones; then the player
follows it, or takes another action. A player who has taken another action gets no more recommendations. For the other
players the recommendation and the action then become one move of chance.

So a best response to players who obey is the best way to leave the mediator, having seen its recommendation, and
NashConv is the players' gain from leaving: 0 in an extensive-form correlated equilibrium (von Stengel and Forges 2008,
definition 2.2).
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
from spiel_cfr.games.openspiel.answers import CHANCE, TERMINAL
from spiel_cfr.policies import forms

# Recommendations of a smaller probability are rounding.
_NEVER = 1e-12


class _Node(NamedTuple):
  """A history of the game with its mediator.

  Attributes:
    state: of the game without it.
    told: the last sequence that each player was told.
    left: who has left the mediator, and when; None if nobody has.
    order: where the action that the player to move is told is among the legal ones; None if it is not told yet.
  """

  state: Any
  told: tuple[int, ...]
  left: tuple[int, str] | None = None
  order: int | None = None


class _Writer:
  """Writes the game in Gambit's extensive form, which OpenSpiel reads.

  Attributes:
    lines: one for the game, then one for each history.
    infosets: of each player, their numbers and what the player is told there, None if it has left.
    numbers: of the words for players' actions.
  """

  def __init__(self, policy: CorrelatedPolicy) -> None:
    game = policy.compiled_game
    self._policy, self._view, self._namer = policy, game.view, MoveNames(game.game)
    players = " ".join(f'"{player}"' for player in range(game.num_players))
    self.lines = [f'EFG 2 R "" {{ {players} }} ""']
    self.infosets: list[dict[str, tuple[int, str | None]]] = [{} for _ in range(game.num_players)]
    # OpenSpiel numbers words in the order in which it meets them, those of chance apart, and sorts moves by that.
    self.numbers: dict[str, int] = {}
    self._chance_numbers: dict[str, int] = {}

  def write(self, node: _Node) -> list[_Node]:
    """Writes a line; returns the nodes that follow."""
    state = node.state
    player = self._view.mover(state)
    if player == TERMINAL:
      paid = " ".join(repr(float(each)) for each in self._view.returns(state))
      self.lines.append(f't "" {len(self.lines)} "" {{ {paid} }}')
      return []
    if player == CHANCE:
      actions, often = zip(*self._view.chance_outcomes(state), strict=True)
      after = [node._replace(state=self._view.child(state, action)) for action in actions]
      return self._chance(list(zip(self._words(state, actions), often, after, strict=True)))
    left = node.left
    infostate, legal = self._view.look_up(state)
    words = self._words(state, legal)
    after = [_Node(self._view.child(state, action), node.told, left) for action in legal]
    if left is not None and left[0] == player:
      moves = list(zip(words, after, strict=True))
      return self._decision(player, f"{infostate}\n{left[1]}", None, moves)
    if node.order is not None:
      order = words[node.order]
      when = player, f"[left when told {order}] at {infostate}"
      moves = [
        (word, child if word == order else child._replace(left=when))
        for word, child in zip(words, after, strict=True)
      ]
      return self._decision(player, f"{infostate}\n[told {order}]", order, moves)
    sequences, chances = next_recommendations(self._policy, node.told, player, infostate)
    drawn = []
    for place, (word, often) in enumerate(zip(words, chances.tolist(), strict=True)):
      told = (*node.told[:player], int(sequences[place]), *node.told[player + 1 :])
      if left is None:
        drawn.append((f"P{player} is told {word}", often, _Node(state, told, None, place)))
      else:
        drawn.append(
          (f"P{player} is told {word} and does", often, after[place]._replace(told=told))
        )
    return self._chance(drawn)

  def _words(self, state: Any, actions: Sequence[int]) -> list[str]:
    """Returns a name of each move, no two alike."""
    names = {action: one_line(self._namer.name(state, action)) for action in actions}
    return list(distinct(names).values())

  def _chance(self, moves: list[tuple[str, float, _Node]]) -> list[_Node]:
    numbers = self._chance_numbers
    moves = sorted(
      (move for move in moves if move[1] > _NEVER),
      key=lambda move: numbers.setdefault(move[0], len(numbers)),
    )
    total = sum(often for _, often, _ in moves)
    words = " ".join(f'"{word}" {often / total!r}' for word, often, _ in moves)
    self.lines.append(f'c "" {len(self.lines)} "" {{ {words} }} 0')
    return [node for _, _, node in moves]

  def _decision(
    self, player: int, infostate: str, order: str | None, moves: list[tuple[str, _Node]]
  ) -> list[_Node]:
    moves.sort(key=lambda move: self.numbers.setdefault(move[0], len(self.numbers)))
    own = self.infosets[player]
    number, _ = own.setdefault(infostate, (len(own) + 1, order))
    words = " ".join(f'"{word}"' for word, _ in moves)
    self.lines.append(f'p "" {player + 1} {number} "{player} {number}" {{ {words} }} 0')
    return [node for _, node in moves]


def with_mediator(policy: CorrelatedPolicy, max_nodes: int) -> tuple[CompiledGame, Float64s]:
  """Returns a game with its mediator, and a policy: to obey, and a best response for whoever has left.

  Args:
    policy: what is recommended.
    max_nodes: how many histories the game may have with the mediator.

  Returns:
    The game, and the policy in behavioural form, shape (sequences,).

  Raises:
    GameTooLargeError: it has more.
    NoStatesError: the game has no states.
  """
  game, writer = policy.compiled_game, _Writer(policy)
  stack = [_Node(game.view.new_initial_state(), tuple(tree.root for tree in game.treeplexes))]
  while stack:
    stack += reversed(writer.write(stack.pop()))
    if len(writer.lines) > max_nodes:
      raise errors.GameTooLargeError(
        f"{game} has more than max_nodes={max_nodes:,} histories with its mediator: one for each way to leave it."
      )
  names = [list(own) for own in writer.infosets]

  def infostate(state: Any, player: int) -> str:
    # OpenSpiel's has the number of the infoset in the third place.
    return names[player][int(state.information_state_string().split("-")[2]) - 1]

  efg = pyspiel.load_efg_game("\n".join(writer.lines) + "\n")
  compiled = compile_game(efg, max_nodes=max_nodes, vector_form=False, infostate=infostate)
  orders = [
    own[name][1]
    for own, infostates in zip(writer.infosets, compiled.infostates, strict=True)
    for name in infostates
  ]
  numbers = [-1 if order is None else writer.numbers[order] for order in orders]
  told = np.repeat(numbers, np.concatenate(compiled.num_actions))

  def with_the_others(behavioral: Float64s) -> Float64s:
    entries = np.where(
      told < 0, compiled.to_actions(behavioral), told == np.concatenate(compiled.actions)
    )
    return compiled.from_actions(entries)

  obeying = forms.sequence_form(compiled, with_the_others(forms.uniform(compiled)))
  found = evaluate.evaluate(compiled, obeying, responses=True).best_responses
  return compiled, with_the_others(found)
