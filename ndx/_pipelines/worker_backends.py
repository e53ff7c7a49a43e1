"""Where the workers compute: a backend or device each, and a workspace."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import ndx
from ndx._lib.trees import map_tree
from ndx._pipelines.arguments import check_count
from ndx._pipelines.leases import is_array_of_numpy

__all__ = ["Place", "Scoped", "places", "unchanged"]

Scoped = Callable[[Callable[..., Any]], Callable[..., Any]]


@dataclasses.dataclass(frozen=True)
class Place:
    """Where one worker computes."""

    # The backend of its arrays, or a `BackendRecipe`: how another process makes one.
    # None: that of the context in which the workers were made.
    backend: Any = None
    # The name of its workspace, if it has one, and the policies.
    workspace: str | None = None
    config: ndx.WorkspaceConfig | None = None
    # The device, if devices were asked for.
    device: Any = None

    @contextlib.contextmanager
    def used(self) -> Iterator[ndx.Workspace | None]:
        """Make the backend current, until the end of the scope.

        Yields the calling thread's workspace, or None. As a decorator, it has calls of
        a function run in it, and detaches the arrays of their results.
        """
        backend = self.backend
        if isinstance(backend, ndx.memory.BackendRecipe):
            backend = backend.make()
        with contextlib.nullcontext() if backend is None else ndx.use(backend):
            yield (
                None
                if self.workspace is None
                else ndx.workspace(self.workspace, config=self.config)
            )

    @contextlib.contextmanager
    def entered(self) -> Iterator[Scoped]:
        """Give this thread the backend and the workspace, until the end of the scope.

        Yields the workspace, or another decorator. All workspaces of the thread are
        destroyed at the end.
        """
        with self.used() as workspace:
            try:
                yield unchanged if workspace is None else workspace
            finally:
                # The pool keeps the memory, for whoever comes next.
                ndx.memory.destroy_all(trim=False)

    def moved(self, tree: Any) -> Any:
        """Return what a worker is given, on the device of the place, if it has one.

        Arrays of NumPy become arrays of ndx, as in a prefetch. Called in the worker's
        scope: copies lie in its workspace.
        """
        return tree if self.device is None else map_tree(self._moved_leaf, tree)

    def _moved_leaf(self, leaf: Any) -> Any:
        if is_array_of_numpy(leaf):
            return ndx.asarray(leaf, device=self.device)
        if isinstance(leaf, ndx.NDArray) and leaf.device != self.device:
            return leaf.to_device(self.device)
        return leaf

    def elsewhere(self, *, forked: bool) -> Place:
        """Return the same for another process, which makes backends of its own.

        Raises TypeError if a process that is not forked can't make this one.
        """
        backend = ndx.current_backend() if self.backend is None else self.backend
        return dataclasses.replace(
            self, backend=ndx.memory.BackendRecipe.of(backend, forked=forked)
        )


def unchanged(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function: the decorator of those who have no workspace."""
    return function


def places(
    workers: int | None,
    *,
    workspace: str | None,
    config: ndx.WorkspaceConfig | None,
    backend: Any = None,
    devices: Sequence[Any] | None = None,
) -> list[Place]:
    """Return the place of each worker, or raise because of a bad argument.

    Without a number of workers there is one for each device, or for each core.
    """
    if workspace is not None and not isinstance(workspace, str):
        raise TypeError(
            "workspace must be a name (str), or None for no workspace, not "
            f"{type(workspace).__name__}; policies are config=ndx.WorkspaceConfig(...)"
        )
    if config is not None and not isinstance(config, ndx.WorkspaceConfig):
        raise TypeError(
            f"config must be an ndx.WorkspaceConfig, not {type(config).__name__}"
        )
    if config is not None and workspace is None:
        raise ValueError(
            "config= is for the workers' workspaces, and workspace=None asks for "
            "none; give one of the two"
        )
    if workspace is not None:
        config = _usual_config() if config is None else config
    if backend is not None and devices is not None:
        raise ValueError(
            "backend= and devices= both say where the workers compute; give one: "
            "devices=['cuda:0', 'cuda:1'] gives each worker the next"
        )
    found = [_backend_of(each) for each in _checked(devices)] or [
        (None if backend is None else ndx.backends.get(backend), None)
    ]
    if workers is None:
        workers = len(found) if devices else ndx.get_num_threads()
    return [
        Place(source, workspace, config, device)
        for source, device in itertools.islice(
            itertools.cycle(found), check_count(workers, "workers")
        )
    ]


def _usual_config() -> ndx.WorkspaceConfig:
    """Return the config of workers whose user gave none."""
    usual = ndx.memory.default_workspace_config()
    if usual != ndx.WorkspaceConfig():
        return usual
    # Items differ in size: the arena grows to what the largest needs.
    return ndx.WorkspaceConfig(spill="grow")


def _checked(devices: Any) -> list[Any]:
    if devices is None:
        return []
    if isinstance(devices, str) or not isinstance(devices, Sequence) or not devices:
        raise TypeError(
            "devices must be a list of devices, such as ['cuda:0', 'cuda:1'], not "
            f"{devices!r}"
        )
    return list(devices)


def _backend_of(device: Any) -> tuple[Any, Any]:
    """Return the backend of a device (None: the current one), and the device."""
    if str(device) != "cpu":
        return ndx.backends.get(str(device)), ndx.Device(str(device))
    on_cpu = str(ndx.current_backend().device) == "cpu"
    return (None if on_cpu else ndx.backends.get("host")), ndx.Device(str(device))
