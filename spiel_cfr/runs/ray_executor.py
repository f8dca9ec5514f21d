"""Executors on a Ray cluster: `RayExecutor` for independent tasks, and actors that keep their state between calls."""

import concurrent.futures
from collections.abc import Callable
from typing import Any

from spiel_cfr import errors
from spiel_cfr._util import arguments
from spiel_cfr._util.typed_arguments import typed

# The number of times that Ray restarts a task or an actor if its process dies.
_RETRIES = 3


class RayExecutor(concurrent.futures.Executor):
  """Executor of Ray tasks on the cluster that this process has joined, or on this machine. A task uses one core.

      import ray
      ray.init(address="auto")
      with spiel_cfr.runs.RayExecutor() as executor:
        spiel_cfr.sweep(grid, folder="/shared/results", iterations=10_000, executor=executor)

  All machines must see the folder. If the process or the machine of a task dies, Ray restarts the task up to three
  times.

  Attributes:
    ray: module. The Ray package.
  """

  @typed
  def __init__(self) -> None:
    """Makes the executor. If this process has joined no cluster, the first call starts Ray on this machine.

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
    # References of unfinished calls, because Ray keeps a result only as long as a reference exists.
    self._references: set[Any] = set()
    self._actors: list[RayActor] = []
    self._closed = False

  def submit(
    self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any
  ) -> concurrent.futures.Future[Any]:
    self._start_ray()
    task = self.ray.remote(_call).options(num_cpus=1, max_retries=_RETRIES)
    reference = task.remote(fn, args, kwargs)
    self._references.add(reference)
    future: concurrent.futures.Future[Any] = reference.future()
    future.add_done_callback(lambda done: self._references.discard(reference))
    return future

  def actors(self, count: int) -> list["RayActor"]:
    """Starts Ray actors, which end with this executor; `shard` uses them.

    An actor is an executor of one process, which keeps its state between calls. While all machines are alive, an actor
    has a core to itself. If a machine is lost, its actors move to the others.

    Args:
      count: the number of actors.

    Raises:
      ArgumentError: `count` is not an integer from 1 to 100,000.
      ShardError: Ray has fewer than `count` cores.
    """
    count = arguments.integer(count, "count", 1, 100_000)
    self._start_ray()
    # Actors are spread evenly over the machines: first on the first core of every machine, then on the second.
    cores = sorted(
      (core, node["NodeID"])
      for node in self.ray.nodes()
      if node["Alive"]
      for core in range(int(node["Resources"].get("CPU", 0)))
    )
    if count > len(cores):
      raise errors.ShardError(
        f"Ray has {len(cores):,} cores, and each of {count:,} shards takes one. Use fewer shards, or start Ray with "
        "more cores."
      )
    # An actor that requests a core would wait for ever once cores are lost. If an actor requests nothing, Ray chooses
    # its machine at random; therefore it requests one byte. Calls to a lost machine are retried until Ray notices the
    # loss.
    actor_class = self.ray.remote(_Actor)
    options = {"num_cpus": 0, "memory": 1, "max_restarts": _RETRIES, "max_task_retries": -1}
    actors = []
    for _, node in cores[:count]:
      strategy = self.ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(node, soft=True)
      actor = actor_class.options(scheduling_strategy=strategy, **options).remote()
      actors.append(RayActor(self.ray, actor))
    self._actors += actors
    return actors

  def _start_ray(self) -> None:
    """Starts Ray on this machine unless this process has joined a cluster."""
    if self._closed:
      raise RuntimeError("cannot schedule new futures after shutdown")
    if not self.ray.is_initialized():
      self.ray.init(include_dashboard=False, log_to_driver=False)

  @typed
  def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
    """Waits for the tasks, or cancels them and interrupts running ones. Ray itself keeps running."""
    self._closed = True
    unfinished = list(self._references)
    if cancel_futures:
      for reference in unfinished:
        self.ray.cancel(reference)
    if wait and unfinished:
      self.ray.wait(unfinished, num_returns=len(unfinished))
    self._references.clear()
    for actor in self._actors:
      actor.shutdown()


class RayActor(concurrent.futures.Executor):
  """Executor of one Ray process, which Ray restarts if it dies. See `RayExecutor.actors`."""

  def __init__(self, ray: Any, actor: Any) -> None:
    self._ray, self._actor = ray, actor

  def submit(
    self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any
  ) -> concurrent.futures.Future[Any]:
    """Calls a function in the process once all earlier calls are done."""
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
