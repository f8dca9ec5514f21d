"""The complete policy that a bot plays, at every decision of both players, for exact evaluation."""

from spiel_cfr._util import arguments
from spiel_cfr.games.compiling import AnyGame, compile_game
from spiel_cfr.policies import CompiledTabularPolicy
from spiel_cfr.policies.open_spiel import from_policy
from spiel_cfr.search.search_bot import SearchBot


def played_policy(game: AnyGame, bot: SearchBot) -> CompiledTabularPolicy:
  """Returns the policy that a bot plays as either player; the bot is asked once at each infoset.

      spiel_cfr.exploitability(game, played_policy(game, bot))

  Args:
    game: a compiled game, or anything that `compile_game` accepts.
    bot: a bot for one of the players; its twin plays for the other.

  Raises:
    ArgumentError: `bot` is not a `SearchBot`.
    UnsupportedGameError: see `SearchBot.get_policy`.
    GameTooLargeError: see `SearchBot.get_policy`.
    PolicyError: see `SearchBot.get_policy`.
    GameError: see `compile_game`.
  """
  arguments.of_type(bot, "bot", SearchBot)
  compiled = compile_game(game).original
  bots = [bot, bot.twin()] if bot.player_id() == 0 else [bot.twin(), bot]
  return CompiledTabularPolicy(compiled, from_policy(compiled, bots))
