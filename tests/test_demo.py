from dpglm import demo


def test_the_demo_shows_the_promise_the_model_and_a_picture(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(demo, "EPSILONS", (0.1, 1.0))
    demo.main(["--runs", "1", "--out", str(tmp_path / "picture.png")])
    shown = capsys.readouterr().out
    assert (
        "epsilon = 1, delta" in shown
        and any(name in shown for name in ("marital status", "education", "capital gain", "relationship"))
        and "always the larger class  76.38%" in shown
    )
    assert (tmp_path / "picture.png").stat().st_size > 10_000
