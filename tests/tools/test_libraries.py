"""The tool that runs other libraries' tests with `ndx.numpy` in NumPy's place."""

import libraries

LIBRARY = {"name": "some", "version": "1.0", "tests": ["tests"]}
DIFFERENCE = {"cause": "A reason.", "tests": ["*::test_b*"]}


def found(**outcomes):
    numpys = {f"t::{name}": "passed" for name in outcomes} | {"t::bad": "failure"}
    ours = {f"t::{name}": outcome for name, outcome in outcomes.items()}
    return {"numpy": numpys, "ndx.numpy": ours}


def test_only_what_is_in_the_table_may_differ(capsys):
    good = found(test_a="passed", test_b="passed")
    differing = found(test_a="passed", test_b="failure")
    assert libraries.judge(LIBRARY, good) == []
    assert "t::test_b" in libraries.judge(LIBRARY, differing)[0]
    known = LIBRARY | {"differences": [DIFFERENCE]}
    assert libraries.judge(known, differing) == []
    assert "nothing differs" in libraries.judge(known, good)[0]
    assert (
        "no test passes" in libraries.judge(LIBRARY, {"numpy": {}, "ndx.numpy": {}})[0]
    )
    assert "50.0%" in capsys.readouterr().out
