"""Lay the state of a bus out in other shards and pages: by a command while no engine decides, or as one takes over.

The problem: a kill may come at any moment, an engine may start meanwhile, and checkpoints on this and other machines
hold the state in its old pages.

    claim ──► read the state ──► one transaction: all pages replaced, layouts + 1
      │                              │
      └ fences the deciding job      └ refused if another job has claimed since

The insight: a claim already gives one job the right to write, and takes it from all others. So the command is a job
that claims, replaces the image and ends. Its claim carries the settings that are already in force, so it changes none
of them. An engine that is told to reshard does the same between its own claim and its first batch. Any other engine
checks the layout before its claim, and once more if another claim came in between (``layout_check``). A checkpoint
notes ``Bus.layouts``, so one from an earlier layout is moved aside (``checkpoint``).
"""

from bus.clock import now_ms
from bus.image import read_cluster
from bus.interface import Bus, Image
from conf.settings import Settings
from streaming.checkpoint_lock import Holder, checkpoint_lock
from streaming.checkpoint_place import files_place
from streaming.job_errors import JobError
from streaming.layout import LaidOut, laid_out, misfit


def reshard(bus: Bus, settings: Settings) -> LaidOut | None:
    """Lay the state out as ``settings`` say. Return None if there is no state yet, or if its layout fits already.

    Raises ``JobError`` if an engine of this machine runs, ``FencedError`` if one starts meanwhile, and ``CodecError``
    if the state cannot be read. After an error the state is as it was.
    """
    with checkpoint_lock(files_place(settings), Holder.of(bus, settings.bus_name)) as lock:
        if not lock.take_or_check():
            raise JobError(f"an engine of this machine runs on {settings.bus_name}: stop it first")
        before = bus.image()
        if misfit(before, settings) is None:
            return None
        in_force = read_cluster(before).settings
        claim = bus.claim(f"reshard-{settings.controller_name}", in_force, now_ms())
        # Read once more, because until the claim another engine may have written.
        return lay_out_again(bus, bus.image(), settings, claim.controller_epoch)


def lay_out_again(bus: Bus, image: Image, settings: Settings, controller_epoch: int) -> LaidOut:
    """Lay out as ``settings`` say the state that was read after the claim of ``controller_epoch``.

    Raises ``FencedError`` if another job has claimed since, and ``CodecError`` if the state cannot be read.
    """
    made = laid_out(image, settings.shards, settings.pages)
    bus.replace_image(controller_epoch, made.image)
    return made
