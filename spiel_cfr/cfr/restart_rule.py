"""Rule of tentative restarts: it decides when to check a solver, to restart it, and to roll a restart back."""

import dataclasses
import math

from spiel_cfr._numba.arrays import require
from spiel_cfr.cfr.solver_state import MOST_ITERATIONS


@dataclasses.dataclass(frozen=True)
class RestartRule:
  """The constants of the rule.

  A *trial* begins with a restart. It ends when the restart is accepted or rolled back. At a *check*, the solver is
  evaluated and the rule decides. Costs are constants, not measurements, so that runs are repeatable.

  Attributes:
    spacing: the factor by which the number of iterations must grow from a roll-back to the next trial.
    failure_factor: the factor by which that wait grows further after a trial in which NashConv would not have fallen.
    progress: once a restart was accepted, the fraction to which NashConv must fall from one trial to the next.
    success: the fraction of the NashConv before the restart that a trial must reach for the restart to be accepted.
    length: the longest trial, as a fraction of all iterations T.
    slow_start: the divisor of a second limit of trials, T^2 / slow_start iterations, which is lower at first.
    shortest: the smallest length of a trial, in iterations.
    least_gap: the smallest number of iterations between checks.
    checks_of_trial: the number of checks in a trial if they were equally spaced.
    gap_divisor: until a restart was accepted, the gap between checks of a trial is at least the iterations of the trial
      so far, divided by this number.
    gap_fraction: once a restart was accepted, the gap between checks is at least this fraction of the iterations of the
      trial so far or, outside trials, of the average.
    share: the largest share of the time that checks may take, once a restart was accepted.
    evaluation: the cost of an evaluation, in iterations of regret matching.
    check: the cost of a check without its evaluations, in iterations; in small games this is the larger part.
    most_cost: an upper bound on the cost of a check, in iterations.
  """

  spacing: float = 1.5
  failure_factor: int = 2
  progress: float = 0.2
  success: float = 0.5
  length: float = 0.2
  slow_start: int = 5000
  shortest: int = 16
  least_gap: int = 8
  checks_of_trial: int = 8
  gap_divisor: int = 2
  gap_fraction: float = 0.1
  share: float = 0.06
  evaluation: float = 0.65
  check: float = 3.0
  most_cost: float = 8.0


RULE = RestartRule()
# The decisions at a check.
CONTINUE, RESTART, ROLL_BACK = range(3)


