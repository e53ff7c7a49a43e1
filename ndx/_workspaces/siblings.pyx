"""Families of workspaces: the one found by name, and its siblings.

Siblings are made for tasks that are inside at the same time. A free sibling is used
again, so that there are never more of them than tasks were inside at once.
"""

import weakref

from ndx._context.context cimport Scope, is_here

from ndx._workspaces.owners import all_workspaces


cdef class Member(Scope):
    """Base class of workspaces: a member of the family of its name."""

    cdef list family(self):
        """Return the members of the family, the first one first."""
        cdef Member first = self if self.first is None else self.first()
        if first is None or first.siblings is None:
            return [self]
        return [first, *first.siblings]

    cdef list peers(self):
        return self.family() if self.related else [self]

    cdef Member entered_here(self):
        """Return the member that this thread or task has entered; None: no member."""
        cdef Member each
        for each in self.peers():
            if each.is_entered_here():
                return each
        return None

    cdef bint is_entered_here(self):
        return self.top is not None and is_here(self.top.context)

    cdef int add_sibling(self, Member made) except -1:
        """Make another workspace a sibling of this one, the first of its family."""
        if self.siblings is None:
            self.siblings = []
        made.first = weakref.ref(self)
        made.place = 1
        if self.siblings:
            made.place += (<Member>self.siblings[len(self.siblings) - 1]).place
        self.siblings.append(made)
        self.related = made.related = True
        return 0

    cdef int leave_family(self) except -1:
        """Remove this sibling from its family: undo `add_sibling`."""
        cdef Member first = self.family()[0]
        if first is not self:
            first.siblings.remove(self)
            first.related = len(first.siblings) > 0
        self.stand_alone()
        all_workspaces.discard(self)
        return 0

    cdef int stand_alone(self) except -1:
        """Make this a workspace without a family."""
        self.first = None
        self.related = False
        self.place = 0
        return 0
