"""The peers: other search tools, one file each, behind the interface of our strategies."""

from benchmarks.search.peers.base import MATCHED, Peer, find_peer, is_peer, peer_module, peer_names

__all__ = ["MATCHED", "Peer", "find_peer", "is_peer", "peer_module", "peer_names"]
