"""The peers: other search tools, one file each, behind the interface of our strategies."""

from benchmarks.search.peers.base import Peer, find_peer, peer_module, peer_names

__all__ = ["Peer", "find_peer", "peer_module", "peer_names"]
