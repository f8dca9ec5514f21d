"""Games written down as trees, which become games of arrays, or text that OpenSpiel reads.

A node is a list of payoffs, one for each player; `("chance", (probability, node), ...)`; or `(player, infoset, node,
...)` with a node for each action. Players count from 0, and an infoset's name is its player's own.
"""

from typing import Any

from spiel_cfr.games import game_from_arrays


def arrays(tree: Any, num_players: int = 2) -> Any:
  """Returns the compiled game; player p's infoset x is called "p:x"."""
  infosets: list[dict[str, int]] = [{} for _ in range(num_players)]
  parents: list[list[int]] = [[] for _ in range(num_players)]
  counts: list[list[int]] = [[] for _ in range(num_players)]
  ends, payoffs = [], []
  stack: list[tuple[Any, list[int], float]] = [(tree, [0] * num_players, 1.0)]
  while stack:
    node, last, reach = stack.pop()
    if isinstance(node, list):
      ends.append(last)
      payoffs.append([reach * payoff for payoff in node])
    elif node[0] == "chance":
      stack += [(child, last, reach * chance) for chance, child in node[1:]]
    else:
      player, name, *children = node
      known = infosets[player]
      if name not in known:
        known[name] = 1 + sum(counts[player])
        parents[player].append(last[player])
        counts[player].append(len(children))
      for action, child in enumerate(children):
        below = [*last]
        below[player] = known[name] + action
        stack.append((child, below, reach))
  names = [[f"{player}:{name}" for name in own] for player, own in enumerate(infosets)]
  sequences = [list(own) for own in zip(*ends, strict=True)]
  return game_from_arrays(parents, counts, sequences, payoffs, infostates=names)


def efg(tree: Any, num_players: int = 2) -> str:
  """Returns the game in Gambit's extensive form."""
  numbers: list[dict[str, int]] = [{} for _ in range(num_players)]
  players = " ".join(f'"{player}"' for player in range(num_players))
  lines = [f'EFG 2 R "" {{ {players} }} ""']
  stack = [tree]
  while stack:
    node = stack.pop()
    children = []
    if isinstance(node, list):
      lines.append(f't "" {len(lines)} "" {{ {" ".join(map(str, node))} }}')
    elif node[0] == "chance":
      children = [child for _, child in node[1:]]
      chances = " ".join(f'"{place}" {chance}' for place, (chance, _) in enumerate(node[1:]))
      lines.append(f'c "" {len(lines)} "" {{ {chances} }} 0')
    else:
      player, name, *children = node
      number = numbers[player].setdefault(name, len(numbers[player]) + 1)
      actions = " ".join(f'"{place}"' for place in range(len(children)))
      lines.append(f'p "" {player + 1} {number} "{name}" {{ {actions} }} 0')
    stack += reversed(children)
  return "\n".join(lines) + "\n"
