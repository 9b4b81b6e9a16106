"""The look of the pictures in the gallery."""

from typing import Any


def reset(gallery_conf: Any, fname: Any) -> None:
    """Set matplotlib's defaults before each example."""
    import matplotlib
    from cycler import cycler

    matplotlib.rcParams.update(
        {
            "figure.figsize": (7.2, 4.0),
            "figure.dpi": 110,
            "figure.constrained_layout.use": True,
            "axes.prop_cycle": cycler(color=["#2b6cb0", "#dd8a1c", "#4b9a6a", "#b0413e", "#7a6bb0"]),
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.titlelocation": "left",
            "axes.titleweight": "bold",
            "axes.grid": True,
            "axes.axisbelow": True,
            "grid.alpha": 0.25,
            "legend.frameon": False,
            "font.size": 10.5,
        }
    )
