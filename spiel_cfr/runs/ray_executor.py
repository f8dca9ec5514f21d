"""Executors on a cluster of Ray."""

import concurrent.futures
from collections.abc import Callable
from typing import Any

from spiel_cfr import errors
from spiel_cfr._util import arguments
from spiel_cfr._util.doors import typed

# How often a task is started again whose process has died.
_RETRIES = 3


class RayExecutor(concurrent.futures.Executor):
  """Runs calls as tasks of Ray, one core each: on the cluster that this process has joined, or on this machine.

      import ray
      ray.init(address="auto")
      with spiel_cfr.runs.RayExecutor() as executor:
        spiel_cfr.sweep(grid, folder="/shared/results", iterations=10_000, executor=executor)

  The folder must be one that all machines see. A task whose process or machine dies is started again, three times.

  Attributes:
    ray: the package.
  """

  @typed
  def __init__(self) -> None:
    """Starts nothing before there is something to do; then Ray on this machine, if this process has not joined one.

    Raises:
      MissingPackageError: Ray is not installed.
    """
    try:
      import ray
    except ImportError as error:
      raise errors.MissingPackageError(
        "RayExecutor needs Ray: pip install 'spiel_cfr[ray]'."
      ) from error
    self.ray: Any = ray
    # Of calls that are not done: Ray keeps what they return as long as there are any.
    self._references: set[Any] = set()
    self._actors: list[RayActor] = []
    self._closed = False

  def submit(
    self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any
  ) -> concurrent.futures.Future[Any]:
    self._begin()
    task = self.ray.remote(_call).options(num_cpus=1, max_retries=_RETRIES)
    reference = task.remote(fn, args, kwargs)
    self._references.add(reference)
    future: concurrent.futures.Future[Any] = reference.future()
    future.add_done_callback(lambda done: self._references.discard(reference))
    return future

  def actors(self, count: int) -> list["RayActor"]:
    """Starts actors of Ray, each an executor of one process that keeps what calls leave in it; see `shard`.

    They end with this executor. Each gets a core of its own as long as all machines are there; the others then take in
    those of a machine that is lost.

    Raises:
      ArgumentError: `count` is not an integer from 1 to 100,000.
      ShardError: Ray has fewer cores.
    """
    count = arguments.integer(count, "count", 1, 100_000)
    self._begin()
    # Evenly over the machines: the first core of each, then the second.
    cores = sorted(
      (core, node["NodeID"])
      for node in self.ray.nodes()
      if node["Alive"]
      for core in range(int(node["Resources"].get("CPU", 0)))
    )
    if count > len(cores):
      raise errors.ShardError(
        f"Ray has {len(cores):,} cores, and each of {count:,} shards takes one. Take fewer shards, or start Ray with "
        "more."
      )
    # An actor that asks for a core would wait for ever once there are fewer than actors; of one that asks for nothing,
    # not even a byte, Ray chooses the machine by chance. A call whose machine is gone is made again until Ray knows.
    make = self.ray.remote(_Actor)
    options = {"num_cpus": 0, "memory": 1, "max_restarts": _RETRIES, "max_task_retries": -1}
    made = []
    for _, node in cores[:count]:
      place = self.ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(node, soft=True)
      made.append(RayActor(self.ray, make.options(scheduling_strategy=place, **options).remote()))
    self._actors += made
    return made

  def _begin(self) -> None:
    if self._closed:
      raise RuntimeError("cannot schedule new futures after shutdown")
    if not self.ray.is_initialized():
      self.ray.init(include_dashboard=False, log_to_driver=False)

  def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
    """Waits for the tasks, or cancels them, where those that have begun are interrupted; Ray itself goes on."""
    self._closed = True
    left = list(self._references)
    if cancel_futures:
      for reference in left:
        self.ray.cancel(reference)
    if wait and left:
      self.ray.wait(left, num_returns=len(left))
    self._references.clear()
    for actor in self._actors:
      actor.shutdown()


class RayActor(concurrent.futures.Executor):
  """A process of Ray's. If it dies, a new one takes its place. See `RayExecutor.actors`."""

  def __init__(self, ray: Any, actor: Any) -> None:
    self._ray, self._actor = ray, actor

  def submit(
    self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any
  ) -> concurrent.futures.Future[Any]:
    """Calls a function in the process, after all earlier calls."""
    future: concurrent.futures.Future[Any] = self._actor.call.remote(fn, args, kwargs).future()
    return future

  def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
    """Ends the process at once."""
    self._ray.kill(self._actor)


class _Actor:
  def call(self, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    return function(*args, **kwargs)


def _call(function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
  return function(*args, **kwargs)
