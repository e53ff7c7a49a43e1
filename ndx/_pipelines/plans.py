"""Plans: which workspaces serve a model's training, and which its inference."""

from __future__ import annotations

from collections.abc import Iterable

import ndx
from ndx._pipelines.modes import Mode, check_mode
from ndx._pipelines.role_places import Place
from ndx._pipelines.roles import Role, Roles
from ndx._pipelines.switch import workspaces_used

__all__ = ["WorkspacePlan"]

# What the arenas of a mode are like. Needs that change from turn to turn (a shorter
# last batch, a wider layer) enlarge all of them from the next turn on.
_CONFIGS = {
    "enabled": ndx.WorkspaceConfig(learn="liveness", spill="grow"),
    "single": ndx.WorkspaceConfig(overallocation=0.05, spill="grow"),
    "separate": ndx.WorkspaceConfig(overallocation=0.05, spill="grow"),
}


class WorkspacePlan:
    """Which workspaces serve a model's training, and which its inference.

    Parameters
    ----------
    training, inference : {"enabled", "none", "single", "separate"}
        How the roles of each phase are placed, independently of each other:

        - ``"enabled"``: one arena for all roles, planned by lifetimes: it is about as
          large as the peak of live bytes, and nothing is copied between roles;
        - ``"none"``: no workspaces;
        - ``"separate"`` (deprecated): an arena for each role. Working memory is
          reclaimed as soon as the scope of its role ends, so that the next layer uses
          it again; results are copied from role to role;
        - ``"single"`` (deprecated): one arena for all roles, which holds all arrays of
          a turn: nothing is copied, but it is larger.
    name : str
        Workspaces are called ``"<name>:training"``, ``"<name>:inference"`` or, for
        ``"separate"``, ``"<name>:training:activations"`` and so on. Models with the
        same name and modes share them. Each thread has its own.
    roles : iterable of str
        The roles of the model. Default: those of `Role`.
    config : ndx.WorkspaceConfig, optional
        The policies of all arenas, in place of those of the modes.

    Raises
    ------
    ValueError
        If there is no such mode; it lists the valid ones.

    Warns
    -----
    DeprecationWarning
        For ``"single"`` and ``"separate"``, the modes of ND4J that ``"enabled"``
        replaces.

    Notes
    -----
    ND4J's ``trainingWorkspaceMode`` and ``inferenceWorkspaceMode``, of which ``SINGLE``
    and ``SEPARATE`` mean ``ENABLED`` since 1.0.0-alpha. Here they do what they say; the
    documentation (pipelines) has the measured differences.

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
        for phase, mode in self._modes.items():
            check_mode(phase, mode, "a WorkspacePlan")
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
        mode = self._modes[phase]
        places: dict[str, Place] = dict.fromkeys(self._without)
        if mode != "none":
            config = config or _CONFIGS[mode]
            shared = f"{self._name}:{phase}"
            for role in self._without:
                name = f"{shared}:{role}" if mode == "separate" else shared
                places[role] = (name, config)
        return Roles(places)

    def __repr__(self) -> str:
        modes = ", ".join(f"{phase}={mode!r}" for phase, mode in self._modes.items())
        return f"WorkspacePlan({modes}, name={self._name!r})"


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
