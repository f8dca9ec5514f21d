"""Lists of what is kept are what one finds sequence by sequence."""

import numpy as np
import pytest
import random_games
from pruning_games import GAMES, game_of

import spiel_cfr
from spiel_cfr.cfr.pruning.kept import NOWHERE, find_kept


def above(game):
  """Each sequence's infoset, and that infoset's sequence above, as iterations see them."""
  infoset, parent = {}, {}
  decisions = game.decisions
  for first, stride, count, actions, start, _ in decisions.groups.tolist():
    for i in range(count):
      parent[start + i] = int(decisions.parent[start + i])
      for action in range(actions):
        infoset[first + action * stride + i] = start + i
  return infoset, parent


def check(game, pruned):
  infoset, parent = above(game)
  roots = [tree.root for tree in game.treeplexes]

  def is_kept(sequence):
    if sequence in roots:
      return True
    return not pruned[sequence] and is_kept(parent[infoset[sequence]])

  kept = find_kept(game, pruned)
  expected = [row for row in sorted([*roots, *infoset]) if is_kept(row)]
  assert kept.sequences.tolist() == expected
  assert sorted(np.flatnonzero(kept.place != NOWHERE).tolist()) == expected
  assert kept.place[kept.sequences].tolist() == list(range(len(expected)))
  assert kept.infosets.tolist() == [j for j in sorted(parent) if is_kept(parent[j])]
  assert kept.sequences[kept.above].tolist() == [parent[j] for j in kept.infosets.tolist()]
  cut = [row for row in sorted(infoset) if pruned[row] and is_kept(parent[infoset[row]])]
  assert kept.cut.tolist() == cut
  assert kept.infosets[kept.cut_owner].tolist() == [infoset[row] for row in cut]
  own = kept.place[[row for row in expected if row not in roots]]
  assert kept.infosets[kept.owner[own]].tolist() == [
    infoset[row] for row in expected if row in infoset
  ]
  for (first, stride, count, actions, start, _), lists in zip(
    game.decisions.groups.tolist(), kept.groups.tolist(), strict=True
  ):
    rows = range(first, first + (actions - 1) * stride + count)
    for numbers, begin, end, there in (
      (kept.sequences, *lists[:2], rows),
      (kept.infosets, *lists[2:4], range(start, start + count)),
      (kept.cut, *lists[4:], rows),
    ):
      some = [number for number in numbers.tolist() if number in there]
      assert numbers[begin:end].tolist() == some
  return len(cut)


@pytest.mark.parametrize("name", GAMES)
def test_lists_are_what_is_found_sequence_by_sequence(name):
  game, rng, cut = game_of(name), np.random.default_rng(4), 0
  for share in (0.0, 0.05, 0.4, 1.0):
    cut += check(game, rng.random(game.end) < share)
  assert cut


@pytest.mark.parametrize("seed", [0, 1, 3])
def test_of_three_players_too(seed):
  game = spiel_cfr.compile_game(random_games.random_game(seed, num_players=3, max_histories=120))
  rng = np.random.default_rng(seed)
  for share in (0.0, 0.2):
    check(game, rng.random(game.end) < share)
