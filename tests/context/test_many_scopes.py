"""More scopes within each other than calls fit on the C stack."""

import contextvars

import ndx

MANY = 200_000


def test_one_below_many_is_left_elsewhere():
    with ndx.use("host"):
        outer = ndx.memory.LimitingAdaptor("host", "1KiB")
        scopes = [ndx.use(outer), *[ndx.use("host") for _ in range(MANY)]]
        own = contextvars.copy_context()

        def enter():
            for scope in scopes:
                scope.__enter__()

        own.run(enter)
        contextvars.Context().run(
            scopes[0].__exit__, GeneratorExit, GeneratorExit(), None
        )
        assert own.run(ndx.ones, 3).tolist() == [1.0] * 3
        assert outer.stats()["allocated_bytes"] == 0


def test_hollow_scopes_serve_as_the_one_below_them():
    limited = [ndx.memory.LimitingAdaptor("host", f"{i}MiB") for i in (1, 2, 3)]
    own = contextvars.copy_context()
    scopes = [ndx.use(adaptor) for adaptor in limited]
    for scope in scopes:
        own.run(scope.__enter__)
    elsewhere = contextvars.Context()
    for left, serving in ((1, limited[2]), (2, limited[0])):
        elsewhere.run(scopes[left].__exit__, GeneratorExit, GeneratorExit(), None)
        assert own.run(ndx.ones, 3).backend is serving
    own.run(scopes[0].__exit__, None, None, None)
