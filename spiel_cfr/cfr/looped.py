"""The arrays of a solver's loop, by the names that they have in checkpoints."""

from spiel_cfr._numba.arrays import AnyFloats, Float64s
from spiel_cfr.cfr.loops import Loop


class Looped:
  """What has a loop, some of whose arrays may be elsewhere while it iterates."""

  # As it iterates: whoever looks at its arrays takes `_loop`.
  _own_loop: Loop

  @property
  def _loop(self) -> Loop:
    """The loop with its arrays."""
    return self._own_loop.gathered()

  @property
  def _strategy(self) -> AnyFloats:
    return self._loop.strategy

  @property
  def _cumulative(self) -> AnyFloats:
    return self._loop.cumulative

  @property
  def _tapered(self) -> AnyFloats:
    return self._loop.tapered

  @property
  def _state(self) -> AnyFloats:
    return self._loop.state

  @property
  def _local(self) -> Float64s:
    return self._loop.local

  @property
  def _gradients(self) -> Float64s:
    return self._loop.gradients

  @property
  def _play_values(self) -> Float64s:
    return self._loop.play_values
