"""The rule of restarts on trial: when to check, when to restart, and when to take that back.

It is compiled, for runs that are compiled as a whole; others call it where they stand.
"""

from typing import Any

import numpy as np
from numba import types
from numba.np import numpy_support

from spiel_cfr._numba.arrays import (
  COUNT_TABLE,
  FLOAT_TABLE,
  FLOATS,
  AnyFloats,
  Float64s,
  Uint64s,
  floats,
)
from spiel_cfr._numba.kernels import inlined, kernel
from spiel_cfr._numba.lines import fill_line

# A trial begins when there are this many times as many iterations as at the end of the last one that was taken back,
_SPACING = 1.5
# or, once a restart has stayed, when NashConv is this fraction of what it was when the last trial began.
_PROGRESS = 0.2
# A restart stays if the trial's own pair of strategies reaches this fraction of the NashConv before it
_PAYS = 0.5
# within this fraction of all iterations, or T^2 / 5000 where that is less, but at least 16.
_LENGTH, _SLOW_START, SHORTEST = 0.2, 5000, 16
# Checks are at least 8 iterations apart, an eighth of a trial or half of what it has taken, a tenth of a stretch,
_LEAST, _OF_TRIAL, _OF_TAKEN, _OF_STRETCH = 8, 8, 2, 0.1
# and take at most this share of the time. An evaluation takes as long as 0.65 iterations of regret matching, and, in
# small games, all around it as long as 3; that these are constants and not measured makes runs repeatable.
_SHARE, EVALUATION, CHECK = 0.06, 0.65, 3.0

# What a check can lead to.
GO_ON, RESTART, TAKE_BACK, HAND_OVER = range(4)

# All that the rule notes, besides the strategies that are kept and how good they are.
CONTROL = np.dtype(
  [
    # See `Restarted`.
    ("num_attempts", np.int64),
    ("num_restarts", np.int64),
    # What all checks have cost, in iterations, and the iteration of the last one that has looked at everything.
    ("cost", np.float64),
    ("checked", np.int64),
    ("next_check", np.int64),
    # When the trial began, 0 if there is none; how long it may be, and the NashConv that it has to halve.
    ("trial", np.int64),
    ("trial_length", np.int64),
    ("trial_nash_conv", np.float64),
    # When the last trial began, or was taken back, and the NashConv at its beginning.
    ("last_attempt", np.int64),
    ("last_nash_conv", np.float64),
    # The iteration in which CFR has taken over, 0 if it has not; it does where NashConv is above bound / sqrt(T).
    ("handed_over", np.int64),
    ("bound", np.float64),
    # Half of what payoffs sum to where each player's strategy is judged by itself, NaN elsewhere.
    ("half_sum", np.float64),
  ]
)
CONTROLS = types.Array(numpy_support.from_dtype(CONTROL), 1, "C")


@inlined
def total(scores: Float64s) -> float:
  """Returns the sum of the players' scores."""
  result = 0.0
  for player in range(scores.shape[0]):
    result += scores[player]
  return result


@inlined
def begin_trial(control: Any, trial_scores: Float64s, now: int, nash_conv: float) -> None:
  """Notes that a trial begins."""
  control.trial = now
  control.last_attempt = now
  shortest: Any = np.int64(SHORTEST)
  length = np.int64(min(_LENGTH * now, now * now / _SLOW_START))
  control.trial_length = max(shortest, length)
  control.trial_nash_conv = nash_conv
  control.last_nash_conv = nash_conv
  control.num_attempts += 1
  fill_line(trial_scores, np.inf)


@inlined
def end_trial(control: Any, trial_scores: Float64s) -> None:
  """Notes that there is no trial."""
  control.trial = 0
  control.trial_length = 0
  control.trial_nash_conv = np.inf
  fill_line(trial_scores, np.inf)


