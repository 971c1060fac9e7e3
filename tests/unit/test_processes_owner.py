from __future__ import annotations

import dataclasses
import os
import subprocess

from torchmark.processes import is_alive, read_start, this_process


def test_a_process_knows_itself_to_be_alive() -> None:
    assert is_alive(this_process())


def test_others_of_the_same_number_are_not_meant() -> None:
    here = this_process()
    for other in (
        dataclasses.replace(here, started=here.started + 1),
        dataclasses.replace(here, boot="another"),
        dataclasses.replace(here, namespace=here.namespace + 1),
    ):
        assert not is_alive(other)


def test_what_has_ended_is_gone_even_if_nobody_has_waited_for_it() -> None:
    child = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    owner = dataclasses.replace(this_process(), pid=child.pid, started=read_start(child.pid) or 0)
    assert is_alive(owner)
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert not is_alive(owner)
    child.communicate()
    assert not is_alive(owner)
