"""Packages and public names of `spiel_cfr` that are imported late, when a program first uses one of them.

An import `as` the same name makes the name public in type checkers.
"""

from spiel_cfr import abstraction as abstraction
from spiel_cfr import atlas as atlas
from spiel_cfr import catalogue as catalogue
from spiel_cfr import certificates as certificates
from spiel_cfr import correlated as correlated
from spiel_cfr import deep_cfr as deep_cfr
from spiel_cfr import exchange as exchange
from spiel_cfr import exploitation as exploitation
from spiel_cfr import explorer as explorer
from spiel_cfr import first_order as first_order
from spiel_cfr import mccfr as mccfr
from spiel_cfr import parametric_games as parametric_games
from spiel_cfr import referee as referee
from spiel_cfr import runs as runs
from spiel_cfr import search as search
from spiel_cfr import stable_predictive as stable_predictive
from spiel_cfr.bots import PolicyBot as PolicyBot
from spiel_cfr.certificates import certify as certify
from spiel_cfr.correlated import EFRSolver as EFRSolver
from spiel_cfr.deep_cfr import DeepCFRSolver as DeepCFRSolver
from spiel_cfr.exchange import load_policy as load_policy
from spiel_cfr.exchange import save_policy as save_policy
from spiel_cfr.exploitation import exploit as exploit
from spiel_cfr.explorer import explore as explore
from spiel_cfr.mccfr import ExternalSamplingSolver as ExternalSamplingSolver
from spiel_cfr.mccfr import OutcomeSamplingSolver as OutcomeSamplingSolver
from spiel_cfr.quantal_response import solve_qre as solve_qre
from spiel_cfr.referee import judge as judge
from spiel_cfr.runs import Checkpoints as Checkpoints
from spiel_cfr.runs import run as run
from spiel_cfr.runs import sweep as sweep
from spiel_cfr.solving import Solution as Solution
from spiel_cfr.solving import solve as solve
from spiel_cfr.stable_predictive import StablePredictiveCFRSolver as StablePredictiveCFRSolver
