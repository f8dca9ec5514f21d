"""Deep CFR: networks learn the advantages from samples, on compiled games and on OpenSpiel's states."""

from spiel_cfr.deep_cfr.deep_cfr_solver import DeepCFRSolver
from spiel_cfr.deep_cfr.network import MLP, Approximator, LeastSquares

__all__ = ["MLP", "Approximator", "DeepCFRSolver", "LeastSquares"]
