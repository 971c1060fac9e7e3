"""What is to blame when something is lost: at first bad luck, and what was being done only if it happens again."""

from __future__ import annotations

from torchmark.cluster.board import Parcel
from torchmark.cluster.fleet import Loss

# What ends its post so often is to blame for it. Nodes die of other things, and answers are lost by themselves: more of
# these are needed to be sure.
MOST_POSTS = 3
MOST_NODES = 5
MOST_ANSWERS = 5
# What so many nodes cannot do, others cannot do either.
MOST_REFUSALS = 3


def note_loss(parcel: Parcel, loss: Loss, node: str) -> None:
    """It was lost together with this, on that node."""
    if loss is Loss.POST:
        parcel.lost_posts += 1
    elif loss is Loss.NODE:
        parcel.lost_nodes += (node,)
    else:
        parcel.lost_answers += 1


def note_refusal(parcel: Parcel, node: str) -> None:
    """That node said that it cannot do it."""
    parcel.refusals += (node,)


def is_hopeless(parcel: Parcel) -> bool:
    """Whether it would only be lost again."""
    return (
        parcel.lost_posts >= MOST_POSTS
        or len(parcel.lost_nodes) >= MOST_NODES
        or parcel.lost_answers >= MOST_ANSWERS
        or len(parcel.refusals) >= MOST_REFUSALS
    )


def word_losses(parcel: Parcel, last: str) -> str:
    """Why it was given up; `last` is what was said the last time."""
    parts = []
    if parcel.lost_posts:
        parts.append(f"the process that ran it ended {_times(parcel.lost_posts)}")
    if parcel.lost_nodes:
        parts.append(f"nodes were lost while it ran there: {', '.join(parcel.lost_nodes)}")
    if parcel.lost_answers:
        parts.append(f"its answer was lost {_times(parcel.lost_answers)}")
    if parcel.refusals:
        parts.append(f"nodes cannot do it: {', '.join(parcel.refusals)}")
    return f"It was given up: {'; '.join(parts)}. The last time: {last}"


def _times(number: int) -> str:
    return "once" if number == 1 else f"{number} times"
