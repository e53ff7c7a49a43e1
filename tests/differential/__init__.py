"""Every function of the namespace, drawn calls, against NumPy and array-api-strict.

One module per chapter holds a table: a row per function says how its calls are drawn
and where its answers are *not* NumPy's, with the reason. `test_differential` runs them
all, and fails for a public function without a row.
"""
