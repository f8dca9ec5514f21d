"""Rule of tentative restarts: the times of checks, restarts and roll-backs."""

import dataclasses
import math

from spiel_cfr._numba.arrays import require
from spiel_cfr.cfr.solver import MOST_ITERATIONS


@dataclasses.dataclass(frozen=True)
class Rule:
  """The constants of the rule. Costs are constants too and not measured, so that runs are repeatable.

  A *trial* is the time after a restart until the restart stays or is rolled back.

  Attributes:
    spacing: the factor by which iterations must grow between a roll-back and the next trial.
    hardly: the factor by which that wait grows after a trial in which NashConv hardly fell.
    progress: once a restart has stayed, the fraction to which NashConv must fall from one trial to the next.
    pays: the fraction of the NashConv before the restart that a trial must reach for the restart to stay.
    length: the longest trial, as a fraction of all iterations T.
    slow_start: a trial takes at most T^2 / slow_start iterations too, which is less at first.
    shortest: the least length of a trial, in iterations.
    least_gap: the least number of iterations between checks.
    gaps_of_trial: the most checks in the length of a trial.
    gaps_of_taken: iterations between checks are at least those of the trial so far, divided by this.
    gaps_of_stretch: iterations between checks are at least this fraction of the iterations in the average.
    share: the largest share of the time that checks take, once a restart has stayed.
    evaluation: the cost of an evaluation, in iterations of regret matching.
    check: the cost of a check besides its evaluations, in iterations; in small games it is the larger part.
    most_cost: an upper bound on the cost of a check, in iterations.
  """

  spacing: float = 1.5
  hardly: int = 2
  progress: float = 0.2
  pays: float = 0.5
  length: float = 0.2
  slow_start: int = 5000
  shortest: int = 16
  least_gap: int = 8
  gaps_of_trial: int = 8
  gaps_of_taken: int = 2
  gaps_of_stretch: float = 0.1
  share: float = 0.06
  evaluation: float = 0.65
  check: float = 3.0
  most_cost: float = 8.0


RULE = Rule()
# The outcomes of a check.
GO_ON, RESTART, ROLL_BACK = range(3)


