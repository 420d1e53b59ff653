"""Where processes find each other after a restart.

torchrun keeps one store over restarts (torch 2.13), and in it the addresses of processes that are dead; new ones
may call those and fail. So the first process opens a new room in the store and lets each of the others in by a
name that no process had before.
"""

import os
from datetime import timedelta
from uuid import uuid4

from torch._C._distributed_c10d import PrefixStore, Store, TCPStore
from torch.distributed import DistStoreError

PATIENCE = timedelta(minutes=5)
A_MOMENT = timedelta(seconds=1)


def open_fresh_store(rank: int, world: int) -> Store | None:
    """Return a part of torchrun's store without old entries; None if the store is not torchrun's."""
    if os.environ.get("TORCHELASTIC_USE_AGENT_STORE") != "True":
        return None
    address, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    store = TCPStore(address, port, is_master=False, timeout=PATIENCE)
    room = open_room(store, world) if rank == 0 else enter_room(store, rank)
    return PrefixStore(room, store)


def enter_room(store: Store, rank: int) -> str:
    """Announce this process and return the name of the store's part that the first process opened for it."""
    name = uuid4().hex
    store.set(f"here/{rank}", name)
    store.wait([f"room/{name}"], PATIENCE)
    room = str(store.get(f"room/{name}").decode())
    store.set(f"inside/{room}/{name}", "")
    return room


def open_room(store: Store, world: int) -> str:
    """Return the name of a new part of the store, once a living process of every rank has entered it."""
    room = uuid4().hex
    for rank in range(1, world):
        store.wait([f"here/{rank}"], PATIENCE)
        while not admit(store, store.get(f"here/{rank}").decode(), room):
            pass  # that one is dead, or slow; look again who is there
    return room


def admit(store: Store, name: str, room: str) -> bool:
    """Return whether the process of this name entered the room in time."""
    store.set(f"room/{name}", room)
    try:
        store.wait([f"inside/{room}/{name}"], A_MOMENT)
    except DistStoreError:
        return False
    return True
