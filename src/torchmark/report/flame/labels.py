"""Names, colours and numbers of a flame graph as texts."""

from __future__ import annotations

import dataclasses
import functools
import math
import re
import zlib

from torchmark.analysis.verdict.explain import NAMELESS, STAGES, is_nameless, plain_name, split_name, stage_of
from torchmark.model.costs import Flame, FlameNode, FlameUnit, Frame, FrameKind, Function
from torchmark.report.text.counts import fit_name
from torchmark.report.text.terminal import ELLIPSIS, cut, measure, printable

# Numbers of colours in `assets/flame.css`: each family has so many shades, to tell neighbours apart.
FAMILIES = ("all", "Python", *STAGES)
SHADES = 2
# No frame is wide enough for a longer label.
LONGEST_LABEL = 100
# With less room than this for letters, a label says nothing.
LEAST_ROOM = 3
# Names of templates can be of any length. What is longer than this is not read by anybody.
LONGEST_NAME = 1000
# What says nothing without what it belongs to.
DEPENDENT = re.compile(r"\{|~|operator|(?:call|redispatch|apply|run|reset|reset_|release)(?!\w)")


def full_name(frame: Frame) -> str:
    """A frame's name as it is, but on one line, and not without end."""
    return cut(printable(frame.name[:LONGEST_NAME]).strip(), LONGEST_NAME) or NAMELESS


def origin_of(frame: Frame) -> str:
    return printable(frame.origin[-LONGEST_NAME:]).strip()


@functools.lru_cache(maxsize=50_000)
def label_of(frame: Frame) -> str:
    """A short name: of a compiled function without parameters, and of long template arguments only as much as fits.

    >>> label_of(Frame("at::add(at::Tensor const&, at::Tensor const&)"))
    'at::add'
    """
    if frame.kind is not FrameKind.NATIVE:
        return cut(full_name(frame), LONGEST_LABEL)
    if is_nameless(frame.name):
        return NAMELESS
    return fit_name(printable(plain_name(frame.name[:LONGEST_NAME])), LONGEST_LABEL).strip() or NAMELESS


def fit_label(label: str, room: int, mark: str = "") -> str:
    """As much of a label as so many letters tell, after a mark that is as much of it: template arguments go first, then
    namespaces, then the end. `fitLabel` of flame.js does the same where frames get another width.

    >>> [fit_label("torch::autograd::make<int>", room) for room in (26, 25, 10, 4, 1)]
    ['torch::autograd::make<int>', 'torch::autograd::make<…>', 'make<…>', 'mak…', '']
    """
    left = room - measure(mark)
    if measure(label) <= left:
        return mark + label
    if left >= LEAST_ROOM:
        shorter = list_shorter(label) or [label]
        return mark + next((text for text in shorter if measure(text) <= left), cut(shorter[-1], left))
    return cut(mark.strip(), room) if room >= min(LEAST_ROOM, measure(mark.strip())) else ""


def list_shorter(label: str) -> list[str]:
    """A name with dots for template arguments, if it has any, and then without its first namespace, its first two, and
    so on, down to what tells something on its own."""
    starts, short = [0], ""
    depth, colons, previous = 0, 0, ""
    for token in split_name(label):
        depth -= token == ">" and depth > 0
        if depth:
            depth += token == "<"
            continue
        if colons == 2:
            starts.append(len(short))
        colons = colons + 1 if token == ":" else 0
        short += token
        if token == "<" and (previous[-1:].isalnum() or previous[-1:] == "_" or previous.startswith("operator")):
            depth = 1
            short += ELLIPSIS
        previous = token
    tails = [short[start:] for start in starts if not start or not DEPENDENT.match(short, start)]
    return [tail for tail in tails if tail != label]


def family_of(frame: Frame) -> int:
    """The number of its family: what stands for no function, Python's functions, or a stage of a call."""
    if frame.kind in (FrameKind.OTHER, FrameKind.PYTHON):
        return int(frame.kind is FrameKind.PYTHON)
    return FAMILIES.index(stage_of(Function("", frame.name, frame.origin)), 2)


def colour_of(frame: Frame) -> int:
    """The number of its colour: the same for a name in all graphs."""
    shade = zlib.crc32(frame.name.encode("utf-8", "surrogatepass")) % SHADES
    return family_of(frame) * SHADES + shade


MINUS = "−"
ARROW = "→"
# What changed by less than this share of the largest change of any frame is drawn as unchanged: people look for causes.
LEAST_CHANGE = 0.01
# Steps of red and of blue.
STEPS = 5


