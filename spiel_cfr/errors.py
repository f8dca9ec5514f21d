"""Exceptions of the library. `SpielCFRError` is the base class of all; errors about wrong values are `ValueError`s."""


class SpielCFRError(Exception):
  """Base class of all exceptions that the library raises on purpose."""


class ArgumentError(SpielCFRError, ValueError):
  """An argument has an invalid value, such as zero iterations."""


class GameError(SpielCFRError, ValueError):
  """The game can't be loaded, or can't be solved by the algorithms here."""


class UnknownGameError(GameError):
  """OpenSpiel has no game of that name."""


class GameParameterError(GameError):
  """The game exists, but not with these parameters."""


class UnsupportedGameError(GameError):
  """The game has an unsupported property, which the subclass names."""


class NoInformationStateError(UnsupportedGameError):
  """The game has no information state strings, so infosets are unknown."""


class SampledChanceError(UnsupportedGameError):
  """Chance is sampled inside the game, so its probabilities are unknown."""


class NoStatesError(UnsupportedGameError):
  """A function needs OpenSpiel's states, but the game was made of arrays, or can't be loaded by its string."""


class FeaturesError(UnsupportedGameError):
  """The features of infosets, for networks, are missing, or are equal at different infosets."""


class MeanFieldGameError(UnsupportedGameError):
  """The game is a mean-field game, which has no extensive form."""


class SinglePlayerGameError(UnsupportedGameError):
  """The game has only one player, so there is no equilibrium to find."""


class ImperfectRecallError(UnsupportedGameError):
  """A player forgets its own actions or what it saw, so that the sequence form does not exist."""


class InconsistentInfosetError(UnsupportedGameError):
  """Two states of one infoset differ in something that its owner sees, such as legal actions."""


class InvalidPayoffError(UnsupportedGameError):
  """A terminal state returns NaN, an infinity, or payoffs that contradict the type of the game."""


class GameTooLargeError(GameError):
  """The game has more states than the limit allows."""


class EndgameError(GameError):
  """An endgame file is invalid, or describes an impossible deal."""


class PolicyError(SpielCFRError, ValueError):
  """A policy does not fit the game, or its probabilities are invalid."""


class FileFormatError(SpielCFRError, ValueError):
  """A file is of another kind or format than expected."""


class DamagedFileError(FileFormatError):
  """A part of a file is missing or was changed after it was written."""


class CheckpointMismatchError(SpielCFRError, ValueError):
  """A checkpoint belongs to another game, another solver, or other arguments."""


class NotFiniteError(SpielCFRError, ArithmeticError):
  """A number in a computation is NaN or infinite, or would become so."""


class FolderInUseError(SpielCFRError, RuntimeError):
  """Another run is writing checkpoints into the folder."""


class ShardError(SpielCFRError, RuntimeError):
  """The processes that share a solver's subtrees have failed, or can't receive the solver."""


class RestartError(SpielCFRError, ValueError):
  """A solver can't be restarted from a strategy, since its regret minimizer does not support it."""


class LockError(SpielCFRError, ValueError):
  """A solver can't lock a part of its policy, or can't do so after its first iteration."""


class AbstractionError(SpielCFRError, ValueError):
  """Infosets can't share a strategy, or a function does not take abstractions in which they do."""


class WarmStartError(SpielCFRError, ValueError):
  """A solver can't start warm in this way, or a function needs a run without a warm start."""


class PruningError(UnsupportedGameError):
  """Pruning is not sound for the solver, or is not implemented for the form of the game."""


class PrivateMovesError(UnsupportedGameError):
  """A game does not fit private moves form, or keys of worlds merge different states; the message says which."""


class MissingPackageError(SpielCFRError, ImportError):
  """An optional package is not installed; the message says how to install it."""


class DoubtfulGameWarning(UserWarning):
  """The game can be solved, but it probably contains a mistake, which the message names."""


class NoSolutionError(SpielCFRError, ArithmeticError):
  """A linear program has no solution, or a computation did not reach one."""


class InfeasibleError(NoSolutionError):
  """No variables satisfy all constraints of a linear program."""
