"""Plans: workspaces for training and for inference; and the switch of all tools."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, TypeAlias

import ndx
from ndx._pipelines.arguments import check_choice
from ndx._pipelines.roles import Place, Role, Roles

__all__ = [
    "Mode",
    "WorkspacePlan",
    "has_workspaces",
    "use_workspaces",
    "workspaces_used",
]

# ---- The switch ----------------------------------------------------------------------


_used = True


class _Switch:
    """What `use_workspaces` returns: the state, and the way back to the one before."""

    def __init__(self, used: bool, before: bool) -> None:
        self._used, self._before = used, before

    def __bool__(self) -> bool:
        return self._used

    def __repr__(self) -> str:
        return f"ndx.use_workspaces({self._used})"

    def __enter__(self) -> bool:
        return self._used

    def __exit__(self, *error: object) -> None:
        global _used
        _used = self._before


def workspaces_used() -> bool:
    """Return whether the tools may use workspaces now."""
    return _used


def use_workspaces(enabled: bool | None = None, /) -> _Switch:
    """Set whether ndx's tools use workspaces by themselves; in the whole process.

    The tools are those that enter workspaces for their callers: `ndx.evaluate`,
    `ndx.WorkspacePlan` and the like. They do by default. Scopes that the program
    enters itself (``with ndx.workspace(...)``, `ndx.Roles` that it made) are as ever.

    Parameters
    ----------
    enabled : bool, optional
        The new state, for all threads: it takes effect at once, for the tools that
        start from now on. None: leave it as it is.

    Returns
    -------
    context manager
        True or false as the state. As a context manager it restores the state before
        the call when its scope ends.

    Raises
    ------
    TypeError
        If `enabled` is neither a bool nor None.

    Notes
    -----
    To find out whether workspaces are at fault for something:
    `ndx.memory.debug_mode` acts on all workspaces, the program's own included.

    Examples
    --------
    >>> import ndx
    >>> with ndx.use_workspaces(False):
    ...     bool(ndx.use_workspaces()), ndx.WorkspacePlan().training()["activations"]
    (False, None)
    >>> bool(ndx.use_workspaces())
    True
    """
    global _used
    if enabled is not None and not isinstance(enabled, bool):
        raise TypeError(
            f"use_workspaces takes True, False or None, not {enabled!r} of type "
            f"{type(enabled).__name__}"
        )
    before = _used
    if enabled is not None:
        _used = enabled
    return _Switch(_used, before)


# ---- Plans ---------------------------------------------------------------------------


Mode: TypeAlias = Literal["enabled", "none", "single", "separate"]

# The last two are ND4J's: since its 1.0.0-alpha they mean the first one there, too.
_MODES = {"enabled": True, "none": False, "single": True, "separate": True}
# Needs that change from turn to turn (a shorter last batch, a wider layer) enlarge the
# arena from the next turn on.
_CONFIG = ndx.WorkspaceConfig(learn="liveness", spill="grow")


class WorkspacePlan:
    """Which workspaces serve a model's training, and which its inference.

    Parameters
    ----------
    training, inference : {"enabled", "none", "single", "separate"}
        How the roles of each phase are placed, independently of each other:

        - ``"enabled"``: one arena for all roles, planned by lifetimes: it is about as
          large as the peak of live bytes, and nothing is copied between roles;
        - ``"none"``: no workspaces;
        - ``"single"``, ``"separate"``: ND4J's words for ``"enabled"``.
    name : str
        The workspaces are called ``"<name>:training"`` and ``"<name>:inference"``.
        Models with the same name share them. Each thread has its own.
    roles : iterable of str
        The roles of the model. Default: those of `Role`.
    config : ndx.WorkspaceConfig, optional
        The policies of the arenas.

    Raises
    ------
    ValueError
        If there is no such mode; it lists the valid ones.

    See Also
    --------
    Roles : An arena for each role, say, or one that holds the sum of a turn's arrays.

    Notes
    -----
    ND4J's ``trainingWorkspaceMode`` and ``inferenceWorkspaceMode``, of which ``SINGLE``
    and ``SEPARATE`` mean ``ENABLED`` since 1.0.0-alpha.

    Examples
    --------
    >>> import ndx
    >>> def forward(roles, x):
    ...     with roles.scope("activations"):
    ...         return float(ndx.sum(x * 2))
    >>> plan = ndx.WorkspacePlan(inference="none", name="doubling")
    >>> x = ndx.ones(3)
    >>> forward(plan.training(), x), forward(plan.inference(), x)
    (6.0, 6.0)
    >>> plan.training()["activations"].name, plan.inference()["activations"]
    ('doubling:training', None)
    """

    __slots__ = ("_modes", "_name", "_placed", "_without")

    def __init__(
        self,
        training: Mode = "enabled",
        inference: Mode = "enabled",
        *,
        name: str = "model",
        roles: Iterable[str] = tuple(Role),
        config: ndx.WorkspaceConfig | None = None,
    ) -> None:
        _check_types(name, roles, config)
        self._modes = {"training": training, "inference": inference}
        self._name, self._without = name, Roles(dict.fromkeys(roles))
        # Roles never change: each step may ask for them.
        self._placed = {phase: self._make(phase, config) for phase in self._modes}

    def training(self) -> Roles:
        """Return the roles for training.

        Returns
        -------
        Roles
            All in no workspace while ``ndx.use_workspaces(False)`` holds.
        """
        return self._used("training")

    def inference(self) -> Roles:
        """Return the roles for inference.

        Returns
        -------
        Roles
            All in no workspace while ``ndx.use_workspaces(False)`` holds.
        """
        return self._used("inference")

    def destroy(self) -> None:
        """Give back the memory of the plan's workspaces, of the calling thread.

        Raises
        ------
        WorkspaceError
            If a scope of one is open.
        """
        for roles in self._placed.values():
            roles.destroy()

    def _used(self, phase: str) -> Roles:
        return self._placed[phase] if workspaces_used() else self._without

    def _make(self, phase: str, config: ndx.WorkspaceConfig | None) -> Roles:
        place: Place = None
        if has_workspaces(phase, self._modes[phase], "a WorkspacePlan"):
            place = (f"{self._name}:{phase}", config or _CONFIG)
        return Roles(dict.fromkeys(self._without, place))

    def __repr__(self) -> str:
        modes = ", ".join(f"{phase}={mode!r}" for phase, mode in self._modes.items())
        return f"WorkspacePlan({modes}, name={self._name!r})"


def has_workspaces(name: str, mode: Any, tool: str) -> bool:
    """Return whether a tool's mode, an argument of a name, is one with workspaces."""
    check_choice(name, mode, tuple(_MODES), f"is no mode of {tool}")
    return _MODES[mode]


def _check_types(name: object, roles: object, config: object) -> None:
    if not isinstance(name, str):
        msg = f"the name of a plan is a str, not {name!r}"
        raise TypeError(msg)
    if isinstance(roles, str):
        msg = f"roles={roles!r} is one str; give the names of all roles, as a list"
        raise TypeError(msg)
    if config is not None and not isinstance(config, ndx.WorkspaceConfig):
        msg = f"config must be a WorkspaceConfig, not {config!r}"
        raise TypeError(msg)
