"""The rule of tentative restarts: when to check, when to restart, and when to roll back."""

import dataclasses
import math

from spiel_cfr._numba.arrays import require
from spiel_cfr.cfr.solver import MOST_ITERATIONS


@dataclasses.dataclass(frozen=True)
class Rule:
  """The numbers of the rule. They are constants, and costs are not measured, so that runs are repeatable.

  Attributes:
    spacing: a trial begins when there are so many times as many iterations as at the end of the last one that was
      rolled back.
    hardly: that number of iterations counts so many times where NashConv hardly fell.
    progress: once a restart has stayed, a trial begins when NashConv is this fraction of that when the last one began.
    pays: a restart stays if the trial's own strategies reach this fraction of the NashConv before it.
    length: how long a trial may take, as a fraction of all iterations T.
    slow_start: trials may take T^2 / slow_start where that is less than `length` says.
    shortest: the least length of a trial, in iterations.
    least_gap: the least number of iterations between checks.
    gaps_of_trial: checks are at least this fraction of a trial's length apart: 1 / gaps_of_trial.
    gaps_of_taken: checks are at least this fraction of what a trial has taken apart: 1 / gaps_of_taken.
    gaps_of_stretch: checks are at least this fraction of the iterations of the average apart.
    share: checks take at most this share of the time, once a restart has stayed.
    evaluation: what an evaluation costs, in iterations of regret matching.
    check: what a check costs besides, in iterations; in small games that is most of it.
    most_cost: more than any check costs, in iterations.
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
# What a check can lead to.
GO_ON, RESTART, ROLL_BACK = range(3)


@dataclasses.dataclass
class RestartControl:
  """All that the rule notes.

  Attributes:
    next_check: the iteration of the next check.
    num_attempts: how many trials there have been.
    num_restarts: how many of them have stayed.
    cost: what all checks have cost, in iterations.
    checked: the iteration of the last check that has looked at everything.
    trial: when the trial began, 0 if there is none.
    trial_length: how long it may be.
    trial_nash_conv: the NashConv that it has to halve.
    seen: after how many iterations it was last looked at, 0 if it was not.
    seen_nash_conv: what it had found then.
    last_attempt: when the last trial began, or was rolled back, twice that where it hardly fell.
    last_nash_conv: the NashConv at its beginning.
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
    """Notes that there has been a check with so many evaluations."""
    cost = RULE.check
    for _ in range(evaluations):
      cost += RULE.evaluation
    self.cost += cost
    self.checked = 0 if self.trial else now

  def decide(self, now: int, nash_conv: float, trial_nash_conv: float) -> int:
    """Notes what a check leads to, and returns it.

    Args:
      now: the iteration.
      nash_conv: of the best strategies so far.
      trial_nash_conv: of the best that the trial has found.
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
    # Falling like 1 / taken from here on, it would not make it in time.
    if taken >= length or trial_nash_conv * taken > wanted * length or hardly_falls:
      self.last_attempt = RULE.hardly * now if hardly_falls else now
      self._end_trial()
      return ROLL_BACK
    self.seen, self.seen_nash_conv = taken, trial_nash_conv
    return GO_ON

  def _hardly_falls(self, taken: int, nash_conv: float) -> bool:
    """Returns whether a trial would end above where it began, if it fell on as it has between its last two checks.

    That is, like a power of its length. Once a restart has stayed, checks are too close to each other to tell.
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
    """Notes the iteration of the next check; the average is made of `stretch` iterations."""
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
    """Checks what comes from a file.

    Raises:
      ValueError: no run leads to it by this iteration.
    """
    require(0 <= self.num_restarts <= self.num_attempts <= iteration, "attempts are iterations")
    for number in (self.checked, self.trial, self.seen, self.last_attempt // RULE.hardly):
      require(0 <= number <= iteration, "what counts iterations was before")
    # Ctrl-C can come between an iteration and the check after it.
    require(self.next_check >= max(1, iteration), "the next check is not over")
    require(self.next_check <= 4 * MOST_ITERATIONS, "the next check can be counted to")
    require(0 <= self.cost <= RULE.most_cost * iteration, "checks cost what they can cost")
    for nash_conv in (self.trial_nash_conv, self.last_nash_conv, self.seen_nash_conv):
      require(nash_conv > -math.inf, "NashConv is a number, or not there yet")
    if self.trial:
      require(self.trial + self.seen < self.next_check, "the next check is after the last one")
      require(0 < self.trial_length <= RULE.shortest + self.trial, "trials have a length")
      require(self.last_attempt == self.trial, "the last attempt is on trial")
    else:
      require(self.trial_length == self.seen == 0, "there is no trial")
      require(math.isinf(self.trial_nash_conv), "nothing has to be halved")
