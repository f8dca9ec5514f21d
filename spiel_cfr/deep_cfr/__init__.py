"""Networks where tables end: CFR whose advantages are learned, on compiled games and on states."""

from spiel_cfr.deep_cfr.deep_cfr_solver import DeepCFRSolver
from spiel_cfr.deep_cfr.network import MLP, Approximator, LeastSquares

__all__ = ["MLP", "Approximator", "DeepCFRSolver", "LeastSquares"]
