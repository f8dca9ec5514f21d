"""Game with a mediator, for the explorer: recommendations are moves of chance, and obedience is a policy.

At each decision the mediator draws a recommendation, given all earlier ones. The player then follows it or takes
another action. A player who deviates gets no further recommendations. From then on, recommendation and action of each
other player are a single move of chance.

A best response to obedient players is therefore the best way to leave the mediator after a recommendation. NashConv is
the sum of the gains from leaving: 0 in an extensive-form correlated equilibrium (von Stengel and Forges 2008,
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
from spiel_cfr.games.openspiel.checked_calls import CHANCE, TERMINAL
from spiel_cfr.policies import forms

# Recommendations with smaller probabilities are rounding errors, and left out.
_NEGLIGIBLE = 1e-12


class _Node(NamedTuple):
  """A history of the game with its mediator.

  Attributes:
    state: the OpenSpiel state of the game without mediator.
    last: tuple of int. The sequence last recommended to each player.
    deviator: the player who has left the mediator, and a description of the point; None if none has.
    recommended: int. The index, among the legal actions, of the recommendation to the player to move; None before it.
  """

  state: Any
  last: tuple[int, ...]
  deviator: tuple[int, str] | None = None
  recommended: int | None = None


class _Writer:
  """Writer of the game in Gambit's extensive form, which OpenSpiel reads.

  Attributes:
    lines: list of str. One line for the game, then one for each history.
    infosets: one dictionary a player. Infostate -> number, and the recommendation there; None for a deviator.
    numbers: dictionary. Word of a player's action -> its number.
  """

  def __init__(self, policy: CorrelatedPolicy) -> None:
    game = policy.compiled_game
    self._policy, self._view, self._namer = policy, game.view, MoveNames(game.game)
    players = " ".join(f'"{player}"' for player in range(game.num_players))
    self.lines = [f'EFG 2 R "" {{ {players} }} ""']
    self.infosets: list[dict[str, tuple[int, str | None]]] = [{} for _ in range(game.num_players)]
    # OpenSpiel numbers words in order of appearance, chance's separately, and sorts moves by number.
    self.numbers: dict[str, int] = {}
    self._chance_numbers: dict[str, int] = {}

  def write(self, node: _Node) -> list[_Node]:
    """Writes the line of a node; returns its children."""
    state = node.state
    player = self._view.mover(state)
    if player == TERMINAL:
      payoffs = " ".join(repr(float(each)) for each in self._view.returns(state))
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
      leaves = player, f"[left when told {recommended}] at {infostate}"
      moves = [
        (word, child if word == recommended else child._replace(deviator=leaves))
        for word, child in zip(words, children, strict=True)
      ]
      return self._decision(player, f"{infostate}\n[told {recommended}]", recommended, moves)
    return self._recommend(node, infostate, words, children)

  def _recommend(
    self, node: _Node, infostate: str, words: list[str], children: list[_Node]
  ) -> list[_Node]:
    """Writes the draw of a recommendation, together with its action if another player has left the mediator."""
    player = node.state.current_player()
    sequences, chances = next_recommendations(self._policy, node.last, player, infostate)
    outcomes = []
    for place, (word, chance) in enumerate(zip(words, chances.tolist(), strict=True)):
      last = (*node.last[:player], int(sequences[place]), *node.last[player + 1 :])
      if node.deviator is None:
        outcomes.append((f"P{player} is told {word}", chance, _Node(node.state, last, None, place)))
      else:
        child = children[place]._replace(last=last)
        outcomes.append((f"P{player} is told {word} and does", chance, child))
    return self._chance(outcomes)

  def _words(self, state: Any, actions: Sequence[int]) -> list[str]:
    """Returns a name for each move; names differ."""
    names = {action: one_line(self._namer.name(state, action)) for action in actions}
    return list(distinct(names).values())

  def _chance(self, moves: list[tuple[str, float, _Node]]) -> list[_Node]:
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
    moves.sort(key=lambda move: self.numbers.setdefault(move[0], len(self.numbers)))
    infosets = self.infosets[player]
    number, _ = infosets.setdefault(infostate, (len(infosets) + 1, recommended))
    words = " ".join(f'"{word}"' for word, _ in moves)
    self.lines.append(f'p "" {player + 1} {number} "{player} {number}" {{ {words} }} 0')
    return [node for _, node in moves]


def with_mediator(policy: CorrelatedPolicy, max_nodes: int) -> tuple[CompiledGame, Float64s]:
  """Returns a game with its mediator, and the policy of players who obey; deviators play a best response.

  Args:
    policy: the distribution of recommendations.
    max_nodes: the most histories of the game with its mediator.

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

  def obey(of_deviators: Float64s) -> Float64s:
    """Returns the policy that obeys, and plays `of_deviators` after a deviation; both in behavioral form."""
    obeys = recommended == np.concatenate(compiled.actions)
    return compiled.from_actions(
      np.where(recommended < 0, compiled.to_actions(of_deviators), obeys)
    )

  obeying = forms.sequence_form(compiled, obey(forms.uniform(compiled)))
  responses = evaluate.evaluate(compiled, obeying, responses=True).best_responses
  return compiled, obey(responses)
