"""The tool that runs NumPy's own tests with `ndx.numpy` in NumPy's place."""

import numpys_suite
import pytest


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("import numpy as np", "import ndx.numpy as np"),
        ("if True:\n    import numpy", "if True:\n    import ndx.numpy as numpy"),
        ("import numpy, sys", "import ndx.numpy as numpy, sys"),
        ("import a; import numpy as np; b", "import a; import ndx.numpy as np; b"),
        ("import a, \\\n  numpy as np\nb", "import a, ndx.numpy as np\nb"),
        ("import numpy.linalg as la", "import ndx.numpy.linalg as la"),
        ("import numpy.ma", "import ndx.numpy as numpy"),
        ("from numpy import sin, cos", "from ndx.numpy import sin, cos"),
        ("from numpy import (\n    sin,\n)", "from ndx.numpy import (\n    sin,\n)"),
        ("from numpy.linalg import inv", "from ndx.numpy.linalg import inv"),
        ("'é'; from numpy import sin", "'é'; from ndx.numpy import sin"),
        ("from .numpy import sin", "from .numpy import sin"),
        ("import numpydoc", "import numpydoc"),
        ("from autograd.numpy import sin", "from autograd.numpy import sin"),
        ("import autograd.numpy as np", "import autograd.numpy as np"),
        ("'import numpy as np'", "'import numpy as np'"),
    ],
)  # fmt: skip
def test_imports_are_replaced(source, expected):
    assert numpys_suite.rewritten(source) == expected
    assert numpys_suite.rewritten(expected) == expected
