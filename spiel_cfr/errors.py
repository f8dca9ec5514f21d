"""Every exception that a user's mistake can raise, in one small hierarchy.

Catch `SpielCFRError` to catch them all. Those that report a bad value are also `ValueError`s, so code that already
guards against `ValueError` keeps working.
"""


class SpielCFRError(Exception):
  """Base class of every exception that this library raises on purpose."""


class ArgumentError(SpielCFRError, ValueError):
  """An argument has a value that makes no sense, such as zero iterations."""


class GameError(SpielCFRError, ValueError):
  """The game can't be loaded, or can't be solved by the algorithms here."""


class UnknownGameError(GameError):
  """OpenSpiel has no game of that name."""


class GameParameterError(GameError):
  """The game exists, but not with these parameters."""


class UnsupportedGameError(GameError):
  """The game is of a kind that no solver here takes; subclasses say which."""


class NoInformationStateError(UnsupportedGameError):
  """The game has no information state strings, so infosets can't be told."""


class SampledChanceError(UnsupportedGameError):
  """Chance is sampled inside the game, so its probabilities are unknown."""


class NoStatesError(UnsupportedGameError):
  """Something needs OpenSpiel's states, and the game was made of arrays, or can't be made of its string again."""


class FeaturesError(UnsupportedGameError):
  """The features of infosets, which networks see, do not tell infosets apart, or are missing."""


class MeanFieldGameError(UnsupportedGameError):
  """The game is a mean-field game, which has no extensive form."""


class SinglePlayerGameError(UnsupportedGameError):
  """The game has one player only, so there is no equilibrium to find."""


class ImperfectRecallError(UnsupportedGameError):
  """A player forgets something, so that sequence form does not exist."""


class InconsistentInfosetError(UnsupportedGameError):
  """Two states of one infoset differ in something its owner can see."""


class InvalidPayoffError(UnsupportedGameError):
  """A terminal state returns NaN, an infinity, or what does not sum to what the game's type says."""


class GameTooLargeError(GameError):
  """The game has more states than the limit allows."""


class EndgameError(GameError):
  """An endgame file is not one, or describes an impossible deal."""


class PolicyError(SpielCFRError, ValueError):
  """A policy does not fit the game, or its probabilities are none."""


class FileFormatError(SpielCFRError, ValueError):
  """A file is not what it should be: truncated, altered, too new, foreign."""


class DamagedFileError(FileFormatError):
  """A part of a file is missing or was changed after it was written."""


class CheckpointMismatchError(SpielCFRError, ValueError):
  """A checkpoint is of another game, or of another solver, or of one made with other arguments."""


class NotFiniteError(SpielCFRError, ArithmeticError):
  """A number that a solver computes has become NaN or infinite, or would."""


class LossOverflowError(SpielCFRError, OverflowError):
  """The payoffs are so large, or the run so long, that sums of losses leave the range of float64."""


class FolderInUseError(SpielCFRError, RuntimeError):
  """Another run is writing checkpoints into the folder."""


class ShardError(SpielCFRError, RuntimeError):
  """Processes that share a solver's subtrees have failed for good, or can't be given what they need."""


class RestartError(SpielCFRError, ValueError):
  """A solver is to be restarted from a strategy, and its minimizer has no way to go on from one."""


class LockError(SpielCFRError, ValueError):
  """A solver is to keep a part of its policy fixed, and can't, or not any more."""


class AbstractionError(SpielCFRError, ValueError):
  """Infosets can't play alike, or something can't be done with a game in which several do."""


class WarmStartError(SpielCFRError, ValueError):
  """A solver is to start warm in a way that its minimizer has no answer for, or is asked what only a cold start has."""


class PruningError(UnsupportedGameError):
  """A game is to be solved with pruning that is not sound there, or of which there is none for its form."""


class PrivateMovesError(UnsupportedGameError):
  """A game does not fit private moves form, or the keys of its worlds tell too little; the message has histories."""


class MissingPackageError(SpielCFRError, ImportError):
  """A package is not installed that only this needs; the message says how to install it."""


class DoubtfulGameWarning(UserWarning):
  """The game can be solved, and something in it is hardly what its author means; the message says what."""


class NoSolutionError(SpielCFRError, ArithmeticError):
  """A linear program was not solved."""
