from dpglm import demo


def test_the_demo_goes_the_whole_way(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(demo, "EPSILONS", (0.1, 1.0))
    demo.main(["--runs", "1", "--out", str(tmp_path / "demo")])
    shown = capsys.readouterr().out
    for part in (
        "epsilon = 1, delta", "capital_gain", "passes", "account census", "std err", "95 % interval",
        "always the larger class  76.38%", "marital_status=Married-civ-spouse", "evaluate",
    ):  # fmt: skip
        assert part in shown, part
    assert (tmp_path / "demo" / "privacy_accuracy.png").stat().st_size > 10_000
    page = (tmp_path / "demo" / "report.html").read_text(encoding="utf-8")
    assert "What is not covered" in page and "capital_gain" in page
