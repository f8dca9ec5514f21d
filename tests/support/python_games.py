"""Types of games written in Python."""

import pyspiel


def game_type(
  short_name: str, utility: pyspiel.GameType.Utility, *, observations: bool = False
) -> pyspiel.GameType:
  """Returns the type of a sequential game with chance, for two players, that has infostate strings.

  It may have observation strings, and has nothing else.
  """
  return pyspiel.GameType(
    short_name=short_name,
    long_name=short_name.capitalize(),
    dynamics=pyspiel.GameType.Dynamics.SEQUENTIAL,
    chance_mode=pyspiel.GameType.ChanceMode.EXPLICIT_STOCHASTIC,
    information=pyspiel.GameType.Information.IMPERFECT_INFORMATION,
    utility=utility,
    reward_model=pyspiel.GameType.RewardModel.TERMINAL,
    max_num_players=2,
    min_num_players=2,
    provides_information_state_string=True,
    provides_information_state_tensor=False,
    provides_observation_string=observations,
    provides_observation_tensor=False,
  )
