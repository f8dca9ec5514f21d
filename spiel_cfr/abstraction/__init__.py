"""Abstractions: smaller games in which several infosets share a strategy, exactly or not, or actions are missing."""

from spiel_cfr.abstraction.abstract_game import abstract, lift
from spiel_cfr.abstraction.action_translation import (
  nearest_sizes,
  pseudo_harmonic,
  translated_policy,
)
from spiel_cfr.abstraction.buckets import Buckets
from spiel_cfr.abstraction.clusters import cluster, k_means
from spiel_cfr.abstraction.hand_buckets import HandBuckets, hand_buckets
from spiel_cfr.abstraction.hand_features import equity_histograms, hand_equities, next_histograms
from spiel_cfr.abstraction.least_exploitable_strategies import LeastExploitable, least_exploitable
from spiel_cfr.abstraction.lossless_symmetries import lossless_abstraction
from spiel_cfr.abstraction.refining import Refined, solve_refining

__all__ = [
  "Buckets",
  "HandBuckets",
  "LeastExploitable",
  "Refined",
  "abstract",
  "cluster",
  "equity_histograms",
  "hand_buckets",
  "hand_equities",
  "k_means",
  "least_exploitable",
  "lift",
  "lossless_abstraction",
  "nearest_sizes",
  "next_histograms",
  "pseudo_harmonic",
  "solve_refining",
  "translated_policy",
]
