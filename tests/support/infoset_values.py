"""Values of actions at infosets from the definition, by a walk through OpenSpiel's states."""

import numpy as np


def action_values(game, table):
  """Returns what each action is worth, summed over the histories of its infoset, and what these weigh.

  Args:
    game: one of OpenSpiel's.
    table: infostate -> action -> probability, of all players.

  Returns:
    Infostate -> action -> sum of the probability that chance and the others play to a history, times what the owner
    gets from the action on; and infostate -> sum of these probabilities.
  """
  values, worths, masses = {}, {}, {}

  def worth(state):
    key = state.history_str()
    if key not in values:
      if state.is_terminal():
        values[key] = np.array(state.returns())
      elif state.is_chance_node():
        values[key] = sum(chance * worth(state.child(a)) for a, chance in state.chance_outcomes())
      else:
        play = table[state.information_state_string()]
        values[key] = sum(chance * worth(state.child(a)) for a, chance in play.items())
    return values[key]

  def visit(state, reach):
    if state.is_terminal():
      return
    if state.is_chance_node():
      for action, chance in state.chance_outcomes():
        visit(state.child(action), reach * chance)
      return
    name, player = state.information_state_string(), state.current_player()
    masses[name] = masses.get(name, 0.0) + reach[player]
    for action, chance in table[name].items():
      own = worths.setdefault(name, {})
      child = state.child(action)
      own[action] = own.get(action, 0.0) + reach[player] * worth(child)[player]
      factor = np.full(len(reach), chance)
      factor[player] = 1.0
      visit(child, reach * factor)

  visit(game.new_initial_state(), np.ones(game.num_players()))
  return worths, masses
