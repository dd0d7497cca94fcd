"""Pictures of reports inside a page: SVG reduced to the parts that draw. Uses only the standard library."""

from xml.etree import ElementTree

from django.utils.safestring import SafeString, mark_safe

SVG, XLINK = "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"
ELEMENTS = frozenset(
    (
        *("svg", "g", "defs", "title", "desc", "path", "rect", "circle", "ellipse", "line", "polyline", "polygon"),
        *(
            "text",
            "tspan",
            "use",
            "symbol",
            "marker",
            "clipPath",
            "linearGradient",
            "radialGradient",
            "stop",
            "pattern",
        ),
    )
)
# Allowed: looks, positions and names. Not allowed: style sheets, event handlers, anything that loads.
ATTRIBUTES = frozenset(
    (
        *(
            "id",
            "class",
            "role",
            "aria-labelledby",
            "aria-describedby",
            "aria-label",
            "aria-hidden",
            "viewBox",
            "width",
            "height",
            "x",
            "y",
        ),
        *("x1", "y1", "x2", "y2", "cx", "cy", "r", "rx", "ry", "dx", "dy", "d", "points", "transform", "offset"),
        *("fill", "fill-opacity", "fill-rule", "stroke", "stroke-width", "stroke-opacity", "stroke-dasharray"),
        *("stroke-dashoffset", "stroke-linecap", "stroke-linejoin", "opacity", "clip-path", "clip-rule", "stop-color"),
        *("stop-opacity", "font-family", "font-size", "font-weight", "font-style", "text-anchor", "letter-spacing"),
        *("dominant-baseline", "preserveAspectRatio", "gradientUnits", "gradientTransform", "markerWidth", "refX"),
        *(
            "markerHeight",
            "refY",
            "orient",
            "marker-start",
            "marker-mid",
            "marker-end",
            "patternUnits",
            "clipPathUnits",
        ),
    )
)
KNOWN = frozenset(f"{{{SVG}}}{name}" for name in ELEMENTS)

ElementTree.register_namespace("", SVG)
ElementTree.register_namespace("xlink", XLINK)


class NotAPicture(ValueError):
    """The file is not an SVG."""


def inline(text: str) -> SafeString:
    """An SVG file as part of a page. Elements and attributes that do not draw are left out, and so is every address
    outside the picture. Texts are escaped again.

    Raises:
        NotAPicture: it is not an SVG.
    """
    try:
        root = ElementTree.fromstring(text)  # noqa: S314 - drawn by installed code; texts in it cannot declare entities
    except ElementTree.ParseError as exc:
        raise NotAPicture(str(exc)) from exc
    if root.tag != f"{{{SVG}}}svg":
        raise NotAPicture(f"it begins with {root.tag}")
    _clean(root)
    return mark_safe(ElementTree.tostring(root, encoding="unicode"))  # noqa: S308 - of the lists above alone


def _clean(element: ElementTree.Element) -> None:
    for name, value in list(element.attrib.items()):
        if not _is_kept(name, value):
            del element.attrib[name]
    for inner in list(element):
        if inner.tag in KNOWN:
            _clean(inner)
        else:
            element.remove(inner)


def _is_kept(name: str, value: str) -> bool:
    if name in ("href", f"{{{XLINK}}}href"):
        return value.startswith("#")
    if "url(" in value.lower():
        return name in ATTRIBUTES and _own_address(value)
    return name in ATTRIBUTES


def _own_address(value: str) -> bool:
    """url(#name) and nothing else."""
    inside = value.strip()
    return inside.startswith("url(#") and inside.endswith(")") and inside.count("(") == 1
