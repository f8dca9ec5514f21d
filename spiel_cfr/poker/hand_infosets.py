"""The infosets of a poker game in vector form, by the names that OpenSpiel gives them."""

import numpy as np

from spiel_cfr._numba.arrays import Int64s, Uint32s
from spiel_cfr.games.compiled.infosets import Infosets
from spiel_cfr.games.openspiel.game_view import GameView
from spiel_cfr.games.sequence_form.treeplex import FIRST_INFOSET, FIRST_SEQUENCE, STRIDE
from spiel_cfr.poker.boards import Board
from spiel_cfr.poker.deal import NUM_CARDS
from spiel_cfr.poker.hand_layout import Layout


def list_infosets(layout: Layout, view: GameView, player: int) -> Infosets:
  """Lists a player's infosets in the order of the first history of each, as strings."""
  found: list[tuple[tuple[str, ...], tuple[str, ...], int, int, int]] = []
  for number, board in enumerate(layout.boards):
    first_deals = [
      tuple(map(str, first_deal(layout, player, board, hand)))
      for hand in board.hands[player].tolist()
    ]
    for node in layout.decisions(player, number):
      path = tuple(map(str, layout.public_actions(number, node)))
      found.extend((dealt, path, number, node, lane) for lane, dealt in enumerate(first_deals))
  found.sort()
  root = view.new_initial_state()
  infostates = []
  for dealt, path, *_ in found:
    state = root.clone()
    for action in (*dealt, *path):
      state.apply_action(int(action))
    infostates.append(view.infostate(state))
  boards, nodes, lanes = np.array([entry[2:] for entry in found], np.int64).reshape(-1, 3).T
  moves = [layout.nodes[entry[3]].actions for entry in found]
  position, first_sequence, stride = places(layout, player, layout.starts[boards, nodes] + lanes)
  return Infosets(
    infostates=infostates,
    actions=np.array([action for actions in moves for action in actions], np.int64),
    num_actions=np.array([len(actions) for actions in moves], np.int64),
    position=position,
    first_sequence=first_sequence,
    stride=stride,
  )


def places(layout: Layout, player: int, first_sequence: Int64s) -> tuple[Uint32s, Uint32s, Uint32s]:
  """Returns `position`, `first_sequence` and `stride` of `Infosets`, given the first sequence of each infoset.

  An infoset's place in the layout follows from its sequences' place in their group.
  """
  groups = np.concatenate(layout.groups[player]).astype(np.int64)
  starts = groups[:, FIRST_SEQUENCE]
  group = np.searchsorted(starts, first_sequence, side="right") - 1
  laid_out = groups[:, FIRST_INFOSET] - layout.first_infosets[player, 0]
  position = laid_out[group] + first_sequence - starts[group]
  stride = groups[group, STRIDE]
  return position.astype(np.uint32), first_sequence.astype(np.uint32), stride.astype(np.uint32)


def first_deal(layout: Layout, player: int, board: Board, hand: int) -> list[int]:
  """Returns the actions of chance that deal a player this hand and leave the board, first when sorted as strings."""
  deal = layout.deal
  own = deal.hands[hand].tolist()
  gone = {*own, *board.cards}
  if not deal.one_action:
    own.sort(key=str)
    left = sorted(set(range(deal.num_cards)) - gone, key=str)
    other = left[: deal.hand_size]
    return deal.actions(*((own, other) if player == 0 else (other, own)))
  candidates = deal.hands[board.hands[1 - player]]
  others = candidates[~np.isin(candidates, own).any(axis=1)]
  both = [np.broadcast_to(own, others.shape), others]
  digits = np.hstack(both if player == 0 else both[::-1])
  codes = digits @ NUM_CARDS ** np.arange(digits.shape[1])[::-1]
  return [int(min(map(str, codes.tolist()))), *deal.path]
