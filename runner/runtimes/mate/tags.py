"""MPI tags that carry local rank ids.

So MPI itself matches messages between ranks, without header, copy or tables (Martin 2018,
chapter 4). The original had 21 usable bits and split them 5 + 8 + 8. Here the split follows the
real ``MPI_TAG_UB`` and the number of ranks.
"""

from __future__ import annotations

from dataclasses import dataclass

from runner.runtimes.mate.errors import ConfigError, MateError


@dataclass(frozen=True)
class TagCodec:
    """MPI tags: ``[user tag][local id of the sender][local id of the receiver]``."""

    local_bits: int
    user_bits: int

    @classmethod
    def fit(cls, tag_ub: int, local_count: int) -> TagCodec:
        """The codec for tags up to ``tag_ub`` and ``local_count`` ranks in the largest process.

        Raises :class:`ConfigError` if not even one user tag would be left.
        """
        total = (tag_ub + 1).bit_length() - 1
        local = max(local_count - 1, 0).bit_length()
        if total - 2 * local < 0:
            raise ConfigError(
                f"--ranks-per-process {local_count} needs {2 * local} bits of the MPI tag, but "
                f"this MPI has tags up to {tag_ub} ({total} bits): use fewer ranks per process",
                code="mate.option",
            )
        return cls(local, total - 2 * local)

    @property
    def max_user_tag(self) -> int:
        return (1 << self.user_bits) - 1

    def encode(self, user: int, sender: int, receiver: int) -> int:
        """The MPI tag; raises :class:`MateError` for a user tag that does not fit."""
        if not 0 <= user <= self.max_user_tag:
            raise MateError(
                f"tag {user} is not possible: with {self.local_bits} bits for each local rank, "
                f"tags go from 0 to {self.max_user_tag} (wildcards are not supported)",
                code="mate.message",
            )
        return (user << self.local_bits | sender) << self.local_bits | receiver

    def decode(self, tag: int) -> tuple[int, int, int]:
        """(user tag, local id of the sender, local id of the receiver)."""
        mask = (1 << self.local_bits) - 1
        return tag >> 2 * self.local_bits, tag >> self.local_bits & mask, tag & mask
