"""What audits share."""

import pytest

from dpglm.queries import Minimiser


@pytest.fixture(scope="module")
def minimisers_are_found_once():
    """An answer is a function of the table and of public values: what was found is not sought again."""
    found, find = {}, Minimiser.__call__

    def kept(query, data, *public):
        key = query, id(data), *(value.tobytes() for value in public)
        if key not in found:
            found[key] = data, find(query, data, *public)  # the table with it, so that its id stays its own
        return found[key][1].copy()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Minimiser, "__call__", kept)
        yield
