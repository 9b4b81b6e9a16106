"""The proximal step of a cut function of a graph, in whole numbers: parametric flow by divide and conquer."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .arguments import Floats, Integers
from .compiled import compiled


class Network(NamedTuple):
    """The arcs of a graph, both ways, ordered by where they begin.

    Attributes
    ----------
    begins : array of length p + 1
        Where the arcs of each node begin.
    heads, twins : arrays with an entry for each arc
        Where it leads, and the arc that leads back.
    left : array with an entry for each arc
        What more can flow; twice the capacity of an edge for both of its arcs together.
    """

    begins: Integers
    heads: Integers
    twins: Integers
    left: Integers


class Search(NamedTuple):
    """Space with an entry for each node.

    Attributes
    ----------
    excess, distance, arc : arrays
        Supply above the level, the least number of arcs to a node that lacks some, and the arc to try next.
    queue, waiting : arrays
        Nodes with an excess, in turn, and whether a node is among them.
    found : array
        Nodes of a search in their order.
    """

    excess: Integers
    distance: Integers
    arc: Integers
    queue: Integers
    waiting: Integers
    found: Integers


@compiled(nogil=True)
def flatten(network: Network, supply: Integers, order: Integers, space: Integers, u: Floats) -> None:
    """Write the u that minimises norm(u - supply)² / 2 + sum of capacity(i, j) abs(u[i] - u[j]).

    Nodes of one block have one level unless a part of them has more supply above the mean than its cut can
    carry away; then the block is split there. See Groenevelt, "Two algorithms for maximizing a separable
    concave function over a polymatroid feasible region", and Hochbaum, "An efficient algorithm for image
    segmentation, Markov random fields and related problems".

    Numbers are whole, so nothing rounds but the mean of a block: some of its nodes count one unit more.

    Parameters
    ----------
    network : Network
        Without flow; it is overwritten.
    supply : array of length p
        It is overwritten.
    order : array of length p
        The nodes in any order; overwritten.
    space : array of shape (9, p)
    u : array of length p
        The result.
    """
    block, stack = space[0], space[1:3].reshape(-1)
    search = Search(space[3], space[4], space[5], space[6], space[7], space[8])
    block[:] = 0
    stack[0], stack[1], blocks, height = 0, order.size, 1, 2
    while height:
        begin, end = stack[height - 2], stack[height - 1]
        height -= 2
        nodes = order[begin:end]
        total = np.int64(0)
        for j in nodes:
            total += supply[j]
        level = total // nodes.size
        more = total - level * nodes.size
        if _settled(network, supply, nodes, block, level, more, search):
            for j in nodes:
                u[j] = level + more / nodes.size
            continue
        middle = _split(network, supply, nodes, block, blocks, search)
        blocks += 1
        stack[height], stack[height + 1] = begin, begin + middle
        stack[height + 2], stack[height + 3] = begin + middle, end
        height += 4


@compiled()
def _settled(
    network: Network, supply: Integers, nodes: Integers, block: Integers, level: np.int64, more: np.int64,
    search: Search,
) -> bool:  # fmt: skip
    """Whether flow inside of a block levels its supply; if not, distances tell which part has too much.

    Nodes with an excess push it along shortest paths to nodes that lack; see Goldberg and Tarjan, "A new
    approach to the maximum-flow problem".
    """
    excess, distance, arc = search.excess, search.distance, search.arc
    size, own = nodes.size, block[nodes[0]]
    for place in range(size):
        j = nodes[place]
        excess[j] = supply[j] - level - (1 if place < more else 0)
        for a in range(network.begins[j], network.begins[j + 1]):
            if block[network.heads[a]] == own:  # half of the difference is what flows already
                excess[j] += (network.left[a] - network.left[network.twins[a]]) // 2
    _measure(network, nodes, block, search)
    queue, waiting = search.queue, search.waiting
    head, count, work = 0, 0, 0
    for j in nodes:
        arc[j] = network.begins[j]
        waiting[j] = 1 if excess[j] > 0 and distance[j] < size else 0
        if waiting[j]:
            queue[count] = j
            count += 1
    while count:
        j = queue[head]
        head = 0 if head + 1 == size else head + 1
        count -= 1
        waiting[j] = 0
        while excess[j] > 0 and distance[j] < size:
            if arc[j] == network.begins[j + 1]:
                least = size
                for a in range(network.begins[j], network.begins[j + 1]):
                    k = network.heads[a]
                    if network.left[a] > 0 and block[k] == own:
                        least = min(least, distance[k] + 1)
                distance[j], arc[j] = least, network.begins[j]
                work += 1
                continue
            a = arc[j]
            k = network.heads[a]
            if network.left[a] > 0 and block[k] == own and distance[j] == distance[k] + 1:
                flow = min(excess[j], network.left[a])
                network.left[a] -= flow
                network.left[network.twins[a]] += flow
                excess[j] -= flow
                excess[k] += flow
                if excess[k] > 0 and not waiting[k]:
                    place = head + count
                    queue[place if place < size else place - size] = k
                    count += 1
                    waiting[k] = 1
            else:
                arc[j] += 1
        if work > size:
            work = 0
            _measure(network, nodes, block, search)
            for i in nodes:
                arc[i] = network.begins[i]
    for j in nodes:
        if excess[j] > 0:
            _measure(network, nodes, block, search)
            return False
    return True


@compiled()
def _measure(network: Network, nodes: Integers, block: Integers, search: Search) -> None:
    """Set each node's distance from one that lacks; the size of the block where there is no path."""
    distance, found = search.distance, search.found
    size, own, count = nodes.size, block[nodes[0]], 0
    for j in nodes:
        distance[j] = size
        if search.excess[j] < 0:
            distance[j] = 0
            found[count] = j
            count += 1
    place = 0
    while place < count:
        k = found[place]
        place += 1
        for a in range(network.begins[k], network.begins[k + 1]):
            j = network.heads[a]
            if block[j] == own and distance[j] == size and network.left[network.twins[a]] > 0:
                distance[j] = distance[k] + 1
                found[count] = j
                count += 1


@compiled()
def _split(
    network: Network, supply: Integers, nodes: Integers, block: Integers, new: int, search: Search
) -> int:
    """Put nodes with too much first, as a block of their own; return how many there are.

    What flows out of them, as much as their cut can carry, moves supply.
    """
    own, middle, others = block[nodes[0]], 0, 0
    for j in nodes:
        if search.distance[j] == nodes.size:
            block[j] = new
    for j in nodes:
        if block[j] == own:
            search.found[others] = j
            others += 1
            continue
        for a in range(network.begins[j], network.begins[j + 1]):
            k = network.heads[a]
            if block[k] == own:
                flow = network.left[network.twins[a]] // 2
                supply[j] -= flow
                supply[k] += flow
        nodes[middle] = j
        middle += 1
    for place in range(others):
        nodes[middle + place] = search.found[place]
    return middle
