"""Proximal steps of total variation along a chain, in linear time, and of a cut function of a graph."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .arguments import Floats, Integers
from .compiled import compiled


@compiled(nogil=True)
def flatten_chain(w: Floats, prices: Floats, ends: Floats, knots: Floats, u: Floats) -> None:
    """Write the u that minimises norm(u - w)² / 2 + sum of prices[k] abs(u[k + 1] - u[k]).

    Dynamic programming over the derivative of the least cost of the first k entries, given the last of them:
    it is piecewise linear, and grows by two knots an entry. See Johnson, "A dynamic programming algorithm for
    the fused lasso and L0-segmentation".

    Parameters
    ----------
    w : array of length p, 1 at least
    prices : array of length p - 1
    ends : array of shape (2, p)
        Space for the interval in which an entry equals the next one.
    knots : array of shape (3, 2 p)
        Space for places of knots, and for the slopes and the constants that they add.
    u : array of length p
        The result. Entries of a plateau are equal: the mean of w there, and what the prices at its ends add.
    """
    p = w.size
    places, slopes, constants = knots[0], knots[1], knots[2]
    first, last = p, p - 1  # the knots in use
    least, most = -w[0], w[0]  # constants of the outermost pieces, from both sides
    for k in range(p - 1):
        price = prices[k]
        slope, constant, low = 1.0, least, first
        while low <= last and slope * places[low] + constant <= -price:
            slope += slopes[low]
            constant += constants[low]
            low += 1
        first = low - 1
        places[first] = ends[0, k] = (-price - constant) / slope
        lowest_slope, lowest_constant = slope, constant + price
        slope, constant, high = -1.0, most, last
        while high > first and -slope * places[high] - constant >= price:
            slope += slopes[high]
            constant += constants[high]
            high -= 1
        last = high + 1
        # Rounding may not put the end of an interval before its beginning.
        places[last] = ends[1, k] = max((price + constant) / -slope, places[first])
        slopes[first], constants[first] = lowest_slope, lowest_constant
        slopes[last], constants[last] = slope, constant + price
        least, most = -price - w[k + 1], -price + w[k + 1]
    slope, constant, low = 1.0, least, first
    while low <= last and slope * places[low] + constant <= 0:
        slope += slopes[low]
        constant += constants[low]
        low += 1
    u[p - 1] = -constant / slope
    for k in range(p - 2, -1, -1):
        u[k] = min(max(u[k + 1], ends[0, k]), ends[1, k])
    _level(w, prices, u)


@compiled()
def _level(w: Floats, prices: Floats, u: Floats) -> None:
    """Compute the levels of the plateaus of u anew from w, without the rounding of many sums."""
    begin, before = 0, 0.0
    for end in range(1, w.size + 1):
        if end < w.size and u[end] == u[begin]:
            continue
        after = 0.0
        if end < w.size:
            after = prices[end - 1] if u[end] > u[begin] else -prices[end - 1]
        total = 0.0
        for k in range(begin, end):
            total += w[k]
        level = (total + (before + after)) / (end - begin)
        for k in range(begin, end):
            u[k] = level
        begin, before = end, -after


# The step of a cut function, in whole numbers: parametric flow by divide and conquer.
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
def flatten_cuts(network: Network, supply: Integers, order: Integers, space: Integers, u: Floats) -> None:
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
    """Return whether flow inside a block levels its supply; if not, distances tell which part has too much.

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
