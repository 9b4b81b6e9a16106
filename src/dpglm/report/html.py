"""Parts of the report's page. All functions take plain text and escape it, unless they say HTML."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

STYLE = """
:root{color-scheme:light dark;--page:#faf8f4;--card:#fff;--ink:#1d2126;--soft:#555d66;--line:#ddd8ce;
--accent:#0b6b50;--pale:#d9ece4;--good:#0b6b50;--bad:#ad2a1a;--warm:#a8480f;--track:#e7e3da;--onpart:#fff;
--p0:#0b6b50;--p1:#31607f;--p2:#7a5195;--p3:#a8480f;--p4:#6b6f2a;--p5:#566069;
--serif:Charter,"Bitstream Charter","Sitka Text",Cambria,Georgia,serif;
--sans:system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue","Noto Sans",sans-serif;
--mono:ui-monospace,"Cascadia Mono","SF Mono",Menlo,Consolas,"DejaVu Sans Mono",monospace}
@media(prefers-color-scheme:dark){:root{--page:#14171a;--card:#1c2126;--ink:#e9e6df;--soft:#a8b0b8;
--line:#39414a;--accent:#5fcfa6;--pale:#1d3a31;--good:#5fcfa6;--bad:#ff9a8b;--warm:#f0a26b;--track:#2d343b;
--onpart:#10151a;--p0:#5fcfa6;--p1:#7fb5dd;--p2:#c8a2e0;--p3:#f0a26b;--p4:#c7cb7a;--p5:#aab4bd}}
*{box-sizing:border-box}html{-webkit-text-size-adjust:100%;scroll-behavior:smooth}
body{margin:0;background:var(--page);color:var(--ink);font:1.0625rem/1.6 var(--sans);
font-variant-numeric:tabular-nums}
.skip{position:absolute;left:-999rem}.skip:focus{left:1rem;top:1rem;background:var(--card);padding:.5rem 1rem}
header,main,footer{max-width:50rem;margin:0 auto;padding:0 1.25rem}
header{padding-top:3rem}.over{color:var(--soft);letter-spacing:.08em;text-transform:uppercase;
font-size:.8rem;font-weight:600;margin:0}
h1,h2,h3{font-family:var(--serif);line-height:1.2;font-weight:600;text-wrap:balance}
h1{font-size:clamp(1.55rem,6.2vw,2.7rem);margin:.4rem 0 .3rem;overflow-wrap:anywhere}
h2{font-size:1.6rem;margin:0 0 .7rem}h3{font-size:1.15rem;margin:2rem 0 .4rem}
p{margin:0 0 .9rem;max-width:42rem}.lead{color:var(--soft);font-size:1.1rem}
section{margin:3.4rem 0 0;scroll-margin-top:1rem}
.card{background:var(--card);border:1px solid var(--line);border-radius:14px;
padding:clamp(1.1rem,4vw,1.9rem);margin:1.6rem 0 0;box-shadow:0 1px 2px rgb(0 0 0/.05)}
.card>:last-child{margin-bottom:0}.card .say{font:1.28rem/1.5 var(--serif);margin:.9rem 0 1.2rem}
.badge{display:inline-block;border-radius:99px;padding:.1rem .8rem;font-size:.85rem;font-weight:650;
border:1.5px solid currentColor;color:var(--good)}.badge.bad{color:var(--bad)}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(7rem,1fr));gap:.9rem 1.4rem;
margin:1.3rem 0 0;padding:0}
.tiles div{border-top:2px solid var(--accent);padding-top:.45rem}
.tiles dt{color:var(--soft);font-size:.86rem;line-height:1.35}
.tiles dd{margin:0;font:600 1.55rem/1.25 var(--serif)}
.tiles div{display:flex;flex-direction:column-reverse;justify-content:flex-end}
nav ul{list-style:none;display:flex;flex-wrap:wrap;gap:.2rem 1.1rem;padding:0;margin:1.4rem 0 0}
nav{font-size:.95rem}a{color:var(--accent);text-underline-offset:.18em}
a:focus-visible,summary:focus-visible,[tabindex]:focus-visible{outline:3px solid var(--accent);
outline-offset:2px;border-radius:4px}figure{margin:1.3rem 0 1.5rem}
figcaption{color:var(--soft);font-size:.92rem;margin-bottom:.6rem;max-width:42rem}
.scroll{overflow-x:auto;margin:1rem 0 1.3rem}
table{border-collapse:collapse;width:100%;font-size:.94rem;line-height:1.4}
caption{text-align:left;color:var(--soft);font-size:.9rem;padding-bottom:.4rem}
th,td{text-align:left;vertical-align:top;padding:.42rem 1rem .42rem 0;border-bottom:1px solid var(--line)}
thead th{color:var(--soft);font-weight:600;font-size:.84rem;vertical-align:bottom}
tbody th{font-weight:550}td.n,th.n{text-align:right;white-space:nowrap}td.w{white-space:nowrap}
tr>:last-child{padding-right:0}.this{background:var(--pale)}
dl.facts{display:grid;grid-template-columns:minmax(8rem,13rem) 1fr;gap:0;margin:1rem 0;font-size:.97rem}
dl.facts dt{color:var(--soft);padding:.45rem 1rem .45rem 0;border-top:1px solid var(--line)}
dl.facts dd{margin:0;padding:.45rem 0;border-top:1px solid var(--line);overflow-wrap:anywhere}
.legend{list-style:none;padding:0;margin:.5rem 0 0;display:grid;gap:.3rem;font-size:.95rem}
.legend li{display:flex;gap:.6rem;align-items:baseline}.legend i{flex:none;width:.8rem;height:.8rem;
border-radius:3px;transform:translateY(.08rem)}.legend b{margin-left:auto;font-weight:600;white-space:nowrap}
.c0{background:var(--p0)}.c1{background:var(--p1)}.c2{background:var(--p2)}.c3{background:var(--p3)}
.c4{background:var(--p4)}.c5{background:var(--p5)}.ct{background:var(--track)}
ul.plain{padding-left:1.2rem}ul.plain li{margin:.3rem 0;max-width:42rem}
.note{border-left:3px solid var(--line);padding:.1rem 0 .1rem 1rem;color:var(--soft);max-width:42rem}
.alarm{border-left-color:var(--bad);color:var(--ink)}
details{margin:1rem 0}summary{cursor:pointer;color:var(--accent);font-weight:550}
pre,code{font-family:var(--mono);font-size:.84em}pre{background:var(--card);border:1px solid var(--line);
border-radius:10px;padding:1rem;white-space:pre-wrap;overflow-wrap:anywhere}code{overflow-wrap:anywhere}
footer{color:var(--soft);font-size:.9rem;margin-top:4rem;padding-bottom:3rem}
svg.chart{display:block;overflow:visible;font:14px var(--sans)}.chart text{fill:var(--ink)}
.chart .soft{fill:var(--soft)}.chart .small{font-size:12.5px}.chart .strong{font-weight:650}
.chart .label{font-weight:550}.chart .halo{paint-order:stroke;stroke:var(--page);stroke-width:4px}
.chart .onpart{fill:var(--onpart);font-weight:600}.track{fill:var(--track)}.accent{fill:var(--accent)}
.part0{fill:var(--p0)}.part1{fill:var(--p1)}.part2{fill:var(--p2)}.part3{fill:var(--p3)}
.part4{fill:var(--p4)}.part5{fill:var(--p5)}.grid{stroke:var(--line)}.tick{stroke:var(--ink);stroke-width:1.5}
.zero{stroke:var(--soft);stroke-dasharray:3 3}.area{fill:var(--pale)}
.stroke{fill:none;stroke:var(--accent);stroke-width:2.5;vector-effect:non-scaling-stroke}
.mark{fill:var(--accent)}.plus{stroke:var(--p0)}.minus{stroke:var(--p3)}.mark.plus{fill:var(--p0)}
.mark.minus{fill:var(--p3)}circle.mark{stroke:var(--page);stroke-width:1.5}
.interval{stroke-width:4;stroke-linecap:round;opacity:.6}.stem{stroke-width:2.5;opacity:.6}
@media(max-width:34rem){header{padding-top:1.8rem}section{margin-top:2.6rem}dl.facts{display:block}
dl.facts dt{padding-bottom:0}dl.facts dd{border:0;padding-top:.1rem}.chart .more{display:none}
.stack,.stack caption,.stack tbody,.stack tr,.stack th,.stack td{display:block}.stack thead{position:absolute;
width:1px;height:1px;overflow:hidden;clip-path:inset(50%)}.stack tr{padding:.7rem 0;
border-bottom:1px solid var(--line)}.stack tbody th,.stack td{border:0;padding:.05rem 0;
text-align:left!important;white-space:normal!important;overflow-wrap:anywhere}
.stack td::before{content:attr(data-name) ": ";color:var(--soft)}.stack td:empty{display:none}}
@media print{:root{color-scheme:light;--page:#fff;--card:#fff;--ink:#000;--soft:#444;--line:#bbb;
--accent:#0b6b50;--pale:#e3efe9;--good:#0b6b50;--bad:#ad2a1a;--track:#e5e5e5;--onpart:#fff;--p0:#0b6b50;
--p1:#31607f;--p2:#7a5195;--p3:#a8480f;--p4:#6b6f2a;--p5:#566069}
body{font-size:10.5pt}header,main,footer{max-width:none;padding:0}nav,.skip{display:none}
section{margin-top:1.6rem}.card,figure,tr,.legend li{break-inside:avoid}h2,h3{break-after:avoid}
.card{box-shadow:none}.scroll{overflow:visible}details::details-content{content-visibility:visible;height:auto}
*{print-color-adjust:exact;-webkit-print-color-adjust:exact}@page{margin:18mm 16mm}}
"""


THIS = ' class="this"'
"""Marks a row that stands out."""


def section(name: str, title: str, *parts: str) -> str:
    """A section of HTML parts that the contents can point to."""
    return (
        f'<section id="{name}" aria-labelledby="{name}-h"><h2 id="{name}-h">{escape(title)}</h2>'
        f"{''.join(parts)}</section>"
    )


def paragraph(words: str, kind: str = "") -> str:
    """A paragraph, or nothing if there are no words."""
    classed = f' class="{kind}"' if kind else ""
    return f"<p{classed}>{escape(words)}</p>" if words else ""


def heading(words: str) -> str:
    """A heading inside of a section."""
    return f"<h3>{escape(words)}</h3>"


def figure(chart: str, caption: str, below: str = "") -> str:
    """A chart in HTML under its caption; nothing without a chart."""
    return f"<figure><figcaption>{escape(caption)}</figcaption>{chart}{below}</figure>" if chart else ""


def facts(pairs: Iterable[tuple[str, str]]) -> str:
    """Names with what there is to say of each."""
    rows = "".join(f"<dt>{escape(name)}</dt><dd>{escape(words)}</dd>" for name, words in pairs)
    return f'<dl class="facts">{rows}</dl>' if rows else ""


def tiles(pairs: Iterable[tuple[str, str]]) -> str:
    """Few important numbers: each with what it is."""
    cells = "".join(f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>" for name, value in pairs)
    return f'<dl class="tiles">{cells}</dl>'


def table(
    caption: str, columns: Sequence[str], rows: Iterable[Sequence[str]], *, figures: Iterable[int] = (),
    whole: Iterable[int] = (), marked: Iterable[int] = (), stack: bool = True,
) -> str:  # fmt: skip
    """A table whose first column names its rows; it scrolls sideways in its own box.

    Parameters
    ----------
    figures : iterable of int
        Columns that hold numbers, which are aligned on the right.
    whole : iterable of int
        Columns whose words stay in one line.
    marked : iterable of int
        Rows that stand out.
    stack : bool
        Whether a phone shows each row as a block of lines; the roles then say that it is a table still.
    """
    kinds = {k: ' class="w"' for k in whole} | {k: ' class="n"' for k in figures}
    stand_out = set(marked)

    def cell(k: int, words: str, head: str) -> str:
        kind = kinds.get(k, "") + role("rowheader" if head == "row" else "columnheader" if head else "cell")
        if head:
            return f'<th scope="{head}"{kind}>{escape(words)}</th>'
        named = f' data-name="{escape(columns[k])}"' if stack else ""
        return f"<td{kind}{named}>{escape(words)}</td>"

    def role(name: str) -> str:
        return f' role="{name}"' if stack else ""

    head = "".join(cell(k, words, "col") for k, words in enumerate(columns))
    body = "".join(
        f"<tr{THIS if number in stand_out else ''}{role('row')}>"
        + "".join(cell(k, words, "" if k else "row") for k, words in enumerate(row))
        + "</tr>"
        for number, row in enumerate(rows)
    )
    if not body:
        return ""
    return (
        f'<div class="scroll" role="region" aria-label="{escape(caption)}" tabindex="0">'
        f"<table{' class=stack' if stack else ''}{role('table')}><caption>{escape(caption)}</caption>"
        f"<thead{role('rowgroup')}><tr{role('row')}>{head}</tr></thead>"
        f"<tbody{role('rowgroup')}>{body}</tbody></table></div>"
    )


def legend(rows: Iterable[tuple[str, str, str]]) -> str:
    """What the colours of a chart are for: class of the colour, words, number."""
    items = "".join(
        f'<li><i class="{kind}"></i><span>{escape(words)}</span><b>{escape(value)}</b></li>'
        for kind, words, value in rows
    )
    return f'<ul class="legend">{items}</ul>'


def items(words: Iterable[str]) -> str:
    """A list."""
    rows = "".join(f"<li>{escape(one)}</li>" for one in words)
    return f'<ul class="plain">{rows}</ul>'


def code(words: str) -> str:
    """Text as it was written."""
    return f"<pre>{escape(words)}</pre>"


def folded(title: str, inside: str) -> str:
    """HTML that unfolds when its title is clicked, and is printed unfolded."""
    return f"<details><summary>{escape(title)}</summary>{inside}</details>"