@dataclasses.dataclass
class RestartControl:
  """The state of the rule.

  Attributes:
    next_check: the iteration of the next check.
    num_attempts: the number of trials so far.
    num_restarts: the number of restarts that have stayed.
    cost: the cost of all checks so far, in iterations.
    checked: the iteration of the last check that evaluated all candidates.
    trial: the iteration at which the current trial began; 0 outside trials.
    trial_length: the longest that the current trial may take, in iterations.
    trial_nash_conv: the NashConv at the start of the current trial, which it has to halve.
    seen: the length of the current trial at its last check; 0 before a check.
    seen_nash_conv: the NashConv that the current trial had reached at its last check.
    last_attempt: the iteration at which the last trial began or was rolled back; after a trial that hardly fell, twice
      that.
    last_nash_conv: the NashConv at the beginning of the last trial.
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
    """Adds the cost of a check with so many evaluations."""
    cost = RULE.check
    for _ in range(evaluations):
      cost += RULE.evaluation
    self.cost += cost
    self.checked = 0 if self.trial else now

  def decide(self, now: int, nash_conv: float, trial_nash_conv: float) -> int:
    """Decides the outcome of a check, notes it and returns it.

    Args:
      now: the iteration.
      nash_conv: the NashConv of the best strategies so far.
      trial_nash_conv: the NashConv of the best strategies of the trial.
    """
    has_come_far = self.num_restarts > 0 and nash_conv <= RULE.progress * self.last_nash_conv
    if not self.trial:
      if has_come_far or not self.last_attempt or now >= RULE.spacing * self.last_attempt:
        self._begin_trial(now, nash_conv)
        return RESTART
      return GO_ON
    wanted, taken, length = RULE.pays * self.trial_nash_conv, now - self.trial, self.trial_length
    if trial_nash_conv <= wanted:
      self._end_trial()
      self.num_restarts += 1
      if nash_conv <= RULE.progress * self.last_nash_conv:
        self._begin_trial(now, nash_conv)
        return RESTART
      return GO_ON
    hardly_falls = self._hardly_falls(taken, trial_nash_conv)
    # The second condition: NashConv that falls like 1 / taken from here on would miss the goal.
    if taken >= length or trial_nash_conv * taken > wanted * length or hardly_falls:
      self.last_attempt = RULE.hardly * now if hardly_falls else now
      self._end_trial()
      return ROLL_BACK
    self.seen, self.seen_nash_conv = taken, trial_nash_conv
    return GO_ON

  def _hardly_falls(self, taken: int, nash_conv: float) -> bool:
    """Returns whether a trial would end with a NashConv above that of its start.

    NashConv is extrapolated as a power of the length of the trial, from its last two checks. Once a restart has stayed,
    checks are too close to each other for that.
    """
    least = min(nash_conv, self.seen_nash_conv, self.trial_nash_conv)
    if self.num_restarts or not self.seen or least <= 0:
      return False
    fall = math.log(self.seen_nash_conv) - math.log(nash_conv)
    power = fall / (math.log(taken) - math.log(self.seen))
    left = math.log(self.trial_length) - math.log(taken)
    return math.log(nash_conv) - power * left > math.log(self.trial_nash_conv)

  def _begin_trial(self, now: int, nash_conv: float) -> None:
    self.trial = self.last_attempt = now
    self.trial_length = max(RULE.shortest, int(min(RULE.length * now, now * now / RULE.slow_start)))
    self.trial_nash_conv = self.last_nash_conv = nash_conv
    self.num_attempts += 1

  def _end_trial(self) -> None:
    self.trial = self.trial_length = self.seen = 0
    self.trial_nash_conv = self.seen_nash_conv = math.inf

  def schedule(self, now: int, stretch: int) -> None:
    """Sets the iteration of the next check; the average has `stretch` iterations."""
    affordable = int(self.cost / RULE.share)
    if self.trial:
      taken, end = now - self.trial, self.trial + self.trial_length
      if self.num_restarts:
        gap = max(RULE.least_gap, int(RULE.gaps_of_stretch * taken) + 1)
        following = max(now + gap, affordable)
      else:
        gap = max(
          RULE.least_gap, self.trial_length // RULE.gaps_of_trial, taken // RULE.gaps_of_taken
        )
        following = now + gap
      # The last check of a trial is at its end.
      if following > end or end - following < gap / 2:
        following = max(end, now + 1)
    elif self.num_restarts:
      following = max(
        now + max(RULE.least_gap, int(RULE.gaps_of_stretch * stretch) + 1), affordable
      )
    else:
      following = max(now + 1, int(RULE.spacing * self.last_attempt) + 1)
    self.next_check = following

  def check(self, iteration: int) -> None:
    """Checks a state of the rule from a file.

    Raises:
      ValueError: no run leads to this state by this iteration.
    """
    require(0 <= self.num_restarts <= self.num_attempts <= iteration, "attempts are iterations")
    for number in (self.checked, self.trial, self.seen, self.last_attempt // RULE.hardly):
      require(0 <= number <= iteration, "numbers of iterations are not in the future")
    # Ctrl-C can come between an iteration and the check after it.
    require(self.next_check >= max(1, iteration), "the next check is not over")
    require(self.next_check <= 4 * MOST_ITERATIONS, "the next check can be counted to")
    require(0 <= self.cost <= RULE.most_cost * iteration, "the cost of checks is possible")
    for nash_conv in (self.trial_nash_conv, self.last_nash_conv, self.seen_nash_conv):
      require(nash_conv > -math.inf, "NashConv is a number, or not there yet")
    if self.trial:
      require(self.trial + self.seen < self.next_check, "the next check is after the last one")
      require(0 < self.trial_length <= RULE.shortest + self.trial, "trials have a length")
      require(self.last_attempt == self.trial, "the last attempt is on trial")
    else:
      require(self.trial_length == self.seen == 0, "there is no trial")
      require(math.isinf(self.trial_nash_conv), "nothing has to be halved")
