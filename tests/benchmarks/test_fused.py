"""The benchmark of fused expressions: it runs, and its checks can fail."""

import fused


def test_its_table(capsys, monkeypatch):
    monkeypatch.setattr(fused, "CASES", [fused.CASES[0], fused.CASES[4]])
    assert fused.main(["--quick"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].split()[:2] == ["expression", "10"]
    assert lines[2].startswith("stencil_2d")


def test_missed_targets():
    case = fused.CASES[3]
    assert fused.missed(case, {"plain": 0.4, "fused": 0.2, "numexpr": 0.5}) == []
    assert len(fused.missed(case, {"plain": 0.6, "fused": 0.3, "numexpr": 0.3})) == 3
