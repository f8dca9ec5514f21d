"""Exceptions of the library, in one small hierarchy.

Catch `SpielCFRError` to catch them all. Errors about a wrong value are also `ValueError`s.
"""


class SpielCFRError(Exception):
  """Base class of every exception that this library raises on purpose."""


class ArgumentError(SpielCFRError, ValueError):
  """An argument has an invalid value, such as zero iterations."""


class GameError(SpielCFRError, ValueError):
  """The game can't be loaded, or can't be solved by the algorithms here."""


class UnknownGameError(GameError):
  """OpenSpiel has no game of that name."""


class GameParameterError(GameError):
  """The game exists, but not with these parameters."""


class UnsupportedGameError(GameError):
  """The game is of an unsupported kind; subclasses say which."""


class NoInformationStateError(UnsupportedGameError):
  """The game has no information state strings, so infosets are unknown."""


class SampledChanceError(UnsupportedGameError):
  """Chance is sampled inside the game, so its probabilities are unknown."""


class NoStatesError(UnsupportedGameError):
  """A function needs OpenSpiel's states, and the game was made of arrays, or can't be loaded by its string."""


class FeaturesError(UnsupportedGameError):
  """The features of infosets, for networks, are missing or the same at different infosets."""


class MeanFieldGameError(UnsupportedGameError):
  """The game is a mean-field game, which has no extensive form."""


class SinglePlayerGameError(UnsupportedGameError):
  """The game has only one player, so there is no equilibrium to find."""


class ImperfectRecallError(UnsupportedGameError):
  """A player forgets something, so that sequence form does not exist."""


class InconsistentInfosetError(UnsupportedGameError):
  """Two states of one infoset differ in something that the owner sees."""


class InvalidPayoffError(UnsupportedGameError):
  """A terminal state returns NaN, an infinity, or payoffs that contradict the type of the game."""


class GameTooLargeError(GameError):
  """The game has more states than the limit allows."""


class EndgameError(GameError):
  """An endgame file is invalid, or describes an impossible deal."""


class PolicyError(SpielCFRError, ValueError):
  """A policy does not fit the game, or its probabilities are invalid."""


class FileFormatError(SpielCFRError, ValueError):
  """A file has another kind or format than expected."""


class DamagedFileError(FileFormatError):
  """A part of a file is missing or was changed after it was written."""


class CheckpointMismatchError(SpielCFRError, ValueError):
  """A checkpoint is of another game, another solver, or other arguments."""


class NotFiniteError(SpielCFRError, ArithmeticError):
  """A number that a solver computes has become NaN or infinite, or would."""


class LossOverflowError(SpielCFRError, OverflowError):
  """The payoffs are so large, or the run so long, that sums of losses leave the range of float64."""


class FolderInUseError(SpielCFRError, RuntimeError):
  """Another run is writing checkpoints into the folder."""


class ShardError(SpielCFRError, RuntimeError):
  """The processes that share a solver's subtrees have failed, or can't receive the solver."""


class RestartError(SpielCFRError, ValueError):
  """A solver can't be restarted from a strategy, since its minimizer can't."""


class LockError(SpielCFRError, ValueError):
  """A solver can't lock a part of its policy, or not after its first iteration."""


class AbstractionError(SpielCFRError, ValueError):
  """Infosets can't share a strategy, or an abstraction in which they do can't be used here."""


class WarmStartError(SpielCFRError, ValueError):
  """A solver can't start warm in this way, or a function needs a run without a warm start."""


class PruningError(UnsupportedGameError):
  """Pruning is not sound for this solver, or does not exist for this form of game."""


class PrivateMovesError(UnsupportedGameError):
  """A game does not fit private moves form, or the keys of its worlds merge different states; see the message."""


class MissingPackageError(SpielCFRError, ImportError):
  """An optional package is not installed; the message says how to install it."""


class DoubtfulGameWarning(UserWarning):
  """The game can be solved, but something in it is probably a mistake; the message says what."""


class NoSolutionError(SpielCFRError, ArithmeticError):
  """A linear program was not solved."""
