"""Deep CFR: networks learn advantages from samples of the game, on compiled games and on OpenSpiel's states."""

from spiel_cfr.deep_cfr.deep_cfr_solver import DeepCFRSolver
from spiel_cfr.deep_cfr.network import MLP, Approximator, LeastSquares

__all__ = ["MLP", "Approximator", "DeepCFRSolver", "LeastSquares"]
