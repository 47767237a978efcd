"""What a program could gain if its ranks computed while others wait: traces and replays.

A trace has the events of each rank in the order of its program: computation in CPU seconds, and
messages. A replay computes when each event would happen on other cores and another network.
"""
