"""Betting abstraction `few_bets`, an action filter for OpenSpiel's `bettingAbstraction=fchpa`."""

import re
from typing import Any

from spiel_cfr._util.typed_arguments import typed

_FOLD, _CALL, _POT, _ALL_IN, _HALF_POT = range(5)


@typed
def few_bets(state: Any, actions: list[int]) -> list[int]:
  """Keeps the bets of Farina et al. (2019) at states of `universal_poker(..., bettingAbstraction=fchpa)`.

  The first bet on a street is half the pot, the pot or all-in. Later ones are the pot or all-in. Players do not fold
  when there is nothing to call.
  """
  removed = set()
  # The moves of this street: c is a check or call, r a bet or raise.
  street = state.information_state_string().rpartition("[Sequences: ")[2].rpartition("|")[2]
  if "r" in street:
    removed.add(_HALF_POT)
  spent = re.findall(r"Spent: \[P0: (\d+)\s+P1: (\d+)", str(state))
  if spent and spent[0][0] == spent[0][1]:
    removed.add(_FOLD)
  return [action for action in actions if action not in removed]