@dataclasses.dataclass(frozen=True)
class FlameScale:
    """What the numbers of a graph are in, and by what they are divided to be shown."""

    unit: str
    runs: int

    def show(self, value: int) -> str:
        """A value, to a tenth where it is not whole.

        >>> FlameScale("instructions per run", 100).show(123450), FlameScale("samples", 1).show(7)
        ('1,234.5', '7')
        """
        whole, tenth = divmod((20 * value + self.runs) // (2 * self.runs), 10)
        return f"{whole:,}.{tenth}" if tenth else f"{whole:,}"

    def format_change(self, change: int) -> str:
        return f"{MINUS if change < 0 else '+'}{self.show(abs(change))}"

    def format_sides(self, base: int, head: int) -> str:
        if base == head:
            return f"{self.show(head)} (no change)"
        change = f"{self.format_change(head - base)}, {format_relation(base, head)}"
        return f"{self.show(base)} {ARROW} {self.show(head)} ({change})"


def gauge_of(flame: Flame) -> FlameScale:
    """Instructions are shown for one run. Samples of one run would be fractions, which tell nobody anything."""
    if flame.unit is FlameUnit.SAMPLES:
        return FlameScale("samples", 1)
    return FlameScale("instructions per run", flame.number)


def format_percent(part: float, whole: float) -> str:
    """A share, with more figures the smaller it is; nothing of nothing is nothing.

    >>> [format_percent(1, of) for of in (8, 80, 800, 10**6)], format_percent(0, 5)
    (['13%', '1.3%', '0.1%', '<0.01%'], '0%')
    """
    percent = 100 * part / whole if whole else 0.0
    if percent == 0:
        return "0%"
    if percent < 0.005:
        return "<0.01%"
    decimals = 0 if percent >= 9.95 else 1 if percent >= 0.095 else 2
    # A half is rounded up.
    return f"{math.floor(percent * 10**decimals + 0.5) / 10**decimals:.{decimals}f}%"


def format_relation(base: int, head: int) -> str:
    """A change as a share of what was there before."""
    if base == head:
        return "no change"
    if not base or not head:
        return "gone" if base else "new"
    return f"{MINUS if head < base else '+'}{format_percent(abs(head - base), base)}"


def own_change(node: FlameNode) -> int:
    """How much more head spends in the frame itself."""
    return node.own - (node.base_own or 0) if node.base_own is not None else 0


def find_step(change: int, largest: int) -> int:
    """How strong a colour a change earns: 0 is none, and it has the change's sign.

    >>> [find_step(change, 1000) for change in (1000, 500, 10, 9, 0, -201)]
    [5, 3, 1, 0, 0, -2]
    """
    if not change or abs(change) < LEAST_CHANGE * largest:
        return 0
    step = math.ceil(STEPS * abs(change) / largest)
    return -step if change < 0 else step


# What is told of a frame. Lines that have an empty text are left out. flame.js fills in those of frames that were too
# narrow to be drawn.
LINES = (
    "{name}",
    "{origin}",
    "{value} {unit}, {share} of all",
    "{part} of its caller",
    "in itself {own}, {own_share} of all",
)
LINES_OF_BOTH = ("{name}", "{origin}", "{value} {unit}", "in itself {own}", "{share} of all")


def describe_frame(node: FlameNode, parent: FlameNode | None, root: FlameNode, gauge: FlameScale) -> list[str]:
    """What a tooltip says: the name, where it is from, what is spent in it with all that it calls, and in itself."""
    texts = {"name": full_name(node.frame), "origin": origin_of(node.frame), "unit": gauge.unit}
    share = format_percent(node.value, root.value)
    if node.base_value is None or node.base_own is None:
        lines = LINES
        part = format_percent(node.value, parent.value) if parent is not None and parent is not root else ""
        texts |= {"value": gauge.show(node.value), "share": share, "part": part}
        texts |= {"own": gauge.show(node.own), "own_share": format_percent(node.own, root.value)}
    else:
        lines = LINES_OF_BOTH
        texts["value"] = gauge.format_sides(node.base_value, node.value)
        texts["own"] = gauge.format_sides(node.base_own, node.own)
        texts["share"] = f"{format_percent(node.base_value, root.base_value or 0)} {ARROW} {share}"
    return [line.format(**texts) for line in lines if all(texts[key] for key in re.findall(r"{(\w+)}", line))]
