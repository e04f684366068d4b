"""Formulas as MathML, made while the site is built: no script and no network in the browser.

Sphinx's own renderers load MathJax from the network or need LaTeX. docutils can turn LaTeX into
MathML, which every current browser draws.
"""

from __future__ import annotations

from typing import Any

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml


def _markup(node: Any, as_block: bool) -> str:
    return tex2mathml(node.astext(), as_block=as_block)


def visit_inline(translator: Any, node: Any) -> None:
    translator.body.append(_markup(node, as_block=False))
    raise nodes.SkipNode


def visit_block(translator: Any, node: Any) -> None:
    translator.body.append(f'<div class="formula">{_markup(node, as_block=True)}</div>')
    raise nodes.SkipNode


def setup(app: Any) -> None:
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