@inlined
def decide(control: Any, scores: Float64s, trial_scores: Float64s, now: int) -> int:
  """Notes what a check in iteration `now` leads to, and returns it."""
  nash_conv = total(scores)
  if control.handed_over != 0:
    return GO_ON
  if nash_conv > control.bound / np.sqrt(np.float64(now)):
    control.handed_over = now
    end_trial(control, trial_scores)
    return HAND_OVER
  progress = control.num_restarts > 0 and nash_conv <= _PROGRESS * control.last_nash_conv
  if control.trial == 0:
    last = control.last_attempt
    if progress or last == 0 or now >= _SPACING * last:
      begin_trial(control, trial_scores, now, nash_conv)
      return RESTART
    return GO_ON
  own, wanted = total(trial_scores), _PAYS * control.trial_nash_conv
  taken = now - control.trial
  if own <= wanted:
    end_trial(control, trial_scores)
    control.num_restarts += 1
    if nash_conv <= _PROGRESS * control.last_nash_conv:
      begin_trial(control, trial_scores, now, nash_conv)
      return RESTART
    return GO_ON
  # Falling like 1 / taken from here on, it would not make it in time.
  if taken >= control.trial_length or own * taken > wanted * control.trial_length:
    control.last_attempt = now
    end_trial(control, trial_scores)
    return TAKE_BACK
  return GO_ON


@inlined
def schedule(control: Any, now: int, stretch: int) -> None:
  """Notes the iteration of the next check; the average is made of `stretch` iterations."""
  least: Any = np.int64(_LEAST)
  affordable = np.int64(control.cost / _SHARE)
  if control.trial != 0:
    taken, end = now - control.trial, control.trial + control.trial_length
    if control.num_restarts != 0:
      gap = max(least, np.int64(_OF_STRETCH * taken) + 1)
      following = max(now + gap, affordable)
    else:
      gap = max(least, max(control.trial_length // _OF_TRIAL, taken // _OF_TAKEN))
      following = now + gap
    # The last check of a trial is at its end.
    if following > end or end - following < gap / 2:
      following = max(end, now + 1)
  elif control.num_restarts != 0 or control.handed_over != 0:
    gap = max(least, np.int64(_OF_STRETCH * stretch) + 1)
    following = max(now + gap, affordable)
  else:
    following = max(now + 1, np.int64(_SPACING * control.last_attempt) + 1)
  control.next_check = following


@inlined
def take_better(
  control: Any,
  players: Uint64s,
  candidate: AnyFloats,
  values: Float64s,
  best: Float64s,
  best_scores: Float64s,
  scores: Float64s,
) -> None:
  """Writes what is better than the best so far over it.

  Args:
    control: what the rule notes.
    players: see `CompiledGame.players`.
    candidate: each player's strategy times a positive number, shape (sequences,).
    values: what each player expects, and what with a best response, shape (players, 2).
    best: the best strategies so far, shape (sequences,).
    best_scores: each player's share in their NashConv, shape (players,).
    scores: filled with that of the candidate.
  """
  by_itself = not np.isnan(control.half_sum)
  nash_conv, count = 0.0, np.int64(scores.shape[0])
  for player in range(count):
    nash_conv += values[player, 1] - values[player, 0]
  for player in range(count):
    scores[player] = values[1 - player, 1] - control.half_sum if by_itself else nash_conv / count
    if scores[player] < best_scores[player]:
      best_scores[player] = scores[player]
      root = players[player, 2]
      for i in range(root, players[player, 3]):
        best[i] = candidate[i] / candidate[root]


@kernel(types.int64(CONTROLS, FLOATS, FLOATS, types.int64))
def decide_now(control: Any, scores: Float64s, trial_scores: Float64s, now: int) -> int:
  """`decide`, for runs that are not compiled."""
  result: int = decide(control[0], scores, trial_scores, now)
  return result


@kernel(types.void(CONTROLS, types.int64, types.int64))
def schedule_now(control: Any, now: int, stretch: int) -> None:
  """`schedule`, for runs that are not compiled."""
  schedule(control[0], now, stretch)


@kernel(
  lambda number: types.void(
    CONTROLS, COUNT_TABLE, floats(number), FLOAT_TABLE, FLOATS, FLOATS, FLOATS
  )
)
def take_better_now(
  control: Any,
  players: Uint64s,
  candidate: AnyFloats,
  values: Float64s,
  best: Float64s,
  best_scores: Float64s,
  scores: Float64s,
) -> None:
  """`take_better`, for runs that are not compiled."""
  take_better(control[0], players, candidate, values, best, best_scores, scores)