@dataclasses.dataclass
class RestartControl:
  """The state of the rule.

  Attributes:
    next_check: the iteration of the next check.
    num_attempts: the number of trials so far.
    num_restarts: the number of restarts that were accepted.
    cost: the cost of all checks so far, in iterations.
    checked: the iteration of the last check that evaluated all candidates; 0 during trials.
    trial: the iteration at which the current trial began; 0 outside trials.
    trial_length: the number of iterations after which the current trial ends at the latest; 0 outside trials.
    trial_nash_conv: the NashConv at the start of the current trial, which the trial has to halve.
    seen: the number of iterations of the current trial up to its last check; 0 before its first check.
    seen_nash_conv: the NashConv that the current trial had reached at its last check.
    last_attempt: the iteration at which the last trial began or was rolled back; times `failure_factor` after a trial
      in which NashConv would not have fallen.
    last_nash_conv: the NashConv at the start of the last trial.
  """

  next_check: int
  num_attempts: int = 0
  num_restarts: int = 0
  cost: float = 0.0
  checked: int = 0
  trial: int = 0
  trial_length: int = 0
  trial_nash_conv: float = math.inf
  seen: int = 0
  seen_nash_conv: float = math.inf
  last_attempt: int = 0
  last_nash_conv: float = math.inf

  def note_check(self, now: int, evaluations: int) -> None:
    """Adds the cost of a check with this number of evaluations."""
    cost = RULE.check
    for _ in range(evaluations):
      cost += RULE.evaluation
    self.cost += cost
    self.checked = 0 if self.trial else now

  def decide(self, now: int, nash_conv: float, trial_nash_conv: float) -> int:
    """Decides what to do at a check, and notes the decision in the state.

    Args:
      now: the iteration.
      nash_conv: the NashConv of the best strategies so far.
      trial_nash_conv: the NashConv of the best strategies of the trial.

    Returns:
      CONTINUE, RESTART or ROLL_BACK.
    """
    if not self.trial:
      made_progress = self.num_restarts > 0 and nash_conv <= RULE.progress * self.last_nash_conv
      if made_progress or not self.last_attempt or now >= RULE.spacing * self.last_attempt:
        self._begin_trial(now, nash_conv)
        return RESTART
      return CONTINUE
    goal, taken = RULE.success * self.trial_nash_conv, now - self.trial
    if trial_nash_conv <= goal:
      self._end_trial()
      self.num_restarts += 1
      if nash_conv <= RULE.progress * self.last_nash_conv:
        self._begin_trial(now, nash_conv)
        return RESTART
      return CONTINUE
    would_not_fall = self._would_not_fall(taken, trial_nash_conv)
    # NashConv falls about like 1 / iterations.
    misses_goal = trial_nash_conv * taken > goal * self.trial_length
    if taken >= self.trial_length or misses_goal or would_not_fall:
      self.last_attempt = RULE.failure_factor * now if would_not_fall else now
      self._end_trial()
      return ROLL_BACK
    self.seen, self.seen_nash_conv = taken, trial_nash_conv
    return CONTINUE

  def _would_not_fall(self, taken: int, nash_conv: float) -> bool:
    """Returns whether a trial would end with a NashConv above that of its start.

    NashConv is extrapolated from the last two checks of the trial, as a power of the iterations of the trial. Once a
    restart was accepted, checks are too close to each other for that.
    """
    least = min(nash_conv, self.seen_nash_conv, self.trial_nash_conv)
    if self.num_restarts or not self.seen or least <= 0:
      return False
    fall = math.log(self.seen_nash_conv) - math.log(nash_conv)
    power = fall / (math.log(taken) - math.log(self.seen))
    log_growth_left = math.log(self.trial_length) - math.log(taken)
    return math.log(nash_conv) - power * log_growth_left > math.log(self.trial_nash_conv)

  def _begin_trial(self, now: int, nash_conv: float) -> None:
    self.trial = self.last_attempt = now
    self.trial_length = max(RULE.shortest, int(min(RULE.length * now, now * now / RULE.slow_start)))
    self.trial_nash_conv = self.last_nash_conv = nash_conv
    self.num_attempts += 1

  def _end_trial(self) -> None:
    self.trial = self.trial_length = self.seen = 0
    self.trial_nash_conv = self.seen_nash_conv = math.inf

  def schedule(self, now: int, averaged: int) -> None:
    """Sets the iteration of the next check; `averaged` is the number of iterations in the average."""
    if self.trial:
      self.next_check = self._next_check_of_trial(now)
    elif self.num_restarts:
      gap = max(RULE.least_gap, int(RULE.gap_fraction * averaged) + 1)
      self.next_check = max(now + gap, self._earliest_affordable())
    else:
      self.next_check = max(now + 1, int(RULE.spacing * self.last_attempt) + 1)

  def _next_check_of_trial(self, now: int) -> int:
    """Returns the iteration of the next check in a trial. The last one is at its end."""
    taken, end = now - self.trial, self.trial + self.trial_length
    if self.num_restarts:
      gap = max(RULE.least_gap, int(RULE.gap_fraction * taken) + 1)
      result = max(now + gap, self._earliest_affordable())
    else:
      equal_spacing = self.trial_length // RULE.checks_of_trial
      gap = max(RULE.least_gap, equal_spacing, taken // RULE.gap_divisor)
      result = now + gap
    if result > end or end - result < gap / 2:
      return max(end, now + 1)
    return result

  def _earliest_affordable(self) -> int:
    """Returns the iteration from which the checks so far take at most their share of the time."""
    return int(self.cost / RULE.share)

  def check(self, iteration: int) -> None:
    """Checks a state of the rule from a file.

    Raises:
      ValueError: no run leads to this state by this iteration.
    """
    require(0 <= self.num_restarts <= self.num_attempts <= iteration, "attempts are iterations")
    last_attempt = self.last_attempt // RULE.failure_factor
    for number in (self.checked, self.trial, self.seen, last_attempt):
      require(0 <= number <= iteration, "numbers of iterations are not in the future")
    # Ctrl-C can come between an iteration and its check.
    require(self.next_check >= max(1, iteration), "the next check is not in the past")
    require(self.next_check <= 4 * MOST_ITERATIONS, "the next check can be reached")
    require(0 <= self.cost <= RULE.most_cost * iteration, "the cost of checks is possible")
    for nash_conv in (self.trial_nash_conv, self.last_nash_conv, self.seen_nash_conv):
      require(nash_conv > -math.inf, "NashConv is a number, or infinite before it is known")
    if self.trial:
      require(self.trial + self.seen < self.next_check, "the next check is after the last one")
      require(0 < self.trial_length <= RULE.shortest + self.trial, "trials have a length")
      require(self.last_attempt == self.trial, "the last attempt is the current trial")
    else:
      require(self.trial_length == self.seen == 0, "there is no trial")
      require(math.isinf(self.trial_nash_conv), "there is no NashConv to halve")
