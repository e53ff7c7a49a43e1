"""Roles of arrays in a model, and the workspace of each."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from difflib import get_close_matches
from enum import StrEnum
from types import EllipsisType
from typing import Any, TypeAlias

import ndx

__all__ = ["Place", "Role", "Roles"]

# ---- Roles ---------------------------------------------------------------------------


class Role(StrEnum):
    """The usual roles of arrays in a model; any other name is a role, too.

    Each is a str: ``"inputs"``, ``"outputs"``, ``"activations"`` (what a layer hands
    on), ``"gradients"`` (of a loss by activations), ``"forward"`` and ``"backward"``
    (working memory within a layer), ``"loop_forward"`` and ``"loop_backward"`` (within
    a step of a recurrent layer), ``"updater"`` (working memory of the optimizer),
    ``"cache"`` (kept from the forward pass for the backward pass).

    Notes
    -----
    ND4J's ``ArrayType``: ``INPUT``, ``ACTIVATIONS``, ``ACTIVATION_GRAD``,
    ``FF_WORKING_MEM``, ``BP_WORKING_MEM``, ``RNN_FF_LOOP_WORKING_MEM``,
    ``RNN_BP_LOOP_WORKING_MEM``, ``UPDATER_WORKING_MEM``, ``FF_CACHE``; outputs have a
    workspace without a type there.

    Examples
    --------
    >>> import ndx
    >>> ndx.Role.FORWARD == "forward"
    True
    """

    INPUTS = "inputs"
    OUTPUTS = "outputs"
    ACTIVATIONS = "activations"
    GRADIENTS = "gradients"
    FORWARD = "forward"
    BACKWARD = "backward"
    LOOP_FORWARD = "loop_forward"
    LOOP_BACKWARD = "loop_backward"
    UPDATER = "updater"
    CACHE = "cache"


class Roles(Mapping[str, "ndx.Workspace | None"]):
    """Which workspace serves which role; code that names roles runs with any of them.

    A model says what its arrays are *for*: ``roles.create("activations", shape)``. A
    mapping of roles says where such arrays live. With another mapping, the same model
    trains, infers, or runs without workspaces.

    Parameters
    ----------
    places : mapping
        The place of each role, by any names (`Role` has the usual ones):

        - a str: the workspace of that name, of the thread that asks;
        - a pair (str, `ndx.WorkspaceConfig`): the same, made with that config;
        - a `ndx.WorkspaceConfig`: the workspace ``"roles:<role>"`` with it;
        - a `ndx.Workspace`: that one, for its own thread only;
        - None: no workspace; such arrays are independent.

        Roles with the same name or workspace share its memory.
    default : place, optional
        The place of all roles that are not in `places`. Without it, they are errors.

    Raises
    ------
    TypeError
        If a role is no str, or a place is none of these.

    Notes
    -----
    ``roles[role]`` is the workspace that the calling thread has for a role, or None.
    ``roles | {"gradients": None}`` is a copy with other places. An instance never
    changes, and may be used from any thread.

    ND4J's ``LayerWorkspaceMgr``: ``create`` and ``createUninitialized``, ``dup`` (here
    `copy`), ``leverageTo``, ``notifyScopeEntered`` (`scope`), ``notifyScopeBorrowed``
    (`borrow`), ``validateArrayLocation`` (`validate`), ``assertOpen``,
    ``assertNotOpen``, ``assertCurrentWorkspace``, ``noWorkspaces`` (`none`).

    Examples
    --------
    >>> import ndx
    >>> roles = ndx.Roles({"activations": "acts", "forward": "work"})
    >>> def layer(roles, x):
    ...     with roles.scope("forward"):
    ...         z = x * 2 + 1                       # working memory
    ...         return roles.leverage_to("activations", z)
    >>> for _ in range(2):
    ...     with roles.scope("activations"):
    ...         y = layer(roles, ndx.ones(3))
    ...         print(y.workspace, layer(ndx.Roles.none(), ndx.ones(3)).workspace)
    acts None
    acts None
    """

    __slots__ = ("_default", "_places")

    def __init__(
        self,
        places: Mapping[str, Place] | None = None,
        /,
        *,
        default: Place | EllipsisType = ...,
    ) -> None:
        if places is not None and not isinstance(places, Mapping):
            raise TypeError(
                "places must be a mapping, {role: place}, not "
                f"{type(places).__name__}; one place for all roles is default="
            )
        self._places = {
            checked_name(role): parse(role, place)
            for role, place in (places or {}).items()
        }
        self._default: Place | EllipsisType = default
        if default is not ...:
            parse("default", default)

    @classmethod
    def none(cls) -> Roles:
        """Return roles of which none is in a workspace, whatever their names.

        Returns
        -------
        Roles
            `create` makes independent arrays, `leverage_to` detaches, `scope` suspends
            the workspaces around it (as `ndx.no_workspace`).

        Examples
        --------
        >>> import ndx
        >>> with ndx.workspace("step"):
        ...     x = ndx.Roles.none().create("anything", 3)
        >>> x.attached
        False
        """
        return cls(default=None)

    # ---- The mapping -----------------------------------------------------------------

    def __getitem__(self, role: str) -> ndx.Workspace | None:
        found = self._find(role)
        if found is None or isinstance(found, ndx.Workspace):
            return found
        name, config = found
        return ndx.workspace(name, config=config)

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, role: object) -> bool:
        return role in self._places

    def __or__(self, places: Mapping[str, Place]) -> Roles:
        if not isinstance(places, Mapping):
            return NotImplemented
        if isinstance(places, Roles):
            given: Mapping[str, Any] = places._places
            default = self._default if places._default is ... else places._default
        else:
            given, default = places, self._default
        return Roles({**self._places, **given}, default=default)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Roles):
            return NotImplemented
        return (self._places, self._default) == (other._places, other._default)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        if not self._places and self._default is None:
            return "Roles.none()"
        default = "" if self._default is ... else f", default={self._default!r}"
        return f"Roles({self._places!r}{default})"

    def _find(self, role: str) -> Found:
        try:
            return self._places[role]
        except KeyError:
            pass
        if self._default is not ...:
            return parse(checked_name(role), self._default)
        close = get_close_matches(str(role), self._places, 1)
        hint = f" (did you mean {close[0]!r}?)" if close else ""
        known = ", ".join(map(repr, self._places)) or "none"
        msg = f"there is no role {str(role)!r}{hint}; the roles here are {known}"
        raise ndx.WorkspaceError(msg)

    # ---- Scopes ----------------------------------------------------------------------

    def scope(self, *roles: str) -> AbstractContextManager[Any]:
        """Return a context manager that enters the workspaces of roles, in order.

        Parameters
        ----------
        *roles : str
            At least one. New arrays in the scope belong to the last one.

        Returns
        -------
        context manager
            ``as`` gives the workspace of the last role, or None. For a role in no
            workspace, new arrays are independent, whatever is open around it. A
            workspace that is open already goes on with its cycle. All are left in
            reverse order, also by an exception.

        Raises
        ------
        WorkspaceError
            If there is no such role.
        """
        if not roles:
            msg = "a scope needs at least one role, as in roles.scope('activations')"
            raise ValueError(msg)
        if len(roles) == 1:
            return scope_of(self[roles[0]])
        return Scopes([self[role] for role in roles])

    def borrow(self, role: str) -> AbstractContextManager[Any]:
        """Return a context manager that makes a role's open workspace current again.

        Unlike `scope`, it never starts a cycle.

        Parameters
        ----------
        role : str

        Returns
        -------
        context manager
            ``as`` gives the workspace, or None if the role is in none: then new arrays
            in its scope are independent.

        Raises
        ------
        WorkspaceError
            If there is no such role, or no scope of its workspace is open here.
        """
        workspace = self[role]
        if workspace is None:
            return scope_of(None)
        if not workspace.is_open_here:
            self.assert_open(role)
        return workspace.borrow()

    def assert_open(self, *roles: str) -> None:
        """Check that the workspaces of roles are open, in this thread or task.

        Parameters
        ----------
        *roles : str
            Those in no workspace pass.

        Raises
        ------
        WorkspaceError
            If one is not; it says which, and how to open it.
        """
        for role in roles:
            workspace = self[role]
            if workspace is not None and not workspace.is_open_here:
                raise ndx.WorkspaceError(
                    f"role {str(role)!r} is in {name_of(workspace)}, of which no scope "
                    "is open in this thread or task; enter it first: with "
                    f"roles.scope({str(role)!r}): ..."
                )

    def assert_not_open(self, *roles: str) -> None:
        """Check that no scope of the roles' workspaces is open in this thread or task.

        Parameters
        ----------
        *roles : str
            Those in no workspace pass. Default: all roles of the mapping.

        Raises
        ------
        WorkspaceError
            If one is open; it says which.
        """
        for role in roles or tuple(self):
            workspace = self[role]
            if workspace is not None and workspace.is_open_here:
                raise ndx.WorkspaceError(
                    f"role {str(role)!r} is in workspace {workspace.name!r}, which is "
                    "open here: a scope around this one, or one that was not left"
                )

    def assert_current(self, role: str) -> None:
        """Check that new arrays are made in a role's workspace, here and now.

        Parameters
        ----------
        role : str
            Of a role in no workspace: that new arrays are independent.

        Raises
        ------
        WorkspaceError
            If they are made elsewhere; it says where.
        """
        current, workspace = ndx.current_workspace(), self[role]
        if current is not workspace:
            raise ndx.WorkspaceError(
                f"role {str(role)!r} is in {name_of(workspace)}, but new arrays are "
                f"made in {name_of(current)}; enter it: with roles.scope("
                f"{str(role)!r}): ..."
            )

    # ---- Arrays ----------------------------------------------------------------------

    def create(
        self,
        role: str,
        shape: int | tuple[int, ...],
        dtype: Any = None,
        fill: complex | None = None,
    ) -> ndx.NDArray:
        """Return a new array in the workspace of a role, which must be open.

        Parameters
        ----------
        role : str
        shape : int or tuple of int
        dtype : dtype, optional
            Default: float64.
        fill : scalar, optional
            The value of all elements. None: whatever the memory has.

        Returns
        -------
        NDArray
            Independent, if the role is in no workspace.

        Raises
        ------
        WorkspaceError
            If there is no such role, or no scope of its workspace is open here.

        Examples
        --------
        >>> import ndx
        >>> ndx.Roles.none().create("gradients", (2, 2), dtype="float32", fill=0)
        NDArray([[0., 0.],
                 [0., 0.]], dtype=float32)
        """
        dtype = ndx.float64 if dtype is None else dtype
        with self.borrow(role):
            if fill is None:
                return ndx.empty(shape, dtype=dtype)
            if fill == 0:  # zeroed memory costs less than a fill
                return ndx.zeros(shape, dtype=dtype)
            return ndx.full(shape, fill, dtype=dtype)

    def copy(self, role: str, x: Any) -> ndx.NDArray:
        """Return a copy of an array in the workspace of a role, which must be open.

        Parameters
        ----------
        role : str
        x : NDArray, numpy.ndarray or anything that `ndx.asarray` takes

        Returns
        -------
        NDArray
            Always a new array; independent, if the role is in no workspace.

        Raises
        ------
        WorkspaceError
            If there is no such role, or no scope of its workspace is open here.
        """
        with self.borrow(role):
            return ndx.asarray(x, copy=True)

    def leverage_to(self, role: str, x: ndx.NDArray) -> ndx.NDArray:
        """Return an array in the workspace of a role: itself, or a copy.

        Parameters
        ----------
        role : str
        x : NDArray

        Returns
        -------
        NDArray
            `x`, if it is there already, or in no workspace; else a copy there. If the
            role is in no workspace: ``x.detach()``.

        Raises
        ------
        WorkspaceError
            If there is no such role, or no scope of its workspace is open here.
        StaleArrayError
            If `x` is stale.
        """
        workspace = self[role]
        check_array(x)
        if workspace is None:
            return x.detach()
        try:
            return x.leverage_to(workspace, missing="raise")
        except ndx.WorkspaceError:
            if not x.attached:
                return x
            self.assert_open(role)
            raise

    def validate(
        self,
        role: str,
        x: ndx.NDArray,
        migrate: bool = False,
        *,
        independent: bool = True,
    ) -> ndx.NDArray:
        """Check that an array lies where a role's arrays do; return it.

        Parameters
        ----------
        role : str
        x : NDArray
        migrate : bool
            Whether an array that lies elsewhere is copied there, instead of an error.
        independent : bool
            Whether an array in no workspace passes where the role is in one.

        Returns
        -------
        NDArray
            `x`, or its copy.

        Raises
        ------
        WorkspaceError
            If `x` lies elsewhere and `migrate` is false; it names both places. Or if
            there is no such role, or it has to be copied to a workspace of which no
            scope is open here.
        StaleArrayError
            If `x` is stale.

        Examples
        --------
        >>> import ndx
        >>> roles = ndx.Roles({"activations": "acts", "forward": "work"})
        >>> with roles.scope("activations", "forward"):
        ...     x = ndx.ones(3)
        ...     roles.validate("activations", x)
        Traceback (most recent call last):
            ...
        ndx.WorkspaceError: an array of shape (3,) is to be in workspace 'acts' ...
        """
        workspace = self[role]
        check_array(x)
        if not x.attached:
            if workspace is None or independent:
                return x
        else:
            if not x.in_scope:
                x.detach()  # raises the error that tells all about it
            if workspace is not None and workspace.owns(x):
                return x
        if migrate:
            if workspace is not None and not x.attached:
                return self.copy(role, x)
            return self.leverage_to(role, x)
        place = f"workspace {x.workspace!r}" if x.attached else "no workspace"
        raise ndx.WorkspaceError(
            f"an array of shape {x.shape} is to be in {name_of(workspace)} for role "
            f"{str(role)!r}, but it is in {place}; make it there (roles.create, "
            f"roles.scope), move it by roles.leverage_to({str(role)!r}, x), or give "
            "migrate=True"
        )

    def destroy(self) -> None:
        """Give back the memory of the roles' workspaces, of the calling thread.

        Raises
        ------
        WorkspaceError
            If a scope of one is open; those before it are destroyed then.

        See Also
        --------
        ndx.memory.destroy_all : all workspaces, of all threads if asked to.
        """
        for workspace in {
            id(ws): ws for ws in self.values() if ws is not None
        }.values():
            workspace.destroy()


# ---- Places --------------------------------------------------------------------------


Place: TypeAlias = (
    str
    | ndx.Workspace
    | ndx.WorkspaceConfig
    | tuple[str, ndx.WorkspaceConfig | None]
    | None
)
# A place in one form: a workspace of the thread by name and config, or one workspace.
Found: TypeAlias = tuple[str, ndx.WorkspaceConfig | None] | ndx.Workspace | None


class Scopes:
    """The scopes of several places, entered together and left in reverse order."""

    def __init__(self, places: list[ndx.Workspace | None]) -> None:
        self._places = places
        self._left: list[contextlib.ExitStack] = []

    def __enter__(self) -> ndx.Workspace | None:
        last: ndx.Workspace | None = None
        with contextlib.ExitStack() as stack:
            for place in self._places:
                last = stack.enter_context(scope_of(place))
            # Only now: if an entry fails, those before it are left by the stack above.
            self._left.append(stack.pop_all())
        return last

    def __exit__(self, *error: Any) -> bool | None:
        return self._left.pop().__exit__(*error)


def scope_of(
    workspace: ndx.Workspace | None,
) -> contextlib.AbstractContextManager[ndx.Workspace | None]:
    """Return the context manager in which new arrays are made in a place."""
    return ndx.no_workspace() if workspace is None else workspace


def checked_name(role: object) -> str:
    if not isinstance(role, str):
        msg = f"a role is a str, such as 'activations', not {role!r}"
        raise TypeError(msg)
    return str(role)


def parse(role: str, place: Any) -> Found:
    """Return a place in one form."""
    if place is None or isinstance(place, ndx.Workspace):
        return place
    if isinstance(place, str):
        return (place, None)
    if isinstance(place, ndx.WorkspaceConfig):
        # Names of libraries' workspaces are kept apart from the user's by a prefix.
        return (f"roles:{role}", place)
    match place:
        case (str() as name, None | ndx.WorkspaceConfig() as config):
            return (name, config)
    raise TypeError(
        f"{place!r} is no place for role {str(role)!r}; valid are a workspace's name, "
        "a Workspace, a WorkspaceConfig, a pair (name, WorkspaceConfig), and None for "
        "no workspace"
    )


def check_array(x: object) -> None:
    """Raise TypeError if a value is no NDArray."""
    if not isinstance(x, ndx.NDArray):
        msg = f"a role is for NDArrays, not {type(x).__name__}: make one by roles.copy"
        raise TypeError(msg)


def name_of(workspace: ndx.Workspace | None) -> str:
    return "no workspace" if workspace is None else f"workspace {workspace.name!r}"
