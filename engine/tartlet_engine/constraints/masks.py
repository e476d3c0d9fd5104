"""Sets of tokens that programs have made: what a generation or a step may sample, besides its constraint."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tartlet_engine.accounts import RunAccount
from tartlet_engine.api import ErrorCode, FreeMask, MakeMask
from tartlet_engine.command_error import CommandError
from tartlet_engine.constraints.vocabulary import Words

MOST_OF_A_RUN = 1024  # masks, of 6 kB for a vocabulary of 49,152


class MaskTable:
    """The masks of all runs. They lie in their run's account, and go away with it. On the engine's thread."""

    def __init__(self, vocabulary_size: int, accounts: dict[int, RunAccount]) -> None:
        """Keep masks over a vocabulary for the runs of `accounts`."""
        self._vocabulary_size = vocabulary_size
        self._accounts = accounts
        self.handlers: dict[type, Callable[[Any, int], None]] = {MakeMask: self._make, FreeMask: self._free}

    def get(self, account: RunAccount, mask_id: int) -> Words:
        """Return a mask of a run: uint32[ceil(V / 32)], bit `id % 32` of word `id // 32`; nobody may write to it.

        Raises CommandError if the run has none by that id.
        """
        mask = account.masks.get(mask_id)
        if mask is None:
            raise CommandError(ErrorCode.NOT_FOUND, f"run {account.run_id} has no mask {mask_id}")
        return mask

    def get_sampled(self, account: RunAccount, mask_id: int) -> Words:
        """Return a mask of a run that leaves something. Raises CommandError if it does not."""
        mask = self.get(account, mask_id)
        if not mask.any():
            raise CommandError(ErrorCode.INVALID_ARGUMENT, "the mask allows no token")
        return mask

    def _make(self, command: MakeMask, arrived_ns: int) -> None:
        account = self._accounts.get(command.run_id)
        if account is None:
            raise CommandError(ErrorCode.NOT_FOUND, f"there is no run {command.run_id}")
        if command.mask_id in account.masks:
            raise CommandError(ErrorCode.ALREADY_EXISTS, f"there is a mask {command.mask_id} already")
        if len(account.masks) >= MOST_OF_A_RUN:
            message = f"the run holds {len(account.masks):,} masks; {MOST_OF_A_RUN:,} are allowed"
            raise CommandError(ErrorCode.QUOTA_EXCEEDED, message, "Drop some of them.")
        num_bytes = -(-self._vocabulary_size // 32) * 4
        if len(command.words) != num_bytes or int.from_bytes(command.words, "little") >> self._vocabulary_size:
            message = f"words must be {num_bytes:,} bytes that name no id from {self._vocabulary_size:,} on"
            raise CommandError(ErrorCode.INVALID_ARGUMENT, message)
        account.masks[command.mask_id] = np.frombuffer(command.words, dtype="<u4")

    def _free(self, command: FreeMask, arrived_ns: int) -> None:
        account = self._accounts.get(command.run_id)
        if account is not None:
            account.masks.pop(command.mask_id, None)
