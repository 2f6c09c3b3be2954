"""Drawing: an SVG picture as text that shows itself as the picture at the end of a notebook's cell."""

from __future__ import annotations


class Drawing(str):
    """The text of an SVG picture. A notebook shows the picture; everything else sees a str."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"<Drawing of {len(self):,} characters>"

    def _repr_html_(self) -> str:
        return str(self)
